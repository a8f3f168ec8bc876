/* What the provider keeps of a sandbox on disk: one folder for each,
 * STATE/boxes/ID with box.json (0600, replaced atomically) and home/. It is enough
 * to take a running sandbox over after a restart; environment variables, which
 * may hold keys, are not in it. One thread. */
#ifndef CCT_LOCAL_BOXSTORE_H
#define CCT_LOCAL_BOXSTORE_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum sbox_state { SBOX_RUNNING, SBOX_PAUSED };

struct cJSON;

struct sbox_rec {
    char id[24]; /* i + 20 of [a-z0-9] */
    char token[72];
    char traffic_token[72]; /* needed on ports of programs; "": not needed */
    char template_id[24];
    char build_id[40]; /* UUID of the build it was made from */
    char alias[129];   /* may be empty */
    pid_t pid;         /* the init, as this process sees it */
    uint64_t start_ticks;
    int64_t started_ms, end_ms; /* wall; paused: end = time of the pause */
    int64_t end_boot_ms;        /* the same end on CLOCK_BOOTTIME: this one decides */
    enum sbox_state state;
    struct cJSON *metadata; /* object of strings, or NULL; owned */
    struct cJSON *network;  /* as the client sent it, or NULL; owned */
    bool isolated, internet, auto_pause, auto_resume;
    bool hidden;          /* of a template build, which ends with the provider */
    bool internet_asked;  /* the client said something about the internet */
    bool auto_pause_cold; /* at its end it is paused without its processes */
    bool cold;            /* paused so: traffic does not wake it */
    int cpu, mem_mb;
    unsigned limits;  /* which of them hold: enum cgroup_limit */
    char cgroup[256]; /* its group, or "" */
    char sock[108];
};

bool sbox_id_ok(const char *id);
/* Names the folder STATE/boxes/ID; new string. */
char *boxstore_dir(const char *state_dir, const char *id);
int boxstore_save(const char *state_dir, const struct sbox_rec *r, struct err *e);
/* Fill r from the record; every field is checked. sbox_rec_clear() after it. */
int boxstore_load(const char *state_dir, const char *id, struct sbox_rec *r, struct err *e);
void sbox_rec_clear(struct sbox_rec *r);
/* Let it end at this wall time, as the clock stands now. */
void sbox_rec_set_end(struct sbox_rec *r, int64_t end_ms);
/* Wall time of the end as the clock stands now: after a jump another than before. */
int64_t sbox_rec_end_now(const struct sbox_rec *r);
/* Call fn for the name of every folder that looks like a sandbox's. */
void boxstore_each(const char *state_dir, void (*fn)(void *arg, const char *id), void *arg);
/* Remove a tree of any depth without following links: folders that cannot be read
 * are made readable first. Blocks. */
int boxstore_remove_tree(const char *path, struct err *e);

/* A pidfd of the process if it still is the one that began at these ticks (pidstat_start), else -1. */
int proc_open_checked(pid_t pid, uint64_t ticks);
int proc_signal(int pidfd, int sig);
/* The init that was started for this id, by its arguments; 0 when none runs. For
 * sandboxes whose record is lost. */
pid_t proc_find_init(const char *id);

#endif
