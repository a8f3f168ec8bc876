/* What the decoder's core offers to adapters beyond the public header. */
#ifndef CCT_AGENT_PRIV_H
#define CCT_AGENT_PRIV_H

#include <cct/agent.h>

extern const struct agent_adapter agent_claude, agent_shell;

bool agent_dec_busy(const struct agent_dec *d); /* a turn is open */
bool agent_dec_cut(
    const struct agent_dec *d); /* the current line has no LF: the stream ended in it */
uint64_t agent_dec_start(const struct agent_dec *d); /* offset the decoder began at */
/* Time stamp of the events that follow in this line. */
void agent_dec_set_time(struct agent_dec *d, int64_t ms);
/* Adapters that split lines themselves say where the current one begins. */
void agent_dec_place(struct agent_dec *d, uint64_t offset);
/* Use up one index without an event: what depends on earlier lines must not
 * move the indexes of what follows, a resumed decoder has not seen them. */
void agent_dec_skip(struct agent_dec *d);
/* The events from here on are those of the process' end. */
void agent_dec_place_exit(struct agent_dec *d);
/* A turn_end when a turn is open, then exit. */
void agent_end_default(struct agent_dec *d, int code, int sig, const char *stderr_tail);

#endif
