/* What kind of trouble an error is, so that the next step can be named: a key
 * to check, a wait, a bill, a model. Status first, words where it says little. */
#include <cct/agent.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* `word` in `text` without regard to case; a leading or trailing '|' in word asks
 * for a border there, so that "|key|" is not found in "keyboard". */
static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    bool head = word[0] == '|', tail = word[n - 1] == '|';

    word += head;
    n -= (size_t)head + (size_t)tail;
    for (const char *p = text; *p; p++) {
        if (tolower((unsigned char)*p) != word[0] || strncasecmp(p, word, n) != 0)
            continue;
        if (head && p > text && isalnum((unsigned char)p[-1]))
            continue;
        if (tail && isalnum((unsigned char)p[n]))
            continue;
        return true;
    }
    return false;
}

#define WORDS 14

static const struct {
    enum agent_error_class cls;
    const char *words[WORDS];
} table[] = {
    /* the first that fits wins */
    {AGENT_ERR_BILLING,
     {"credit balance", "billing", "insufficient_quota", "current quota", "payment",
      "insufficient credits"}},
    {AGENT_ERR_RATE,
     {"rate limit", "rate_limit", "too many requests", "usage limit", "hit your limit",
      "|429|"}},
    {AGENT_ERR_OVERLOAD, {"overloaded", "at capacity", "high demand", "|529|"}},
    {AGENT_ERR_MODEL,
     {"selected model", "model_not_found", "unknown model", "model not found",
      "unrecognized_model", "no such model", "model does not exist", "|model: "}},
    {AGENT_ERR_NETWORK,
     {"econn", "enotfound", "etimedout", "getaddrinfo", "network", "fetch failed", "connection",
      "socket hang up", "timed out", "|dns|", "lookup address", "sending request",
      "stream disconnected"}},
    {AGENT_ERR_AUTH,
     {"|key|", "|keys|", "api_key", "apikey", "auth", "login", "logged in", "credential"}},
};

static enum agent_error_class by_text(const char *text, enum agent_error_class only)
{
    for (size_t i = 0; text && i < sizeof(table) / sizeof(table[0]); i++) {
        if (only != AGENT_ERR_NONE && table[i].cls != only)
            continue;
        for (size_t k = 0; k < WORDS && table[i].words[k]; k++)
            if (has_word(text, table[i].words[k]))
                return table[i].cls;
    }
    return AGENT_ERR_OTHER;
}

enum agent_error_class agent_classify(int http_status, const char *text)
{
    switch (http_status) {
    case 0:
    case 400:
        return by_text(text, AGENT_ERR_NONE); /* empty accounts and bad keys come as 400 too */
    case 401:
    case 403:
        return AGENT_ERR_AUTH;
    case 402:
        return AGENT_ERR_BILLING;
    case 404: /* of the model's address, unless it says something else */
        return !text || has_word(text, "model") ? AGENT_ERR_MODEL : AGENT_ERR_OTHER;
    case 408:
        return AGENT_ERR_NETWORK;
    case 429: /* a spent quota will not come back by waiting */
        return by_text(text, AGENT_ERR_BILLING) == AGENT_ERR_BILLING ? AGENT_ERR_BILLING
                                                                     : AGENT_ERR_RATE;
    case 503:
    case 529:
        return AGENT_ERR_OVERLOAD;
    default:
        return AGENT_ERR_OTHER;
    }
}
