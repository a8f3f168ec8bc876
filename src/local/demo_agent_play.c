/* What a model would do, written down: a message with [[case:NAME]] in it is answered as
 * the table says. With them every tool's whole way is tried without a model: a tool call,
 * slow words, refusals of the provider, a question, the end in the middle of a turn. */
#include "demo_agent.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MARK "[[case:"
#define SLOW_WORDS 300
#define SLOW_MS 100
#define CHATTER_MS 50
#define RETRIES 3

static const struct play {
    const char *name;
    const char *text, *command, *done; /* one step, or one with a command and one behind it */
    int status, retries;               /* the provider's answer; retries before a good one */
} plays[] = {
    {.name = "plain", .text = "Hello! The answer is 4."},
    {.name = "second", .text = "That is the second turn: I still remember the first one."},
    {.name = "tool",
     .text = "I will create the file now.",
     .command = "printf 'hello from the agent\\n' > hello.txt && cat hello.txt",
     .done = "Done: hello.txt holds one line."},
    {.name = "toolfail",
     .text = "Let me look at that folder.",
     .command = "echo partial output; ls ./no-such-folder; exit 3",
     .done = "The folder does not exist, so the command failed with status 3."},
    {.name = "toolsleep",
     .text = "Starting a long command.",
     .command = "echo started; sleep 25; echo finished",
     .done = "The long command is over."},
    {.name = "nap",
     .text = "I will rest a little.",
     .command = "sleep 1; echo rested",
     .done = "That was a short rest."},
    {.name = "pass", .text = "I looked at all of it.\n\nVERDICT: PASS"},
    {.name = "fail", .text = "The last line is missing.\n\n**VERDICT: FAIL**"},
    {.name = "e401", .status = 401},
    {.name = "e402", .status = 402},
    {.name = "e403", .status = 403},
    {.name = "e404", .status = 404},
    {.name = "e429", .status = 429, .retries = RETRIES},
    {.name = "e500", .status = 500, .retries = RETRIES},
    {.name = "e529", .status = 529, .retries = RETRIES},
    {.name = "retry429", .text = "Hello! The answer is 4.", .status = 429, .retries = 2},
};

static const struct {
    int status;
    const char *words;
} refusals[] = {
    {401, "invalid x-api-key"},
    {402, "Your credit balance is too low"},
    {403, "This key has no permission for this model"},
    {404, "model: no-such-model"},
    {429, "This request would exceed the rate limit"},
    {500, "Internal server error"},
    {529, "Overloaded"},
};

static void refuse(const struct play *p, struct demo_end *end)
{
    end->how = DEMO_FAILED;
    end->status = p->status;
    for (size_t i = 0; i < COUNT(refusals); i++)
        if (refusals[i].status == p->status)
            end->what = refusals[i].words;
}

static void play(struct demo *d, const struct play *p, struct demo_end *end)
{
    char conclusion[512] = "";

    for (int i = 1; i <= p->retries; i++)
        d->as->retry(d, i, RETRIES, p->status);
    if (!p->text)
        refuse(p, end);
    else if (!p->command)
        demo_say(d, p->text);
    else {
        demo_run(d, p->text, p->command, conclusion, sizeof(conclusion));
        if (!d->interrupted)
            demo_say(d, str_starts(conclusion, "not allowed") ? conclusion : p->done);
    }
}

/* w0 w1 w2 ... at the speed of a model. */
static void play_words(struct demo *d, int words)
{
    struct buf b = BUF_INIT;

    for (int i = 0; i < words; i++)
        buf_addf(&b, "w%d ", i);
    d->as->step(d);
    d->as->text(d, buf_str(&b), SLOW_MS);
    if (!d->interrupted)
        d->as->stop(d, false);
    buf_release(&b);
}

/* Many short steps: something new on every screen that shows it, whatever the tool. */
static void play_chatter(struct demo *d)
{
    char text[64];

    for (int i = 0; i < SLOW_WORDS && !demo_pause(d, CHATTER_MS); i++) {
        snprintf(text, sizeof(text), "step %d of the chatter: nothing new here", i);
        demo_say(d, text);
    }
}

static void play_recall(struct demo *d)
{
    size_t n = d->mem.said.n - 1; /* but for this one */
    char *text =
        n ? xasprintf("I remember %zu of your messages, the first was: %s", n, d->mem.said.v[0])
          : xstrdup("I remember nothing: this is the first message.");

    demo_say(d, text);
    free(text);
}

static void play_cut(struct demo *d, struct demo_end *end)
{
    d->as->step(d);
    d->as->text(d, "This answer is cut of", 0);
    d->as->stop(d, true);
    end->how = DEMO_CUT;
}

/* A question with choices, for a tool that lets its user choose. */
static void play_question(struct demo *d)
{
    static const char input[] =
        "{\"questions\":[{\"question\":\"Which colour?\",\"header\":\"Colour\","
        "\"multiSelect\":false,\"options\":[{\"label\":\"Red\",\"description\":\"like fire\"},"
        "{\"label\":\"Blue\",\"description\":\"like water\"}]}]}";
    const char *word;
    struct cJSON *j;
    char id[40], *text;
    struct buf b = BUF_INIT;

    demo_new_call(d, id, sizeof(id));
    d->as->step(d);
    d->as->call(d, id, "AskUserQuestion", input);
    word = d->as->ask ? d->as->ask(d, id, "AskUserQuestion", input) : NULL;
    j = word ? json_parse(word, strlen(word), NULL) : NULL;
    text = xstrdup(json_str_of(json_first(json_path(j, "updatedInput.answers"))));
    if (!text)
        text = xstrdup(json_str(j, "message", "nothing"));
    buf_addf(&b, "You chose: %s", text);
    d->as->answer(d, &(struct demo_answer){id, "AskUserQuestion", input, &b, false, -1});
    if (!d->interrupted)
        demo_say(d, buf_str(&b));
    free(text);
    json_free(j);
    buf_release(&b);
}

static void play_crash(struct demo *d)
{
    d->as->step(d);
    d->as->text(d, "I will not come to the end of", 0);
    fprintf(stderr, "fatal: the demo agent was told to crash\n");
    exit(70);
}

/* [[say:TEXT]] is answered by TEXT: what a prompt of another's making wants to hear. */
static bool play_say(struct demo *d, const char *text)
{
    const char *p = strstr(text, "[[say:"), *end = p ? strstr(p, "]]") : NULL;
    char *words;

    if (!end)
        return false;
    p += strlen("[[say:");
    words = xstrndup(p, (size_t)(end - p));
    demo_say(d, words);
    free(words);
    return true;
}

/* [[turns:A,B,...]] in an earlier message of the session, or in this one: the case of each
 * turn from there on, the last one for those behind it. */
static bool scripted(const struct demo *d, char name[32])
{
    static const char mark[] = "[[turns:";
    const char *p = NULL;
    size_t n = d->mem.said.n, turn = 0;

    while (n > 0 && !p) {
        p = strstr(d->mem.said.v[--n], mark);
        turn++;
    }
    if (!p)
        return false;
    for (p += strlen(mark); turn > 1 && strcspn(p, ",") < strcspn(p, "]"); turn--)
        p += strcspn(p, ",") + 1;
    return sscanf(p, "%31[a-z0-9]", name) == 1;
}

bool demo_play(struct demo *d, const char *text, struct demo_end *end)
{
    const char *p = strstr(text, MARK);
    char name[32] = "";
    int words;

    if (!p && !scripted(d, name))
        return play_say(d, text);
    if (p)
        sscanf(p + strlen(MARK), "%31[a-z0-9]", name);
    for (size_t i = 0; i < COUNT(plays); i++)
        if (str_eq(plays[i].name, name)) {
            play(d, &plays[i], end);
            return true;
        }
    if (str_eq(name, "slow"))
        play_words(d, SLOW_WORDS);
    else if (sscanf(name, "words%4d", &words) == 1)
        play_words(d, words);
    else if (str_eq(name, "chatter"))
        play_chatter(d);
    else if (str_eq(name, "recall"))
        play_recall(d);
    else if (str_eq(name, "maxtokens"))
        play_cut(d, end);
    else if (str_eq(name, "question"))
        play_question(d);
    else if (str_eq(name, "crash"))
        play_crash(d);
    else
        demo_say(d, "Hello! The answer is 4.");
    return true;
}
