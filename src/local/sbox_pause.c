/* A sandbox stands still and goes on again, by a request or because its time is over; the time
 * itself, and the dead-man timer of its init that follows it. */
#include "sbox_priv.h"
#include <cct/local/initcall.h>
#include <cct/local/lifelog.h>
#include <cct/local/provider.h>
#include <cct/util/clock.h>
#include <cct/util/log.h>
#include <cct/util/map.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CALL_MS 5000 /* the init's answer to a control call */
#define PAUSED_MS (24 * 3600 * 1000LL)
#define SAVE_MS 2000 /* between tries to write a record */
#define JUMP_MS 2000 /* less is the clock being steered */

static void control_call(struct sbox *b, const char *path, const char *json, initcall_fn fn)
{
    struct initcall *c = initcall_start(b->p->base, b->rec.sock, b->rec.token, "POST", path,
                                        json, CALL_MS, fn, fn ? b : NULL);
    if (fn)
        b->call = c;
}

static void send_deadline(struct sbox *b)
{
    int64_t at = b->rec.state == SBOX_PAUSED ? clock_boot_ms() + PAUSED_MS
                                             : b->rec.end_boot_ms + SBOX_DEADMAN_MS;
    char json[64];
    snprintf(json, sizeof(json), "{\"deadline\":%lld}", (long long)at);
    control_call(b, "/cc/deadline", json, NULL);
}

/* True when its processes stand still, or go again, without noticing. */
static bool freeze(struct sbox *b, bool on)
{
    if (!b->rec.cgroup[0])
        return false;
    if (cgroup_freeze(b->rec.cgroup, on) == 0)
        return true;
    log_error("sandbox %s: its group '%s' cannot be %s: %s", b->rec.id, b->rec.cgroup,
              on ? "frozen" : "thawed", strerror(errno));
    return false;
}

static void ask_pause(struct sbox *b, bool memory, initcall_fn fn)
{
    char json[64];
    snprintf(json, sizeof(json), "{\"frozen\":%s,\"memory\":%s}",
             freeze(b, true) ? "true" : "false", memory ? "true" : "false");
    control_call(b, "/cc/pause", json, fn);
}

static void set_end(struct sbox *b, int64_t end_ms)
{
    sbox_rec_set_end(&b->rec, end_ms);
    sbox_save(b);
    send_deadline(b);
    provider_touch(b->p);
}

void sbox_settle(struct sbox *b)
{
    if (b->rec.state == SBOX_PAUSED) {
        ask_pause(b, true, NULL);
    } else {
        freeze(b, false);
        control_call(b, "/cc/resume", NULL, NULL);
        set_end(b, sbox_rec_end_now(&b->rec));
    }
}

static void on_paused(void *arg, int status, const char *body, size_t len)
{
    (void)body;
    (void)len;
    struct sbox *b = arg;
    struct err e = {0};
    b->call = NULL;
    b->phase = SBOX_LIVE;
    if (status != 204) {
        b->rec.cold = false;
        freeze(b, false);
        control_call(b, "/cc/resume", NULL, NULL); /* the pause may only come late */
        err_set(&e, ERR_SERVER, "sandbox '%s' could not be paused (status %d)", b->rec.id,
                status);
    } else {
        b->rec.state = SBOX_PAUSED;
        sbox_rec_set_end(&b->rec, clock_wall_ms());
        sbox_save(b);
        send_deadline(b);
        sbox_tell(b, LIFE_PAUSED, b->reason ? b->reason : "request");
        b->reason = NULL;
    }
    sbox_operation_done(b, &e);
    if (e.code != 0 && b->phase == SBOX_LIVE && b->rec.end_boot_ms <= clock_boot_ms())
        sbox_kill(b, NULL, NULL); /* its time is over, one way or the other */
    provider_touch(b->p);
}

static int begin(struct sbox *b, sbox_done done, void *arg, struct err *e)
{
    if (b->phase != SBOX_LIVE)
        return err_set(e, ERR_CONFLICT, "sandbox '%s' is changing its state", b->rec.id);
    b->phase = SBOX_CHANGING;
    b->done = done;
    b->done_arg = arg;
    return 0;
}

static const char *memory_json(bool memory)
{
    return memory ? NULL : "{\"memory\":false}";
}

int sbox_pause(struct sbox *b, bool memory, sbox_done done, void *arg, struct err *e)
{
    if (b->rec.state == SBOX_PAUSED)
        return err_set(e, ERR_CONFLICT, "sandbox '%s' is already paused", b->rec.id);
    int rc = begin(b, done, arg, e);
    if (rc != 0)
        return rc;
    b->rec.cold = !memory;
    ask_pause(b, memory, on_paused);
    return 0;
}

static void on_resumed(void *arg, int status, const char *body, size_t len)
{
    (void)body;
    (void)len;
    struct sbox *b = arg;
    struct err e = {0};
    b->call = NULL;
    b->phase = SBOX_LIVE;
    if (status != 204) {
        b->rec.state = SBOX_PAUSED;
        sbox_rec_set_end(&b->rec, clock_wall_ms());
        ask_pause(b, true, NULL); /* the resume may only come late */
        err_set(&e, ERR_SERVER, "sandbox '%s' could not be resumed (status %d)", b->rec.id,
                status);
    } else {
        b->rec.cold = false;
        freeze(b, false);
    }
    sbox_save(b);
    send_deadline(b);
    if (e.code == 0)
        sbox_tell(b, LIFE_RESUMED, NULL);
    provider_touch(b->p);
    sbox_operation_done(b, &e);
}

int sbox_resume(struct sbox *b, int64_t timeout_s, bool memory, sbox_done done, void *arg,
                struct err *e)
{
    if (b->rec.state == SBOX_RUNNING)
        return err_set(e, ERR_CONFLICT, "sandbox '%s' is already running", b->rec.id);
    if (sbox_count_running(b->p) >= (size_t)b->p->max_running)
        return err_set(e, ERR_LIMIT, "the limit of %d running sandboxes is reached",
                       b->p->max_running);
    int rc = begin(b, done, arg, e);
    if (rc != 0)
        return rc;
    int64_t now = clock_wall_ms();
    b->rec.state = SBOX_RUNNING;
    b->rec.started_ms = now;
    sbox_rec_set_end(&b->rec, now + timeout_s * 1000);
    control_call(b, "/cc/resume", memory_json(memory), on_resumed);
    return 0;
}

void sbox_move_end(struct sbox *b, int64_t end_ms)
{
    set_end(b, end_ms);
    sbox_tell(b, LIFE_UPDATED, NULL);
}

void sbox_renew(struct provider *p)
{
    size_t it = 0;
    struct sbox *b;
    while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL)
        if (b->phase == SBOX_LIVE)
            send_deadline(b);
}

/* What a full disk refused; true while it does. */
static bool save_again(struct provider *p)
{
    bool any = false;
    size_t it = 0;
    struct sbox *b;
    while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL) {
        if (b->is_unsaved && b->phase == SBOX_LIVE)
            sbox_save(b);
        any = any || b->is_unsaved;
    }
    return any;
}

/* The wall clock was set: what clients are told follows it, what is left stays. */
static void follow_wall(struct provider *p)
{
    int64_t offset = clock_wall_ms() - clock_boot_ms();
    int64_t jump = offset - p->wall_minus_boot;
    if (p->wall_minus_boot == 0)
        p->wall_minus_boot = offset;
    else if (jump > JUMP_MS || jump < -JUMP_MS) {
        log_info("the wall clock was moved by %lld s", (long long)(jump / 1000));
        p->wall_minus_boot = offset;
        size_t it = 0;
        struct sbox *b;
        while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL)
            if (sbox_is_visible(b) && b->rec.state == SBOX_RUNNING) {
                b->rec.end_ms = sbox_rec_end_now(&b->rec);
                sbox_save(b);
            }
    }
}

int64_t sbox_expire(struct provider *p)
{
    follow_wall(p);
    int64_t now = clock_boot_ms(), next = save_again(p) ? SAVE_MS : 15000;
    size_t it = 0;
    struct sbox *b;
    while ((b = map_next(p->boxes, &it, NULL, NULL)) != NULL) {
        if (b->phase != SBOX_LIVE || b->rec.state != SBOX_RUNNING)
            continue;
        int64_t left = b->rec.end_boot_ms - now;
        if (left > 0) {
            next = left < next ? left : next;
            continue;
        }
        log_info("sandbox %s expired", b->rec.id);
        b->reason = "timeout";
        if (b->rec.auto_pause)
            sbox_pause(b, !b->rec.auto_pause_cold, NULL, NULL,
                       NULL); /* live and running: cannot refuse */
        else
            sbox_kill(b, NULL, NULL);
    }
    return next;
}
