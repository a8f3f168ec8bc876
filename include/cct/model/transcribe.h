/* From agent events (as data, no agent include here: fields are passed in a neutral
 * struct) to transcript items and agent state. Runs on the net thread for live
 * streams and on the db thread for stored rows; pure. */
#ifndef CCT_MODEL_TRANSCRIBE_H
#define CCT_MODEL_TRANSCRIBE_H

#include <cct/model/event.h>

/* Mirror of struct agent_event with borrowed strings (cct/agent.h has the
 * meaning of each field); `kind` uses the same numbers. */
struct tr_event {
    int kind;
    uint64_t offset;
    uint32_t index;
    int64_t time_ms;
    const char *id, *text, *name, *title, *input, *output, *parent;
    int mode;
    bool final;
    int state, exit_code, signal, level;
    int retry_attempt, retry_max;
    double retry_delay_ms;
    int64_t in_tokens, cache_read, cache_write, out_tokens;
    double cost_usd;
    int outcome, error_class, http_status;
};
/* Turn an event into at most two item operations (cleaned), appended to ev. Keeps
 * no state: blocks are matched by id in the model. `who` names the agent. */
void transcribe(const struct tr_event *e, const char *who, struct ev_items *out);
/* What the agent does after this event; returns true if *agent changed. */
bool transcribe_agent_state(const struct tr_event *e, enum sb_agent *agent);
/* One cleaned line for the list's LAST LINE column, or NULL if e shows none. */
char *transcribe_last_line(const struct tr_event *e);

#endif
