/* Every key of the key table pressed on the real program: a table of cases per group, one run
 * of cc-tui on a pseudo terminal per group. A case says how to come to where the key counts,
 * what the key does there, and how to come back; what it does must not be so before. */
#ifndef CCT_TESTS_LIB_KEYRUN_H
#define CCT_TESTS_LIB_KEYRUN_H

#include <cct/ui/keymap.h>
#include <stdbool.h>
#include <stddef.h>

/* A script is a row of
 *   Down gg ^X^E     keys as the configuration names them
 *   'text'           typed at once        <text>   a bracketed paste
 *   [text] ![text]   waits until it stands on the screen, or does so no more; in quotes where
 *                    it has brackets: "text" !"text"
 *   #500             waits until the program has sent that many bytes since the key
 *   {command}        waits until a shell command succeeds; $C is the program with its options,
 *                    the folder is the group's own
 *   ~                waits until nothing moves and the next key is one of its own
 * and all but the last of a case ends with a wait. */
struct key_case {
    enum action act;
    const char *from;  /* to where the key counts; "": it does already */
    const char *want;  /* waits that are not over before the key, and are after it */
    const char *back;  /* to where the next case begins */
    const char *probe; /* typed behind the key to see what it did, or NULL */
    bool once;         /* the probe is not tried without the key: it would do other things */
    int nth;           /* of its keys this one alone, from 1 on; 0 = each of them */
};
#define KEY(a, f, w, b) {.act = ACT_##a, .from = (f), .want = (w), .back = (b)}
#define KEY_PROBED(a, f, p, w, b) \
    {.act = ACT_##a, .from = (f), .want = (w), .back = (b), .probe = (p)}
#define KEY_THEN(a, f, p, w, b) \
    {.act = ACT_##a, .from = (f), .want = (w), .back = (b), .probe = (p), .once = true}
#define KEY_NTH(a, i, f, w, b) \
    {.act = ACT_##a, .from = (f), .want = (w), .back = (b), .nth = (i)}
/* A line of a set-up: a demo agent of that name, more of its options behind it. */
#define DEMO(name) "$C new --tool demo --name " name " -q\n"
struct key_group {
    const char *name;
    int h, w;
    const char *setup;       /* for the shell, in the group's folder */
    const char *begin;       /* script when the program has started */
    const struct key_case *cases;
    size_t n;
    const char *const *args; /* of the program, NULL: --local alone */
    const char *faultd;      /* configuration of a faultd that it talks to; NULL: the local
                              * provider, and left out where that can isolate nothing */
    void (*prepare)(int control, int traffic, const char *key); /* knows the local provider */
    bool shell;              /* started from a shell, by the begin script */
};
extern const struct key_group *const key_groups[];
extern const size_t n_key_groups;

/* The ways in which terminals send a key of that name, the most usual one first. */
#define KEY_WAYS 4
struct key_ways {
    size_t n;
    char v[KEY_WAYS][16];
};
void key_bytes(const char *name, struct key_ways *w);
/* The test program of some groups, "list input". */
int keyrun_main(const char *groups);

#endif
