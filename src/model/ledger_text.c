/* Sums as text: money, and tables for other programs. */
#include <cct/model/ledger.h>

#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void ledger_usd_text(char *dst, size_t size, double usd, size_t unpriced, size_t of)
{
    if (of && unpriced >= of)
        str_copy(dst, size, "unpriced");
    else
        snprintf(dst, size, "$%.*f%s", usd > 0 && usd < 0.1 ? 4 : 2, usd, unpriced ? "+?" : "");
}

void ledger_sums_text(char *dst, size_t size, const struct ledger_sums *s)
{
    ledger_usd_text(dst, size, ledger_usd(s), ledger_unpriced(s), s->spans + s->turns);
}

/* --- CSV --------------------------------------------------------------------------------- */

/* A cell that begins like a formula is none. */
static void add_text(struct buf *b, const char *s)
{
    buf_addc(b, '"');
    if (*s && strchr("=+-@\t", *s))
        buf_addc(b, '\'');
    for (; *s; s++) {
        if (*s == '"')
            buf_addc(b, '"');
        buf_addc(b, *s);
    }
    buf_addc(b, '"');
}

static void add_usd(struct buf *b, double usd, size_t unpriced, size_t of)
{
    if (!of || unpriced < of)
        buf_addf(b, ",%.6f", usd);
    else
        buf_addc(b, ',');
}

static void add_sums(struct buf *b, const struct ledger_sums *s)
{
    add_usd(b, s->sandbox_usd, s->unpriced_spans, s->spans);
    add_usd(b, s->agent_usd, s->unpriced_turns, s->turns);
    buf_addf(b, ",%.3f,%.3f,%.3f,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%zu,%zu,%zu\n",
             (double)s->run_ms / 1000, (double)s->vcpu_ms / 1000, (double)s->mib_ms / 1024 / 1000,
             s->in_tokens, s->cache_read, s->cache_write, s->out_tokens, s->turns,
             ledger_unpriced(s), s->estimates);
}

static void add_group(struct buf *b, enum ledger_by by, const struct ledger_group *g)
{
    buf_addf(b, "%s,", ledger_by_name(by));
    add_text(b, g->name);
    buf_addc(b, ',');
    add_text(b, g->label ? g->label : "");
    add_sums(b, &g->sums);
}

void ledger_csv(const struct ledger_report *r, int by, struct buf *b)
{
    char at[40];

    buf_adds(b, "by,name,label,sandbox_usd,agent_usd,run_seconds,vcpu_seconds,gib_seconds,"
                "input_tokens,cache_read_tokens,cache_write_tokens,output_tokens,turns,unpriced,"
                "estimated\n");
    if (by == LEDGER_ALL_BYS) {
        buf_adds(b, "total,,");
        add_sums(b, &r->all);
    }
    for (int k = 0; k < LEDGER_BYS; k++)
        for (size_t i = 0; (by == LEDGER_ALL_BYS || by == k) && i < r->by[k].n; i++)
            add_group(b, (enum ledger_by)k, &r->by[k].v[i]);
    for (size_t i = 0; (by == LEDGER_ALL_BYS || by == LEDGER_BY_HOUR) && i < r->n_hours; i++) {
        clock_format_rfc3339(at, sizeof(at), r->hours[i].at);
        buf_addf(b, "hour,%s,", at);
        add_sums(b, &r->hours[i].sums);
    }
}
