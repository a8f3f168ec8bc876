/* main() of the fuzz targets when they are not built with -fsanitize=fuzzer: runs
 * the seeds of tests/fuzz/seeds/NAME/ and then mutations of them, which depend on
 * nothing but the seed number and their index. TAP on stdout.
 *   fuzz_x [--seed N] [--runs N] [--from N] [FILE...]   (FILE: only these inputs)
 * A failing case names its index; `--seed S --from I --runs 1` repeats it. */
#ifndef CCT_LIBFUZZER
#include <dirent.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* there only when a sanitizer is linked */
void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

enum { INPUT_MAX = 1 << 16, SEEDS_MAX = 1000 };

static struct {
    uint8_t *p;
    size_t len;
    char name[64];
} seeds[SEEDS_MAX];
static size_t n_seeds;
static char current[128];

static void say_current(void)
{
    ssize_t n = write(2, current, strlen(current));
    (void)n;
}

static void on_abort(int sig)
{
    say_current();
    signal(sig, SIG_DFL);
    raise(sig);
}

static uint64_t rng;

static uint32_t rnd(uint32_t below)
{
    rng += 0x9E3779B97F4A7C15ull; /* splitmix64 */
    uint64_t z = rng;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return below ? (uint32_t)((z ^ (z >> 31)) % below) : 0;
}

static void read_seed(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "cannot open seed \"%s\"\n", path);
        exit(1);
    }
    uint8_t *p = malloc(INPUT_MAX);
    if (!p || n_seeds == SEEDS_MAX)
        abort();
    size_t len = fread(p, 1, INPUT_MAX, f);
    fclose(f);
    const char *base = strrchr(path, '/');
    snprintf(seeds[n_seeds].name, sizeof(seeds[0].name), "%s", base ? base + 1 : path);
    /* exact size, so that a read past the end is seen */
    seeds[n_seeds].p = malloc(len + 1);
    memcpy(seeds[n_seeds].p, p, len);
    seeds[n_seeds++].len = len;
    free(p);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_seed_dir(const char *name)
{
    char path[512];
    struct dirent **list;
    snprintf(path, sizeof(path), "tests/fuzz/seeds/%s", name);
    int n = scandir(path, &list, NULL, by_name);
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.') {
            snprintf(path, sizeof(path), "tests/fuzz/seeds/%s/%s", name, list[i]->d_name);
            read_seed(path);
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

static const char *const tokens[] = {"\033[",
                                     "\033]",
                                     "\033P",
                                     "\033\\",
                                     "\x9b",
                                     "\x9c",
                                     "\x9d",
                                     "\xc2\x9b",
                                     "\a",
                                     "\b",
                                     "\r",
                                     "\n",
                                     "\r\n",
                                     "\t",
                                     "38;5;",
                                     "m",
                                     ";",
                                     ":",
                                     "65536",
                                     "\xe2\x80\xae",
                                     "\xe2\x80\x8d",
                                     "\xcc\x81",
                                     "\xe6\x97\xa5",
                                     "\xf0\x9f\x98\x80",
                                     "\xf0\x9f\x87\xa9",
                                     "\xed\xa0\xbd",
                                     "\xc0\x80",
                                     "{",
                                     "}",
                                     "[",
                                     "]",
                                     "\"",
                                     "\\",
                                     "\\u0000",
                                     "\\ud83d",
                                     ",",
                                     "null",
                                     "1e999",
                                     "-1",
                                     "0",
                                     "data: ",
                                     "\n\n",
                                     "=",
                                     "#",
                                     "Content-Length: ",
                                     "\r\n\r\n",
                                     "\xff",
                                     "\xfe",
                                     "%00",
                                     "../",
                                     "99999999999999999999"};

static size_t insert(uint8_t *b, size_t len, size_t at, const uint8_t *s, size_t n)
{
    if (n > INPUT_MAX - len)
        n = INPUT_MAX - len;
    memmove(b + at + n, b + at, len - at);
    memcpy(b + at, s, n);
    return len + n;
}

static size_t mutate(uint8_t *b, size_t len)
{
    static uint8_t copy[INPUT_MAX];
    size_t at = rnd((uint32_t)len + 1), n = rnd(1u << rnd(9));
    if (n > len - at)
        n = len - at;
    const char *t = tokens[rnd(sizeof(tokens) / sizeof(*tokens))];
    size_t other = rnd((uint32_t)n_seeds);
    switch (rnd(8)) {
    case 0:
        if (at < len)
            b[at] ^= (uint8_t)(1u << rnd(8));
        return len;
    case 1:
        if (at < len)
            b[at] = (uint8_t)rnd(256);
        return len;
    case 2: /* drop a piece */
        memmove(b + at, b + at + n, len - at - n);
        return len - n;
    case 3: /* double a piece */
        memcpy(copy, b + at, n);
        return insert(b, len, at, copy, n);
    case 4: /* a piece of another seed */
        if (seeds[other].len) {
            size_t from = rnd((uint32_t)seeds[other].len);
            n = rnd((uint32_t)(seeds[other].len - from)) + 1;
            return insert(b, len, at, seeds[other].p + from, n);
        }
        return len;
    case 5:
        return rnd(4) ? len : at; /* cut */
    default:
        return insert(b, len, at, (const uint8_t *)t, strlen(t));
    }
}

static void run(const uint8_t *p, size_t len)
{
    uint8_t *exact = malloc(len ? len : 1);
    if (!exact)
        abort();
    memcpy(exact, p, len);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

static void run_mutations(uint64_t seed, unsigned long from, unsigned long runs)
{
    static uint8_t b[INPUT_MAX];
    for (unsigned long i = from; i < from + runs; i++) {
        rng = seed * 1000003u + i;
        size_t k = rnd((uint32_t)n_seeds), len = n_seeds ? seeds[k].len : 0;
        if (len)
            memcpy(b, seeds[k].p, len);
        for (uint32_t m = rnd(8) + 1; m > 0; m--)
            len = mutate(b, len);
        snprintf(current, sizeof(current), "failed at --seed %llu --from %lu --runs 1\n",
                 (unsigned long long)seed, i);
        run(b, len);
    }
}

int main(int argc, char **argv)
{
    unsigned long long seed = 1;
    unsigned long from = 0, runs = 2000;
    const char *env = getenv("FUZZ_RUNS");
    bool files = false;
    if (env)
        runs = strtoul(env, NULL, 10);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
            runs = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc)
            from = strtoul(argv[++i], NULL, 10);
        else
            read_seed(argv[i]), files = true;
    }
    if (!files)
        read_seed_dir(basename(argv[0]));
    signal(SIGABRT, on_abort);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(say_current);
    for (size_t i = 0; i < n_seeds; i++) {
        snprintf(current, sizeof(current), "failed at seed file %s\n", seeds[i].name);
        run(seeds[i].p, seeds[i].len);
    }
    printf("ok 1 - %zu seed inputs\n", n_seeds);
    if (!files) {
        run_mutations(seed, from, runs);
        printf("ok 2 - %lu mutations, seed %llu\n", runs, seed);
    }
    printf("1..%d\n", files ? 1 : 2);
    for (size_t i = 0; i < n_seeds; i++)
        free(seeds[i].p);
    return 0;
}
#else
extern int cct_fuzzmain_unused;
#endif
