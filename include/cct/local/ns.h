/* Start of a sandbox's PID 1 in its own namespaces, without waiting for it: the
 * child sets itself up and ends up as `cc-tui-local sandbox-init`; what fails on
 * the way comes through `status_fd`. Also the probe that says in one sentence
 * why this host refuses. One thread only (it forks). */
#ifndef CCT_LOCAL_NS_H
#define CCT_LOCAL_NS_H

#include <cct/util/buf.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <sys/types.h>

#define NS_USER_ID 1000       /* uid and gid of the sandbox's user */
#define NS_ROOT_BASE 1000000u /* as root: sandbox id 0 is this host id */
#define NS_ROOT_COUNT 65536u
#define NS_PROCESSES 256         /* in one sandbox */
#define NS_FILE_MAX (8ULL << 30) /* bytes of one file */

struct ns_spec {
    const char *id;        /* host name inside */
    const char *exe;       /* this binary, absolute */
    const char *home;      /* host folder that becomes /home/user; not used with layers */
    const char *root_home; /* the same for /root */
    /* Root made of layers: NULL layers_dir for a small root of our own. Below
     * layers_dir each layer is a folder NAME/root; lowest first. Writes go to
     * the folders `root` and `work` below `upper`, which may itself be a layer. */
    const char *layers_dir;
    const char *const *layers;
    size_t n_layers;
    const char *upper;
    int config_fd;      /* becomes fd 3 of the init */
    int listen_fd;      /* becomes fd 4 */
    const char *cgroup; /* group of the init, see cgroup.h; NULL: none */
    int cgroup_fd;      /* its `run`: becomes fd 5; -1: none */
    bool isolated;      /* false: no namespaces at all */
    bool own_net;       /* a network of its own, at first a loopback interface only */
    const char *resolv; /* text of its resolv.conf; NULL: the host's file */
    bool probe;         /* do everything, then run `--version` inside */
    bool probe_root;    /* with it: as the user root, to be told if it is root */
};

struct ns_child {
    pid_t pid;
    int pidfd;
    int status_fd; /* non-blocking; end of file = executed, else "text" */
};

/* How ids of the sandbox map to the host's, decided once from this process's
 * own rights and map. */
struct ns_ids {
    bool full; /* 0..65535 <- base.. ; else one id: NS_USER_ID <- uid */
    uid_t base;
    uid_t uid; /* the sandbox user's uid outside */
    gid_t gid;
};
const struct ns_ids *ns_ids(void);

/* 0, or negative with *e. On success the caller owns the descriptors of *out. */
int ns_start(const struct ns_spec *s, struct ns_child *out, struct err *e);
/* A process in a new user and a new network namespace that does nothing, to try things
 * on; the caller kills it, waits for it and closes *pidfd. Its pid, or negative. */
pid_t ns_hold(int *pidfd, struct err *e);
/* Try the whole sequence; 0 or ERR_UNSUPPORTED with the sentence. Blocks up to
 * some seconds. */
int ns_probe(const char *exe, struct err *e);
/* The same; and whether the user root can be one in a sandbox. */
int ns_probe_root(const char *exe, bool *root, struct err *e);
/* The same for a root of layers whose files are below `state_dir`: 0, or
 * ERR_UNSUPPORTED with the step that failed and what to do. Blocks as above. */
int ns_layers_probe(const char *state_dir, struct err *e);
/* Make the folders `root` and `work` of a layer, for the sandbox's user. */
int ns_layer_make(const char *path, struct err *e);
/* The lines of an AppArmor profile that allows user namespaces for this path. */
void ns_apparmor_profile(struct buf *b, const char *exe);
/* Path of this binary; new string. */
char *ns_own_path(void);

/* --- used between ns*.c only ---------------------------------------------- */
/* Detached mounts of what only our own account can reach; -1 where not used. */
struct ns_sources {
    int home, root_home, exe, layers, upper;
};
/* Build the file system and change root. NULL, or the step that failed (errno
 * says why). */
const char *ns_mount_all(const struct ns_spec *s, const struct ns_sources *from);
int ns_clone_tree(const char *path);
int ns_attach(int tree_fd, const char *to, unsigned long long attr);
extern const char *const ns_host_dirs[], *const ns_host_etc[]; /* end with NULL */
extern const char *const ns_host_var[];
/* ns_layers.c: before and after the plain root is made in the current folder,
 * which both change. */
const char *ns_layers_begin(const struct ns_sources *from);
const char *ns_layers_finish(const struct ns_spec *s);
/* Give up every right: bounding set, ids, capabilities, seccomp. */
const char *ns_seal(void);
/* Limits that need no cgroup. Without namespaces processes are not limited in
 * number: they would be counted together with the user's own. */
void ns_limit(bool isolated);

#endif
