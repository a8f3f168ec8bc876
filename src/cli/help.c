/* Help and completion: texts drawn from the tables. */
#include <cct/cli.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 79, LEFT = 32 }; /* of a line; of the column in front of an explanation */

/* Words over lines, those after the first one `indent` cells in. */
static void add_wrapped(struct buf *b, const char *text, size_t indent)
{
    size_t at = indent, n;

    for (const char *p = text; *p; p += n + (p[n] == ' ')) {
        n = strcspn(p, " ");
        if (at > indent && at + 1 + n > WIDTH) {
            buf_addf(b, "\n%*s", (int)indent, "");
            at = indent;
        }
        buf_addf(b, "%s%.*s", at > indent ? " " : "", (int)n, p);
        at += n + (at > indent);
    }
    buf_addc(b, '\n');
}

static void add_flags(struct buf *b, cli_set which)
{
    for (int f = 0; f < CLI_FLAG_COUNT; f++) {
        const struct cli_flag_row *r = &cli_flags[f];
        char left[64], letter[8] = "    ";
        if (!(which >> f & 1))
            continue;
        if (r->letter)
            snprintf(letter, sizeof(letter), "-%c, ", r->letter);
        snprintf(left, sizeof(left), "%s--%s%s%s", letter, r->name, *r->value ? " " : "",
                 r->value);
        if (strlen(left) > 28)
            buf_addf(b, "  %s\n%*s", left, LEFT, "");
        else
            buf_addf(b, "  %-28s  ", left);
        add_wrapped(b, r->help, LEFT);
    }
}

/* The first sentence alone: more is said by the command's own help. */
static void add_commands(struct buf *b, const char *group)
{
    size_t n = group ? strlen(group) : 0;
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name; cmd++)
        if (!group || (strncmp(cmd->name, group, n) == 0 && cmd->name[n] == ' ')) {
            const char *end = strstr(cmd->help, ". ");
            char *first = xstrndup(cmd->help, end ? (size_t)(end - cmd->help) : strlen(cmd->help));
            buf_addf(b, "  %-16s  ", cmd->name);
            add_wrapped(b, first, 20);
            free(first);
        }
}

static const char more[] =
    "\nSANDBOX is an id, the begin of one, or a name. Keys are never arguments: E2B_API_KEY\n"
    "in the environment, or the E2B CLI's own configuration. Exit status: 0 done, 1 failed,\n"
    "2 wrong usage, 3 some of several failed, 4 key missing or refused, 5 not found,\n"
    "6 cannot reach the service, 7 declined, 130 interrupted.\n";

char *cli_help_text(enum cli_cmd_id id, const char *group)
{
    const struct cli_cmd *cmd = &cli_commands[id];
    struct buf b = BUF_INIT;

    if (id == CLI_CMD_SCREEN && !group) {
        buf_adds(&b, "usage: cc-tui [OPTIONS]             the screen\n"
                     "       cc-tui [OPTIONS] COMMAND ... one thing, without the screen\n\n"
                     "Commands ('cc-tui COMMAND --help' tells more):\n");
        add_commands(&b, NULL);
        buf_adds(&b, "\nOptions:\n");
        add_flags(&b, CLI_GLOBAL);
        buf_adds(&b, more);
    } else if (id == CLI_CMD_SCREEN) {
        buf_addf(&b, "usage: cc-tui %s COMMAND\n\nCommands:\n", group);
        add_commands(&b, group);
    } else {
        char *what = xasprintf("%s%s%s%s", cmd->help, *cmd->aliases ? " (also: " : "", cmd->aliases,
                               *cmd->aliases ? ")" : "");
        buf_addf(&b, "usage: cc-tui %s%s%s%s\n\n", cmd->name, cmd->flags ? " [OPTIONS]" : "",
                 *cmd->args ? " " : "", cmd->args);
        add_wrapped(&b, what, 0);
        free(what);
        if (cmd->flags) {
            buf_adds(&b, "\nOptions:\n");
            add_flags(&b, cmd->flags);
        }
        buf_adds(&b, "\nOptions of every command:\n");
        add_flags(&b, CLI_GLOBAL);
    }
    return buf_detach(&b, NULL);
}

/* --- completion -------------------------------------------------------------- */

static void add_words(struct buf *b, const char *group)
{
    size_t n = group ? strlen(group) : 0;
    const char *sep = "";
    char last[32] = "";
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name; cmd++) {
        const char *word = cmd->name;
        if (group && (strncmp(word, group, n) != 0 || word[n] != ' '))
            continue;
        word += group ? n + 1 : 0;
        char first[32];
        size_t len = strcspn(word, " ");
        snprintf(first, sizeof(first), "%.*s", (int)len, word);
        if (strcmp(first, last) == 0)
            continue;
        buf_addf(b, "%s%s", sep, first);
        str_copy(last, sizeof(last), first);
        sep = " ";
    }
}

static void add_flag_words(struct buf *b)
{
    for (int f = 0; f < CLI_FLAG_COUNT; f++)
        buf_addf(b, "%s--%s", f ? " " : "", cli_flags[f].name);
}

#define WITH_SANDBOX "send logs interrupt restart pause resume timeout kill"

static void complete_bash(struct buf *b)
{
    buf_adds(b, "_cc_tui() {\n"
                "  local cur=${COMP_WORDS[COMP_CWORD]} cmd=${COMP_WORDS[1]} words=\n"
                "  if [[ $cur == -* ]]; then words='");
    add_flag_words(b);
    buf_adds(b, "'\n  elif [ \"$COMP_CWORD\" -eq 1 ]; then words='");
    add_words(b, NULL);
    buf_adds(b, "'\n  else case $cmd in\n    local) words='");
    add_words(b, "local");
    buf_adds(b, "' ;;\n    config) words='");
    add_words(b, "config");
    buf_adds(b, "' ;;\n    completion) words='bash zsh fish' ;;\n    ");
    for (const char *p = WITH_SANDBOX; *p; p++)
        buf_addc(b, *p == ' ' ? '|' : *p);
    buf_adds(b, ") words=$(cc-tui ls --format pretty --no-input 2>/dev/null |"
                " awk 'NR > 1 {print $2, $1}') ;;\n"
                "  esac; fi\n"
                "  COMPREPLY=()\n" /* compgen -W would carry out what is in a name */
                "  local word\n"
                "  while read -r word; do\n"
                "    [[ -n $word && $word == \"$cur\"* ]] && COMPREPLY+=(\"$(printf %q \"$word\")\")\n"
                "  done < <(printf '%s\\n' \"$words\" | tr -s ' ' '\\n')\n"
                "}\ncomplete -F _cc_tui cc-tui\n");
}

static void complete_fish(struct buf *b)
{
    buf_adds(b, "complete -c cc-tui -f\n");
    for (const struct cli_cmd *cmd = cli_commands + 1; cmd->name; cmd++) {
        const char *sp = strchr(cmd->name, ' ');
        if (sp)
            buf_addf(b,
                     "complete -c cc-tui -n '__fish_seen_subcommand_from %.*s' -a %s -d '%s'\n"
                     "complete -c cc-tui -n __fish_use_subcommand -a %.*s\n",
                     (int)(sp - cmd->name), cmd->name, sp + 1, cmd->help, (int)(sp - cmd->name),
                     cmd->name);
        else
            buf_addf(b, "complete -c cc-tui -n __fish_use_subcommand -a %s -d \"%s\"\n",
                     cmd->name, cmd->help);
    }
    for (int f = 0; f < CLI_FLAG_COUNT; f++) {
        buf_addf(b, "complete -c cc-tui -l %s", cli_flags[f].name);
        if (cli_flags[f].letter)
            buf_addf(b, " -s %c", cli_flags[f].letter);
        buf_addf(b, "%s -d \"%s\"\n", *cli_flags[f].value ? " -r" : "", cli_flags[f].help);
    }
    buf_adds(b, "complete -c cc-tui -n '__fish_seen_subcommand_from " WITH_SANDBOX "' -a "
                "'(cc-tui ls --no-input 2>/dev/null | awk \"NR > 1 {print \\$2}\")'\n");
}

char *cli_completion_text(const char *shell)
{
    struct buf b = BUF_INIT;

    if (strcmp(shell, "bash") == 0) {
        complete_bash(&b);
    } else if (strcmp(shell, "zsh") == 0) {
        buf_adds(&b, "#compdef cc-tui\nautoload -U +X bashcompinit && bashcompinit\n");
        complete_bash(&b);
    } else if (strcmp(shell, "fish") == 0) {
        complete_fish(&b);
    } else {
        return NULL;
    }
    return buf_detach(&b, NULL);
}
