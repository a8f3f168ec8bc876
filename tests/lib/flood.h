/* A sandbox whose agent prints as fast as it is read: control plane and data plane of one
 * running session on loopback, its log a text over and over again. Answers are made before
 * they are asked for, so that little of the machine is the server's. For measuring. */
#ifndef CCT_TESTS_FLOOD_H
#define CCT_TESTS_FLOOD_H

#include <cct/store.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOOD_ID "iflood00000000000000"

struct flood;
/* The text is borrowed and ends in LF. Nothing of it is there yet. */
struct flood *flood_start(const char *text, size_t len);
void flood_stop(struct flood *f);
int flood_port(const struct flood *f);
/* From now on the log has so many bytes (it never gets shorter). */
void flood_grow(struct flood *f, uint64_t to);
/* The log is followed live; false after ms. */
bool flood_followed(struct flood *f, int ms);
/* Bytes of the log that were handed out so far, some of them perhaps twice. */
uint64_t flood_sent(struct flood *f);

/* A connection that says "PLAIN" and a line feed gets the bytes of the log and nothing else:
 * the text once, or all that is there by now, and its end. */

/* A database in dir with the row of that sandbox, its tool and its session. */
void flood_store(const char *dir, const char *tool);
/* bench_env() of a cc-tui that shows it. */
char **flood_env(const struct flood *f, const char *dir);

#endif
