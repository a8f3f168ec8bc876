/* A transcript as a file that people keep: Markdown, plain text, or a JSON object a line.
 * Pure; texts that came in pieces are written once they are whole. */
#ifndef CCT_MODEL_EXPORT_H
#define CCT_MODEL_EXPORT_H

#include <cct/model/agent_event.h>
#include <cct/model/sandbox.h>
#include <cct/util/buf.h>

enum export_format { EXPORT_MARKDOWN, EXPORT_TEXT, EXPORT_JSON, EXPORT_FORMATS };
/* For app_export() alone: the agent's events themselves, a line of JSON each (cct/agent.h). */
enum { EXPORT_EVENTS = EXPORT_FORMATS };
const char *export_format_name(enum export_format f); /* "md", "text", "jsonl" */
int export_format_parse(const char *name);            /* or -1; "markdown", "txt", "json" too */

struct exporter;
/* `who` names the agent where an event does not. */
struct exporter *export_new(enum export_format f, const char *who);
void export_free(struct exporter *x);
/* Each appends what can be written by now. JSON has texts as the agent gave them, escaped;
 * the others have them cleaned. */
void export_begin(struct exporter *x, const struct sandbox *s, struct buf *out);
void export_event(struct exporter *x, const struct agent_event *ev, struct buf *out);
void export_end(struct exporter *x, struct buf *out);

#endif
