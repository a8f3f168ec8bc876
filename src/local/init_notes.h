/* The sandbox's log: what happened to its processes and files, for those who look
 * at the sandbox from outside. A ring of 1,000 entries and 256 KiB. Command names
 * are in it, arguments and variables never are: they may hold keys. */
#ifndef LOCAL_INIT_NOTES_H
#define LOCAL_INIT_NOTES_H

#include <cct/util/json.h>
#include <stddef.h>
#include <stdint.h>

enum note_level { NOTE_DEBUG, NOTE_INFO, NOTE_WARN, NOTE_ERROR };

struct note_field {
    const char *name, *value; /* NULL values are left out */
};

struct envd;
struct http_req;

/* Add an entry; there is one log, as there is one init. `logger`: who says so. */
void envd_note(enum note_level level, const char *logger, const struct note_field *fields,
               size_t n, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void envd_notes_free(void);
/* GET /cc/logs?start=MS: {"entries":[{ts,level,message,fields{}}]}, oldest first; no
 * two have the same time, so a reader can go on where it stopped. */
void envd_notes_get(struct envd *e, struct http_req *req);

#endif
