/* The built-in templates. All of them mean the same thing here: the host's programs
 * read-only, and a private writable home. The names tell the client which agent's
 * command line is meant. */
#include <cct/local/ctl.h>

static const struct ctl_template all[] = {
    {"localbase00000000000", "base"},   {"localdemo00000000000", "demo"},
    {"localshell0000000000", "shell"},  {"localclaude000000000", "claude"},
    {"localcodex0000000000", "codex"},  {"localopencode0000000", "opencode"},
    {"localpi0000000000000", "pi"},
};

const struct ctl_template *ctl_template_all(size_t *n)
{
    *n = sizeof(all) / sizeof(all[0]);
    return all;
}
