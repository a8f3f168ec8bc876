/* The words for how a tool's call and a turn went. */
#include <cct/model/agent_event.h>

#include <stddef.h>

const char *const agent_tool_state_words[] = {"running", "ok", "failed", "denied", "unknown"};
const char *const agent_outcome_words[] = {"ok", "failed", "interrupted", "truncated"};

const char *agent_tool_state_name(enum agent_tool_state s)
{
    return (size_t)s <= AGENT_TOOL_UNKNOWN ? agent_tool_state_words[s] : "?";
}

const char *agent_outcome_name(enum agent_outcome o)
{
    return (size_t)o <= AGENT_TRUNCATED ? agent_outcome_words[o] : "?";
}
