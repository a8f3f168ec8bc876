/* What the roles of a pair are told, and the verdict in what the checker says. */
#include <cct/model/pair.h>

#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define QUOTE_BYTES (24u << 10) /* of an answer that is handed on: its end */

static const char designer_prompt[] =
    "You are the designer of a pair: you do the work, a checker looks at it afterwards in "
    "this same machine and folder. Do the task completely. End with a short report: what you "
    "did, where it is, how it can be checked.";

static const char checker_prompt[] =
    "You are the checker of a pair: a designer works on the task below in this same machine "
    "and folder. Look at the work itself, not only at the report: read the files, run what can "
    "be run. Change nothing. Say what is wrong or missing, each point with its place.";

static const char verdict_rule[] =
    "The last line of your answer must be exactly one of these two:\n"
    "VERDICT: PASS\n"
    "VERDICT: FAIL";

const char *pair_default_prompt(enum pair_role r)
{
    return r == PAIR_CHECKER ? checker_prompt : designer_prompt;
}

/* --- messages ------------------------------------------------------------------- */

/* Without the line breaks that files end with. */
static void add_trimmed(struct buf *b, const char *text)
{
    size_t n = strlen(text);

    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    buf_add(b, text, n);
}

static void add_quoted(struct buf *b, const char *what, const char *text)
{
    size_t len = text ? strlen(text) : 0, from = 0;

    buf_addf(b, "\n\n%s", what);
    if (!len) {
        buf_adds(b, " nothing was said.");
        return;
    }
    if (len > QUOTE_BYTES) {
        from = len - QUOTE_BYTES;
        while (from < len && ((unsigned char)text[from] & 0xC0) == 0x80)
            from++;
        buf_addf(b, "\n[the first %zu bytes are left out]", from);
    }
    buf_addc(b, '\n');
    add_trimmed(b, text + from);
}

static void add_prompt(struct buf *b, const struct pair *p)
{
    const char *own = p->side[p->role].prompt;

    add_trimmed(b, own && *own ? own : pair_default_prompt(p->role));
}

static void add_designer(struct buf *b, const struct pair *p, bool first)
{
    if (first) {
        add_prompt(b, p);
        add_quoted(b, "The task:", p->task);
    }
    if (p->review) {
        if (!first)
            buf_adds(b, "The checker did not pass the work.");
        add_quoted(b, "What the checker says:", p->review);
        buf_adds(b, "\n\nPut it right, then report again.");
    }
}

static void add_checker(struct buf *b, const struct pair *p, bool first)
{
    if (first) {
        add_prompt(b, p);
        add_quoted(b, "The task:", p->task);
    } else {
        buf_adds(b, "The designer has worked on. Check again.");
    }
    add_quoted(b, "What the designer reports:", p->report);
    buf_addf(b, "\n\n%s", verdict_rule);
}

char *pair_message(const struct pair *p)
{
    bool first = !p->side[p->role].session;
    struct buf b = BUF_INIT;

    buf_addf(&b, "@%s ", pair_role_name(p->role));
    if (p->cut && !first)
        buf_addf(&b, "Your last turn was broken off. Go on where you were, then answer as asked."
                     "%s%s",
                 p->role == PAIR_CHECKER ? "\n\n" : "",
                 p->role == PAIR_CHECKER ? verdict_rule : "");
    else if (p->asked && !first)
        buf_addf(&b, "Your answer had no verdict. Judge the work now. %s", verdict_rule);
    else if (p->role == PAIR_CHECKER)
        add_checker(&b, p, first);
    else
        add_designer(&b, p, first);
    return buf_detach(&b, NULL);
}

/* --- the verdict ---------------------------------------------------------------- */

static bool is_ornament(char c)
{
    return isspace((unsigned char)c) || (c && strchr("*_`#>~-=.!\"'", c));
}

/* "**VERDICT: PASS**" and the like. */
static enum pair_verdict verdict_of(const char *s, size_t n)
{
    static const char word[] = "verdict";

    while (n && is_ornament(*s))
        s++, n--;
    while (n && is_ornament(s[n - 1]))
        n--;
    if (n < sizeof(word) || strncasecmp(s, word, sizeof(word) - 1) != 0)
        return PAIR_NO_VERDICT;
    s += sizeof(word) - 1;
    n -= sizeof(word) - 1;
    while (n && is_ornament(*s))
        s++, n--;
    if (!n || *s != ':')
        return PAIR_NO_VERDICT;
    s++, n--;
    while (n && is_ornament(*s))
        s++, n--;
    if (n == 4 && strncasecmp(s, "pass", 4) == 0)
        return PAIR_PASS;
    return n == 4 && strncasecmp(s, "fail", 4) == 0 ? PAIR_FAIL : PAIR_NO_VERDICT;
}

static bool all_ornament(const char *s, size_t n)
{
    while (n && is_ornament(*s))
        s++, n--;
    return !n;
}

enum pair_verdict pair_verdict(const char *text)
{
    size_t end = text ? strlen(text) : 0;

    while (end) {
        size_t start = end;

        while (start && text[start - 1] != '\n')
            start--;
        if (!all_ornament(text + start, end - start))
            return verdict_of(text + start, end - start);
        end = start ? start - 1 : 0;
    }
    return PAIR_NO_VERDICT;
}
