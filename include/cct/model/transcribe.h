/* From agent events to transcript items and agent state. Runs on the net thread, for
 * live streams and for stored rows alike; pure. */
#ifndef CCT_MODEL_TRANSCRIBE_H
#define CCT_MODEL_TRANSCRIBE_H

#include <cct/model/agent_event.h>
#include <cct/model/event.h>

/* Turn an event into at most two item operations (cleaned), appended to ev. Keeps
 * no state: blocks are matched by id in the model. `who` names the agent. */
void transcribe(const struct agent_event *e, const char *who, struct ev_items *out);
/* What the agent does after this event; returns true if *agent changed. */
bool transcribe_agent_state(const struct agent_event *e, enum sb_agent *agent);
/* One cleaned line for the list's LAST LINE column, or NULL if e shows none. */
char *transcribe_last_line(const struct agent_event *e);

#endif
