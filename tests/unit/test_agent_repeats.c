/* What agents say more than once counts once: usage that stands in several records of one
 * answer, at its begin and at its end, or again after a resume. And half a character in a
 * line's escapes costs neither that line nor its neighbours, whichever agent wrote it. */
#include "../lib/tape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cct/model/usage_sum.h>
#include <math.h>

struct says {
    const char *adapter, *stream;
    int64_t in, read, written, out;
    double cost; /* NaN: not said */
};

#define INIT "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s1\",\"model\":\"m\"}\n"
#define RECORD(text)                                                                        \
    "{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":[{\"type\":\"text\","   \
    "\"text\":\"" text "\"}],\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":30," \
    "\"cache_creation_input_tokens\":4,\"output_tokens\":1}}}\n"
#define BEGIN_END                                                                            \
    "{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\",\"message\":{\"id\":"  \
    "\"m1\",\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":30,\"cache_creation_"  \
    "input_tokens\":4,\"output_tokens\":1}}}}\n{\"type\":\"stream_event\",\"event\":{"       \
    "\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{"        \
    "\"input_tokens\":7,\"cache_read_input_tokens\":30,\"cache_creation_input_tokens\":4,"   \
    "\"output_tokens\":9}}}\n"
#define RESULT                                                                              \
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"abc\","   \
    "\"total_cost_usd\":0.25,\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":30," \
    "\"cache_creation_input_tokens\":4,\"output_tokens\":9}}\n"
/* here what the cache gave is part of the input */
#define QWEN_RESULT                                                                         \
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ab\"," \
    "\"usage\":{\"input_tokens\":37,\"cache_read_input_tokens\":30,\"output_tokens\":9}}\n"
#define PI_END                                                                               \
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"usage\":{"   \
    "\"input\":7,\"output\":9,\"cacheRead\":30,\"cacheWrite\":4,\"cost\":{\"total\":0.25}}," \
    "\"responseId\":\"r1\",\"stopReason\":\"stop\"}"
#define PI                                                                                 \
    "{\"type\":\"agent_start\"}\n{\"type\":\"message_start\",\"message\":{\"role\":"       \
    "\"assistant\"}}\n{\"type\":\"message_update\",\"message\":" PI_END                    \
    ",\"assistantMessageEvent\":{\"type\":\"text_delta\",\"delta\":\"a\"},\"usage\":{"     \
    "\"input\":7,\"output\":9}}\n{\"type\":\"message_end\",\"message\":" PI_END "}\n"      \
    "{\"type\":\"turn_end\",\"message\":" PI_END "}\n{\"type\":\"agent_end\",\"messages\"" \
    ":[" PI_END "]}\n{\"type\":\"agent_settled\"}\n"
#define STEP                                                                            \
    "{\"id\":\"p2\",\"messageID\":\"m1\",\"sessionID\":\"ses_1\",\"type\":\"step-"      \
    "finish\",\"reason\":\"stop\",\"tokens\":{\"input\":7,\"output\":9,\"reasoning\":0" \
    ",\"cache\":{\"read\":30,\"write\":4}},\"cost\":0.25}"
#define OPENCODE                                                                            \
    "{\"type\":\"step_start\",\"sessionID\":\"ses_1\",\"part\":{\"id\":\"p1\"}}\n"          \
    "{\"type\":\"step_finish\",\"sessionID\":\"ses_1\",\"part\":" STEP "}\n"                \
    "{\"type\":\"step_finish\",\"sessionID\":\"ses_1\",\"part\":" STEP "}\n"
#define SERVE_STEP                                                                      \
    "{\"type\":\"message.part.updated\",\"properties\":{\"sessionID\":\"ses_1\",\"part" \
    "\":" STEP "}}\n"
#define CODEX                                                                                \
    "{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n{\"type\":\"turn.started\"}\n"      \
    "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":37,\"cached_input_tokens\":30" \
    ",\"output_tokens\":9}}\n"

static const struct says streams[] = {
    {"claude", INIT RECORD("a") RECORD("b") RECORD("c") RESULT, 7, 30, 4, 9, 0.25},
    {"claude", INIT BEGIN_END RECORD("abc") RESULT, 7, 30, 4, 9, 0.25},
    {"claude", INIT BEGIN_END RECORD("a") BEGIN_END RECORD("b") RESULT, 7, 30, 4, 9, 0.25},
    {"qwen", INIT BEGIN_END RECORD("a") RECORD("b") QWEN_RESULT, 7, 30, -1, 9, (double)NAN},
    {"pi-json", PI, 7, 30, 4, 9, 0.25},
    {"pi", PI, 7, 30, 4, 9, 0.25},
    {"opencode", OPENCODE, 7, 30, 4, 9, 0.25},
    {"opencode-serve", SERVE_STEP SERVE_STEP SERVE_STEP, 7, 30, 4, 9, 0.25},
    {"codex", CODEX CODEX, 7, 30, -1, 9, (double)NAN},
};

static void add_up(const struct says *w, const struct tape *t)
{
    struct usage_sum u;

    usage_sum_init(&u);
    for (size_t i = 0; i < t->ev.n; i++) {
        struct usage g = usage_sum_growth(&u, &t->ev.v[i]);
        if (t->ev.v[i].kind == AGENT_USAGE)
            usage_sum_add(&u, &g);
    }
    if (u.all.in_tokens != w->in || u.all.cache_read != w->read || u.all.out_tokens != w->out ||
        (w->written >= 0 && u.all.cache_write != w->written))
        fail_msg("%s: %lld in, %lld read, %lld written, %lld out", w->adapter,
                 (long long)u.all.in_tokens, (long long)u.all.cache_read,
                 (long long)u.all.cache_write, (long long)u.all.out_tokens);
    if (!isnan(w->cost))
        assert_true(fabs(u.all.cost_usd - w->cost) < 1e-6);
    usage_sum_release(&u);
}

/* One answer in several records, with figures at its begin, at its end and in all. */
static void usage_said_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        const struct says *w = &streams[i];
        struct tape t;

        tape_run(&t, agent_adapter_find(w->adapter), w->stream, strlen(w->stream), 7, 0, 0, NULL);
        add_up(w, &t);
        tape_release(&t);
    }
}

/* --- half a character ----------------------------------------------------------------- */

#define HALF "x\\ud83d\\u2026y"

static const struct says halves[] = {
    {.adapter = "claude", .stream = INIT RECORD("before") RECORD(HALF) RECORD("after") RESULT},
    {.adapter = "qwen", .stream = INIT RECORD("before") RECORD(HALF) RECORD("after") RESULT},
    {.adapter = "codex",
     .stream = "{\"type\":\"item.completed\",\"item\":{\"id\":\"1\",\"type\":\"agent_message\","
               "\"text\":\"before\"}}\n{\"type\":\"item.completed\",\"item\":{\"id\":\"2\","
               "\"type\":\"agent_message\",\"text\":\"" HALF "\"}}\n{\"type\":"
               "\"item.completed\",\"item\":{\"id\":\"3\",\"type\":\"agent_message\",\"text\":"
               "\"after\"}}\n"},
    {.adapter = "opencode",
     .stream = "{\"type\":\"text\",\"sessionID\":\"s\",\"part\":{\"id\":\"1\",\"text\":"
               "\"before\"}}\n{\"type\":\"text\",\"sessionID\":\"s\",\"part\":{\"id\":\"2\","
               "\"text\":\"" HALF "\"}}\n{\"type\":\"text\",\"sessionID\":\"s\",\"part\":{"
               "\"id\":\"3\",\"text\":\"after\"}}\n"},
    {.adapter = "pi",
     .stream = "{\"type\":\"agent_start\"}\n{\"type\":\"message_end\",\"message\":{\"role\":"
               "\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"before\"},{\"type\":"
               "\"text\",\"text\":\"" HALF "\"},{\"type\":\"text\",\"text\":\"after\"}],"
               "\"responseId\":\"r\",\"stopReason\":\"stop\"}}\n"},
    {.adapter = "gemini",
     .stream = "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"before\",\"delta\":"
               "true}\n{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"" HALF
               "\",\"delta\":true}\n{\"type\":\"message\",\"role\":\"assistant\",\"content\":"
               "\"after\",\"delta\":true}\n"},
};

static void half_a_character(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
        const struct says *w = &halves[i];

        for (size_t chunk = 1; chunk <= 4096; chunk *= 8) {
            struct tape t;
            char *text;

            tape_run(&t, agent_adapter_find(w->adapter), w->stream, strlen(w->stream), chunk,
                     TAPE_NO_EXIT, 0, NULL);
            text = tape_texts(&t, AGENT_TEXT);
            if (!strstr(text, "x\xEF\xBF\xBD\xE2\x80\xA6y") || !strstr(text, "before") ||
                !strstr(text, "after"))
                fail_msg("%s: %s", w->adapter, text);
            free(text);
            tape_release(&t);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_said_again),
        cmocka_unit_test(half_a_character),
    };
    return cmocka_run_group_tests_name("agent_repeats", tests, NULL, NULL);
}
