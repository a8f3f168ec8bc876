/* cc-tui-local as a program of its own, in a scratch folder, spoken to with plain bytes. All of it
 * fails the test where something is not as it must be. */
#ifndef CCT_TESTS_LIB_PROV_H
#define CCT_TESTS_LIB_PROV_H

#include "plainhttp.h"

#include <cct/util/buf.h>
#include <cct/util/json.h>
#include <stdbool.h>
#include <sys/types.h>

struct prov { /* the one that was started last */
    char state_dir[96], runtime_dir[96], key[64];
    int control, traffic;
    pid_t pid;
    bool isolated; /* namespaces work here; else it runs with --unsafe */
};
extern struct prov prov;

/* Its own command; exit status, and what it printed. refused: as where containers may not make
 * namespaces. */
int prov_run(bool refused, struct buf *out, const char *command, const char *option);
/* Into `prov`, as the newest one wrote it. */
void prov_read_address(void);
void prov_serve(const char *option);
/* false: not within 20 s. */
bool prov_await(bool (*is_true)(const char *arg), const char *arg);

/* Requests of the control API; any error must have the shape that clients read. */
struct plainhttp prov_call(const char *method, const char *path, const char *json);
int prov_status_of(const char *method, const char *path, const char *json);
struct cJSON *prov_get_json(const char *method, const char *path, const char *json, int want);
/* The new sandbox's id; the caller frees it. */
char *prov_create(const char *json);
/* Valid until the next call. */
char *prov_box_path(const char *id, const char *tail);
/* A request to a port within a sandbox. */
struct plainhttp prov_through(const char *id, const char *port, const char *path,
                              const char *headers);
int prov_through_status(const char *id, const char *port, const char *path,
                          const char *headers);

/* A small file, NULL where there is none; the caller frees it. */
char *prov_read_text(const char *path);
/* From the record. */
pid_t prov_init_pid(const char *id);
bool prov_is_dead(pid_t pid);
bool prov_is_gone(const char *id);
bool prov_has_no_folder(const char *id);
bool prov_is_paused(const char *id);

/* Of a group of tests. */
int prov_setup(void **state);
int prov_teardown(void **state);

#endif
