/* Commands about a provider that runs, or ran: stop and status. */
#include "serve_priv.h"
#include <cct/local/lifelog.h>
#include <cct/local/provider.h>
#include <cct/secrets/digest.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOP_MS 30000

struct running {
    int pidfd; /* -1: none runs */
    pid_t pid;
    int control, traffic;
    bool unsafe;
    char network[16];
    char limits[40], pause[16];
};

/* The provider of the address file, if it still is that process. */
static struct running find_running(const char *runtime_dir)
{
    struct running r = {.pidfd = -1};
    char *path = fs_join(runtime_dir, "local.json");
    size_t len;
    char *text = fs_read(path, 64 << 10, true, &len, NULL);
    struct cJSON *j = text ? json_parse(text, len, NULL) : NULL;
    if (j) {
        r.pid = (pid_t)json_i64(j, "pid", 0);
        r.control = (int)json_i64(j, "controlPort", 0);
        r.traffic = (int)json_i64(j, "trafficPort", 0);
        r.unsafe = json_bool(j, "unsafe", false);
        str_copy(r.limits, sizeof(r.limits), json_str(j, "limits", ""));
        str_copy(r.network, sizeof(r.network), json_str(j, "network", "host"));
        str_copy(r.pause, sizeof(r.pause), json_str(j, "pause", "signals"));
        if (r.pid > 1)
            r.pidfd = proc_open_checked(r.pid, (uint64_t)json_i64(j, "startTicks", 0));
    }
    json_free(j);
    if (text)
        explicit_bzero(text, len);
    free(text);
    free(path);
    return r;
}

static bool await_end(int pidfd, int ms)
{
    struct pollfd pfd = {pidfd, POLLIN, 0};
    return poll(&pfd, 1, ms) == 1;
}

struct leftovers {
    const char *state_dir;
    struct lifelog *life; /* NULL: events cannot be kept */
};

/* A sandbox no provider looks after any more. */
static void end_leftover(void *arg, const char *id)
{
    const struct leftovers *l = arg;
    const char *state_dir = l->state_dir;
    struct sbox_rec r;
    if (boxstore_load(state_dir, id, &r, NULL) == 0) {
        int pidfd = proc_open_checked(r.pid, r.start_ticks);
        if (pidfd >= 0) {
            if (r.isolated)
                proc_signal(pidfd, SIGKILL);
            else
                sbox_kill_tree(r.pid);
            await_end(pidfd, 10000);
            close(pidfd);
        }
        unlink(r.sock);
        if (r.cgroup[0] && !cgroup_remove(r.cgroup, 0)) {
            cgroup_kill(r.cgroup);
            cgroup_remove(r.cgroup, 10000);
        }
        if (l->life && !r.hidden)
            lifelog_add(l->life, &r, LIFE_KILLED, "stop", clock_wall_ms());
        sbox_rec_clear(&r);
    } else {
        sbox_end_lost(id);
    }
    char *dir = boxstore_dir(state_dir, id);
    boxstore_remove_tree(dir, NULL);
    free(dir);
}

static void end_leftovers(const char *state_dir)
{
    struct leftovers l = {.state_dir = state_dir};
    char *path = fs_join(state_dir, "events.jsonl");
    if (digest_init() == 0)
        l.life = lifelog_open(path, clock_wall_ms(), NULL);
    boxstore_each(state_dir, end_leftover, &l);
    lifelog_free(l.life);
    free(path);
}

/* What is left when nobody serves is ours to end. */
static void end_unserved(const char *state_dir)
{
    char *path = fs_join(state_dir, "lock");
    int lock = access(state_dir, F_OK) == 0 ? fs_lock(path, NULL) : -1;
    if (lock >= 0) {
        end_leftovers(state_dir);
        close(lock);
    }
    free(path);
}

int serve_stop(const struct serve_opts *o)
{
    char *state, *runtime;
    if (!serve_places(o, &state, &runtime))
        return 1;
    struct running r = find_running(runtime);
    bool was = r.pidfd >= 0;
    if (was) {
        proc_signal(r.pidfd, SIGUSR1);
        if (!await_end(r.pidfd, STOP_MS)) {
            proc_signal(r.pidfd, SIGKILL);
            await_end(r.pidfd, 5000);
        }
        close(r.pidfd);
    }
    end_unserved(state);
    free(state);
    free(runtime);
    printf(was ? "the local provider has stopped\n" : "no local provider was running\n");
    return 0;
}

static void count_one(void *arg, const char *id)
{
    (void)id;
    ++*(int *)arg;
}

int serve_status(const struct serve_opts *o)
{
    char *state, *runtime;
    int boxes = 0;
    if (!serve_places(o, &state, &runtime))
        return 1;
    struct running r = find_running(runtime);
    if (r.pidfd >= 0) {
        close(r.pidfd);
        boxstore_each(state, count_one, &boxes);
    }
    free(state);
    free(runtime);
    if (r.pidfd < 0) {
        printf("no local provider is running\n");
        return 1;
    }
    printf("running: pid %d, control port %d, traffic port %d, sandboxes %d, limits of a "
           "sandbox: %s, pause by %s, network: %s%s\n",
           (int)r.pid, r.control, r.traffic, boxes,
           r.limits[0] ? r.limits : "no memory, no CPU", r.pause, r.network,
           r.unsafe ? ", NOT ISOLATED" : "");
    return 0;
}
