/* The tools that can run in a sandbox: a compiled-in table, changed and extended by
 * `tools.conf` in the configuration folder:
 *
 *     [tool claude]                  a known name changes that tool,
 *     template = my-claude           a new one adds a tool
 *     timeout = 2h
 *     env.NO_COLOR = 1
 *     ask = yes                      permission questions come to you
 *     [tool mine]
 *     adapter = claude
 *     command = "my-agent --json 'two words'"
 *     needs = anthropic openrouter   one of them is enough
 *     needs_env = MY_KEY MY_TOKEN    or one of these variables, for keys of others
 *     label = My agent
 *     resume = --resume              behind it the id of the CLI's own session
 *     model = my-model               handed over behind model_flag = --model
 *     models = anthropic openrouter  whose models can be chosen
 *     model_names = qualified        they are called anthropic/NAME; plain = NAME
 *     ask_command = "my-agent --ask" takes the command's place with ask = yes
 *     prompt_flag = --system-file    or prompt_file = .mine/RULES.md
 *     skills = .mine/skills
 *
 * A tool is plain data; one owner, read-only after loading. */
#ifndef CCT_CONFIG_TOOLS_H
#define CCT_CONFIG_TOOLS_H

#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>

/* Providers of keys, as bits of tool.needs. */
enum tool_provider {
    TOOL_ANTHROPIC = 1u << 0,
    TOOL_ANTHROPIC_TOKEN = 1u << 1,
    TOOL_OPENAI = 1u << 2,
    TOOL_OPENROUTER = 1u << 3,
    TOOL_GITHUB = 1u << 4
};
/* How the sandbox' keeper drives it; what the adapter says (cct/agent.h). */
enum tool_mode { TOOL_PERSISTENT, TOOL_ONE_RUN, TOOL_RPC };

struct tool {
    char *name, *label;
    char *adapter;     /* name of a decoder, cct/agent.h */
    char *template_id; /* template of a new sandbox */
    char **argv;       /* the persistent command line, NULL at the end */
    char **env;        /* NAME=VALUE, NULL at the end; never a key */
    unsigned needs;    /* any one of these providers; 0 = no key */
    char **needs_env;  /* or any one of these variables; NULL = none */
    int timeout_s;     /* of a new sandbox; 0 = the general option */
    bool local_only;   /* only with the embedded provider */
    enum tool_mode mode;
    /* How a new command line is made from argv; NULL = the tool has no such thing. */
    char **resume;     /* a flag before the id of its own session, behind the others; or two
                          words: the second stands behind the first, the id at the end */
    char *model_flag;  /* "--model", "-m": followed by the model */
    char *model;       /* chosen when nothing else is said */
    char **models;     /* providers whose models it takes (cct/config/models.h) */
    bool qualified;    /* a model is called PROVIDER/NAME, not NAME */
    char *prompt_flag; /* followed by the path of a file with the system prompt */
    char *prompt_file; /* else the file below home that the tool reads by itself */
    char *skills_dir;  /* folder below home with the tool's skills */
    bool asks;         /* permission questions come to the user ("ask = yes") */
    char **ask_argv;   /* takes argv's place then; NULL: this tool cannot ask */
};

struct tools;

struct tools *tools_new(void); /* the compiled-in ones */
void tools_free(struct tools *t);
/* Apply a file. What is wrong with it is said line by line ("FILE:LINE: ...") and
 * left out; a tool that cannot work then is left out too. A missing file is fine.
 * 0, or an error when the file exists and cannot be read. */
int tools_load(struct tools *t, const char *path, void (*say)(void *ctx, const char *message),
               void *ctx, struct err *e);
/* The keys of a section, one by one, with what they say (help may be NULL); NULL at the end. */
const char *tools_key(size_t i, const char **help);
const struct tool *tools_find(const struct tools *t, const char *name); /* or NULL */
const struct tool *tools_at(const struct tools *t, size_t i); /* NULL past the end */

/* Name of the provider bit ("anthropic"), NULL for none; the bit of a name, 0 for none. */
const char *tool_provider_name(unsigned bit);
unsigned tool_provider_bit(const char *name);
/* The names of several bits, NULL behind the last one; how many. */
enum { TOOL_NAMES = 8 };
size_t tool_provider_names(unsigned bits, const char *names[TOOL_NAMES]);
/* Environment variables in which a provider's key goes to the sandbox: up to two
 * names; NULL when i is past the last. */
const char *tool_provider_env(unsigned bit, size_t i);
/* The providers that a start with this model (NULL: the tool's own) needs, any one of them. */
unsigned tool_needs(const struct tool *t, const char *model);
/* The variables of which any one is enough as well, borrowed; NULL: none, or the model is of
 * a provider whose key alone counts. */
char *const *tool_needs_env(const struct tool *t, const char *model);
/* The words of a start. What is added stands before a last word "-" (the message comes on
 * stdin). str_list_free(). */
struct tool_choice {
    const char *model;       /* NULL: the tool's own */
    const char *prompt_path; /* file with the system prompt; used by tools with prompt_flag */
    bool ask;                /* questions come to the user; needs ask_argv */
    const char *resume_id;   /* go on with that session of the CLI's own; needs resume */
};
char **tool_command(const struct tool *t, const struct tool_choice *c);
/* Split a command line into words as a shell would, with quotes and backslashes but
 * nothing expanded. NULL-terminated array, str_list_free(); NULL with *e. */
char **tool_words(const char *command, struct err *e);

#endif
