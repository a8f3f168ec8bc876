/* Tools as roles of a pair (cct/model/pair.h): every turn is a run of its own, with the
 * message as its stdin. Pure. */
#ifndef CCT_JOBS_PAIR_H
#define CCT_JOBS_PAIR_H

#include <cct/config/tools.h>
#include <cct/util/err.h>

/* The words of one turn; `session`: of the CLI's own, to go on with. *adapter: reads what it
 * prints. str_list_free(); NULL with *e when the tool cannot run so. */
char **pair_tool_command(const struct tool *t, const char *model, const char *session,
                         const char **adapter, struct err *e);

#endif
