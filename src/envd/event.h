/* One message of a process stream, decoded. */
#ifndef CCT_ENVD_EVENT_H
#define CCT_ENVD_EVENT_H

#include <cct/envd.h>

enum proc_event_kind { PROC_START, PROC_DATA, PROC_END, PROC_OTHER };
struct proc_event {
    enum proc_event_kind kind;
    int pid;
    enum envd_stream stream;
    char *data; /* decoded bytes, owned */
    size_t len;
    bool exited;
    int exit_code;
    char *status; /* owned, or NULL */
};
/* 0 or ERR_PROTO: no JSON, or output that is no base64. Unknown events are OTHER.
 * Fields that are absent are zero: that is how their zero value is sent. */
int proc_event_parse(const char *json, size_t len, struct proc_event *ev);
void proc_event_release(struct proc_event *ev);

#endif
