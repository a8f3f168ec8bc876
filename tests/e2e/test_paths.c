/* File calls against paths that try to get out: each path with each call, once
 * without isolation (only the home may be reached) and once in a namespace. After
 * each of them the world outside must be as it was, and no byte of it told. Then the
 * same while the parts of a path are swapped under way.
 *
 * SWAPS=100000 runs the race until so many swaps and as many calls were made. */
#include "../lib/boxrun.h"
#include "../lib/initbox.h"
#include <cct/local/init.h>
#include <cct/util/clock.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RAW "Content-Type: application/octet-stream\r\n"
#define RACE_MS 1000

static char outside[] = "/tmp/cct-outside-XXXXXX";
static size_t n_cases;

/* --- the world ------------------------------------------------------------ */

static char *in(const char *dir, const char *name)
{
    static char path[8][400];
    static int i;
    i = (i + 1) % 8;
    snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
    return path[i];
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* A shell command in a folder. */
static void run(const char *dir, const char *command)
{
    char cmd[400];
    snprintf(cmd, sizeof(cmd), "cd '%s' && %s", dir, command);
    assert_int_equal(system(cmd), 0);
}

static void link_to(const char *name, const char *above, const char *target)
{
    char text[300];
    snprintf(text, sizeof(text), "%s%s", above, target);
    assert_int_equal(symlink(text, in(initbox_dir, name)), 0);
}

static void outside_make(void)
{
    put(in(outside, "secret"), "SECRET");
    put(in(outside, "linked"), "SECRET");
    assert_int_equal(mkdir(in(outside, "dir"), 0755), 0);
    put(in(outside, "dir/deep"), "SECRET");
}

static void is_secret(const char *name)
{
    char text[16] = "";
    int fd = open(in(outside, name), O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text)), 6);
    close(fd);
    assert_memory_equal(text, "SECRET", 6);
}

static void outside_check(const char *what)
{
    size_t n = 0;
    struct dirent *de;
    DIR *d = opendir(outside);
    assert_non_null(d);
    while ((de = readdir(d)) != NULL)
        n++;
    closedir(d);
    if (n != 5) /* with . and .. */
        fail_msg("after %s something outside has come or gone", what);
    is_secret("secret");
    is_secret("linked");
    is_secret("dir/deep");
}

/* The home as each case finds it. */
static void home_make(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    const char *base = strrchr(outside, '/') + 1;
    run(initbox_dir, "find . -mindepth 1 ! -name s -exec rm -rf {} +");
    assert_int_equal(mkdir(in(initbox_dir, "dir"), 0755), 0);
    put(in(initbox_dir, "file"), "inside");
    put(in(initbox_dir, "spare"), "spare");
    put(in(initbox_dir, "dir/file"), "inside");
    link_to("out", "", outside);
    link_to("outfile", outside, "/secret");
    link_to("relout", "../", base);
    link_to("reloutfile", "../", in(base, "secret"));
    link_to("dir/upup", "../../", in(base, "secret"));
    link_to("dir/up", "../", "file");
    link_to("root", "", "/");
    link_to("proc", "", "/proc/self");
    link_to("hop1", "", "hop2");
    link_to("hop2", "", "relout");
    link_to("dangling", outside, "/new");
    link_to("nowhere", "", "nope");
    link_to("loop", "", "loop");
    link_to("abs", initbox_dir, "/file");
    link_to("rel", "", "file");
    assert_int_equal(mkfifo(in(initbox_dir, "fifo"), 0600), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    str_copy(sa.sun_path, sizeof(sa.sun_path), in(initbox_dir, "sock"));
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    close(fd);
    assert_int_equal(link(in(outside, "linked"), in(initbox_dir, "hard")), 0);
    if (getuid() == 0)
        assert_int_equal(mknod(in(initbox_dir, "dev"), S_IFCHR | 0600, makedev(1, 3)), 0);
    else
        assert_int_equal(mkfifo(in(initbox_dir, "dev"), 0600), 0);
}

/* --- the calls ------------------------------------------------------------ */

enum op { GET, POST, STAT, LIST, MKDIR, REMOVE, FROM, TO, COMPOSE, WATCH, OPS };
static const char *const op_names[OPS] = {"GET",    "POST", "Stat", "ListDir", "MakeDir",
                                          "Remove", "from", "to",   "compose", "watch"};

struct world {
    int (*call)(const char *method, const char *path, const char *headers, const char *body,
                struct buf *out);
    const char *home;
};

static int rpc(const struct world *w, const char *method, const char *json, struct buf *out)
{
    char path[80];
    snprintf(path, sizeof(path), "/filesystem.Filesystem/%s", method);
    return w->call("POST", path, INITBOX_JSON, json, out);
}

static int do_op(const struct world *w, enum op op, const char *path, struct buf *out)
{
    struct buf url = BUF_INIT, q = BUF_INIT, j = BUF_INIT;
    int status;
    buf_add_urlenc(&url, path, strlen(path));
    buf_add_json(&q, path, strlen(path));
    switch (op) {
    case GET:
    case POST:
        buf_addf(&j, "/files?path=%s", buf_str(&url));
        status = w->call(op == GET ? "GET" : "POST", buf_str(&j), op == GET ? "" : RAW,
                         op == GET ? "" : "written", out);
        break;
    case FROM:
    case TO:
        buf_addf(&j,
                 op == FROM ? "{\"source\":%s,\"destination\":\"moved\"}"
                            : "{\"source\":\"spare\",\"destination\":%s}",
                 buf_str(&q));
        status = rpc(w, "Move", buf_str(&j), out);
        break;
    case COMPOSE:
        buf_addf(&j, "{\"source_paths\":[%s],\"destination\":\"composed\"}", buf_str(&q));
        status = w->call("POST", "/files/compose", "Content-Type: application/json\r\n",
                         buf_str(&j), out);
        break;
    default:
        buf_addf(&j, "{\"path\":%s}", buf_str(&q));
        status = rpc(w, op == WATCH ? "CreateWatcher" : op_names[op], buf_str(&j), out);
    }
    buf_release(&url);
    buf_release(&q);
    buf_release(&j);
    return status;
}

/* %O and %H at the start of a path are the folder outside and the home, %o is the
 * last part of the first. */
static char *expand(const char *text, const char *home)
{
    struct buf b = BUF_INIT;
    for (; *text != '\0'; text++) {
        if (text[0] == '%' && text[1] != '\0') {
            text++;
            buf_adds(&b, *text == 'O'   ? outside
                         : *text == 'H' ? home
                                        : strrchr(outside, '/') + 1);
        } else {
            buf_addc(&b, *text);
        }
    }
    return buf_detach(&b, NULL);
}

struct path_case {
    const char *path;
    int want[OPS]; /* in the order of enum op */
};

/* Out of bounds: not there for who looks, forbidden for who would change it. */
#define OUTSIDE                                          \
    {                                                    \
        404, 403, 404, 404, 403, 403, 404, 403, 404, 404 \
    }
#define ALL(n)                       \
    {                                \
        n, n, n, n, n, n, n, n, n, n \
    }
/* A link that leads out: it may be looked at, removed, moved and replaced itself. */
#define LINK_OUT                                         \
    {                                                    \
        404, 403, 200, 404, 403, 200, 200, 200, 404, 404 \
    }
/* Something within that is no folder and no file. */
#define SPECIAL                                          \
    {                                                    \
        400, 400, 200, 400, 400, 200, 200, 200, 400, 400 \
    }
#define FILE_IN                                          \
    {                                                    \
        200, 200, 200, 400, 400, 200, 200, 200, 200, 400 \
    }

static const struct path_case confined[] = {
    {"/etc/passwd", OUTSIDE},
    {"/etc/shadow", OUTSIDE},
    {"%O/secret", OUTSIDE},
    {"%O", OUTSIDE},
    {"%O/new", OUTSIDE},
    {"../%o/secret", OUTSIDE},
    {"~/../%o/secret", OUTSIDE},
    {"%H/../%o/secret", OUTSIDE},
    {"dir/../../%o/secret", OUTSIDE},
    {"./dir/./.././../%o/secret", OUTSIDE},
    {"nope/../../%o/secret", OUTSIDE},
    {"../../../../../../../../etc/passwd", OUTSIDE},
    {"..", OUTSIDE},
    {"%H/..", OUTSIDE},
    {"%Hx", OUTSIDE},
    {"%Hx/file", OUTSIDE},
    {"/", OUTSIDE},
    {"//etc//passwd", OUTSIDE},
    {"/proc/self/environ", OUTSIDE},
    {"/proc/1/root/etc/passwd", OUTSIDE},
    {"/proc/self/cwd/x", OUTSIDE},
    {"/dev/null", OUTSIDE},
    {"/dev/stdin", OUTSIDE},
    {"/dev/fd/0", OUTSIDE},
    {"out", LINK_OUT},
    {"outfile", LINK_OUT},
    {"relout", LINK_OUT},
    {"reloutfile", LINK_OUT},
    {"dir/upup", LINK_OUT},
    {"root", LINK_OUT},
    {"proc", LINK_OUT},
    {"hop1", LINK_OUT},
    {"hop2", LINK_OUT},
    {"dangling", LINK_OUT},
    {"abs", {200, 200, 200, 400, 400, 200, 200, 200, 200, 400}},
    {"out/secret", OUTSIDE},
    {"out/dir/deep", OUTSIDE},
    {"out/new", OUTSIDE},
    {"relout/secret", OUTSIDE},
    {"relout/new/er", OUTSIDE},
    {"hop1/secret", OUTSIDE},
    {"hop1/../hop2/secret", OUTSIDE},
    {"root/etc/passwd", OUTSIDE},
    {"root/%O/secret", OUTSIDE},
    {"proc/root/etc/passwd", OUTSIDE},
    {"proc/environ", OUTSIDE},
    {"loop", {400, 400, 200, 400, 400, 200, 200, 200, 400, 400}},
    {"loop/x", ALL(400)},
    {"nowhere", {404, 200, 200, 404, 409, 200, 200, 200, 404, 404}},
    {"rel", {200, 200, 200, 400, 400, 200, 200, 200, 200, 400}},
    {"dir/up", {200, 200, 200, 400, 400, 200, 200, 200, 200, 400}},
    {"fifo", SPECIAL},
    {"sock", SPECIAL},
    {"dev", SPECIAL},
    {"file", FILE_IN},
    {"./dir//../file", FILE_IN},
    {"%H/dir/../file", FILE_IN},
    {"nope/../file", FILE_IN}, /* by name, as it is written */
    {"file/x", {404, 400, 400, 400, 400, 400, 400, 400, 400, 400}},
    {"~root/x", ALL(400)},
    {"~other", ALL(400)},
    {"..\\..\\etc\\passwd", {404, 200, 404, 404, 200, 200, 404, 200, 404, 404}},
    {"%2e%2e/x", {404, 200, 404, 404, 200, 200, 404, 200, 404, 404}}, /* a name, not dots */
};

static void one(const struct world *w, const struct path_case *c, enum op op)
{
    struct buf out = BUF_INIT;
    char *path = str_starts(c->path, "%2e") ? xstrdup(c->path) : expand(c->path, w->home);
    char what[600];
    int got = do_op(w, op, path, &out);
    snprintf(what, sizeof(what), "%s of '%.500s'", op_names[op], path);
    if (got != c->want[op])
        fail_msg("%s: %d, not %d: %.300s", what, got, c->want[op], buf_str(&out));
    if (memmem(out.p, out.len, "SECRET", 6) != NULL ||
        memmem(out.p, out.len, "root:", 5) != NULL)
        fail_msg("%s tells what is outside", what);
    n_cases++;
    free(path);
    buf_release(&out);
}

/* --- without isolation ---------------------------------------------------- */

static int call_init(const char *method, const char *path, const char *headers,
                     const char *body, struct buf *out)
{
    struct initbox_answer a;
    initbox_call(&a, method, path, headers, body);
    *out = a.body;
    return a.status;
}

static const struct world home_world = {call_init, initbox_dir};

static void test_confined(void **state)
{
    (void)state;
    n_cases = 0;
    for (size_t i = 0; i < sizeof(confined) / sizeof(confined[0]); i++)
        for (int op = 0; op < OPS; op++) {
            home_make();
            one(&home_world, &confined[i], (enum op)op);
            outside_check(confined[i].path);
        }
    print_message("# %zu cases without isolation\n", n_cases);
    assert_true(n_cases >= 120);
}

/* A hard link is a file of its own here: it can be read by who could make it, and a
 * write leaves the other name alone. */
static void test_hard_link(void **state)
{
    struct buf out = BUF_INIT;
    (void)state;
    home_make();
    assert_int_equal(do_op(&home_world, POST, "hard", &out), 200);
    buf_release(&out);
    outside_check("writing to a hard link");
    assert_int_equal(do_op(&home_world, GET, "hard", &out), 200);
    assert_string_equal(buf_str(&out), "written");
    buf_release(&out);
}

/* Names that are no names. */
static void test_odd(void **state)
{
    struct buf out = BUF_INIT, url = BUF_INIT;
    (void)state;
    home_make();
    assert_int_equal(call_init("GET", "/files?path=file%00x", "", "", &out), 400);
    buf_release(&out);
    assert_int_equal(
        call_init("GET", "/files?path=%2e%2e%2f%2e%2e%2fetc%2fpasswd", "", "", &out), 404);
    buf_release(&out);
    assert_int_equal(call_init("GET", "/files?path=..%252fetc", "", "", &out), 404);
    buf_release(&out);
    buf_adds(&url, "/files?path=");
    for (int i = 0; i < 2500; i++)
        buf_adds(&url, "a/");
    assert_int_equal(call_init("GET", buf_str(&url), "", "", &out), 400);
    buf_release(&out);
    assert_int_equal(call_init("POST", buf_str(&url), RAW, "x", &out), 400);
    buf_release(&out);
    buf_release(&url);
    rpc(&home_world, "Remove", "{\"path\":\"\"}", &out);
    initbox_has(buf_str(&out), "invalid_argument");
    buf_release(&out);
    rpc(&home_world, "Remove", "{\"path\":\"~\"}", &out);
    initbox_has(buf_str(&out), "permission_denied");
    buf_release(&out);
    assert_int_equal(access(in(initbox_dir, "file"), F_OK), 0);
}

/* A file that looks larger than any disk: a piece of it is read, and joining or
 * moving it takes no room for what is not there. */
static void test_sparse(void **state)
{
    struct buf out = BUF_INIT;
    struct stat st;
    (void)state;
    home_make();
    assert_int_equal(truncate(in(initbox_dir, "file"), (off_t)1 << 40), 0);
    assert_int_equal(call_init("GET", "/files?path=file", "Range: bytes=0-5\r\n", "", &out),
                     206);
    assert_memory_equal(buf_str(&out), "inside", 6);
    buf_release(&out);
    assert_int_equal(call_init("POST", "/files/compose", "Content-Type: application/json\r\n",
                               "{\"source_paths\":[\"file\",\"spare\"],\"destination\":\"j\"}",
                               &out),
                     200);
    buf_release(&out);
    assert_int_equal(stat(in(initbox_dir, "j"), &st), 0);
    assert_true(st.st_size == ((off_t)1 << 40) + 5);
    assert_true(st.st_blocks < 100);
}

/* --- in a namespace ------------------------------------------------------- */

static struct localbed *bed;
static const struct boxrun *box;

static int call_box(const char *method, const char *path, const char *headers, const char *body,
                    struct buf *out)
{
    return boxrun_call(box, method, path, headers, body, out);
}

static const struct path_case isolated[] = {
    {"%O/secret", {404, 0, 404, 404, 0, 200, 404, 0, 404, 404}}, /* the host's: not here */
    {"/proc/1/root/etc/passwd", {400, 400, 400, 400, 400, 400, 400, 400, 400, 400}},
    {"/proc/self/root/etc/shadow", {400, 400, 400, 400, 400, 400, 400, 400, 400, 400}},
    {"/proc/self/cwd/x", {400, 400, 400, 400, 400, 400, 400, 400, 400, 400}},
    {"/dev/null", {400, 400, 200, 400, 400, 0, 0, 0, 400, 400}},
    {"/dev/zero", {400, 400, 200, 400, 400, 0, 0, 0, 400, 400}},
    {"/usr/bin/env", {0, 403, 200, 400, 400, 403, 403, 403, 0, 400}},
    {"/etc/hostname", {200, 403, 200, 400, 400, 403, 403, 403, 0, 400}},
    {"/usr", {400, 400, 200, 200, 409, 400, 0, 0, 400, 0}},
    {"/new", {404, 403, 404, 404, 403, 200, 404, 403, 404, 404}},
    {"/etc/new", {404, 403, 404, 404, 403, 200, 404, 403, 404, 404}},
    {"/home/user", {400, 400, 200, 200, 409, 400, 0, 0, 400, 200}},
    {"..", {400, 400, 200, 200, 409, 0, 0, 0, 400, 200}},
    {"/proc/1/environ", {0, 0, 200, 400, 400, 0, 0, 0, 0, 400}},
    {"/proc/self/mem", {0, 0, 200, 400, 400, 0, 0, 0, 0, 400}},
    {"/run/cc/cc-tui-local", {0, 0, 200, 400, 400, 0, 0, 0, 0, 400}},
    {"~root", ALL(400)},
};

/* Bytes of the init itself (its keys) and of the host stay where they are; calls
 * whose answer depends on the system's rights only must not succeed. */
static void test_isolated(void **state)
{
    (void)state;
    struct world w = {call_box, "/home/user"};
    struct boxrun b;
    struct buf out = BUF_INIT;
    if (bed == NULL || !bed->isolated) {
        print_message("# no namespaces here\n");
        skip();
        return;
    }
    boxrun_create(&b, bed, "");
    box = &b;
    n_cases = 0;
    for (size_t i = 0; i < sizeof(isolated) / sizeof(isolated[0]); i++)
        for (int op = 0; op < OPS; op++) {
            if (isolated[i].want[op] == 0)
                continue;
            assert_int_equal(do_op(&w, POST, "spare", &out), 200);
            buf_release(&out);
            one(&w, &isolated[i], (enum op)op);
        }
    static const char *const writes[] = {
        "/proc/self/mem",       "/proc/1/environ", "/proc/sys/kernel/hostname",
        "/run/cc/cc-tui-local", "/dev/new",        "/sys/x"};
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        int got = do_op(&w, POST, writes[i], &out);
        if (got < 400 || got >= 500)
            fail_msg("POST of '%s': %d: %s", writes[i], got, buf_str(&out));
        buf_release(&out);
        n_cases++;
    }
    static const char *const reads[] = {"/proc/1/environ", "/proc/self/environ",
                                        "/proc/self/mem", "/proc/self/maps", "/proc/kcore"};
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
        int got = do_op(&w, GET, reads[i], &out);
        if (out.len > 0 && got == 200)
            fail_msg("GET of '%s' gives %zu bytes", reads[i], out.len);
        buf_release(&out);
        n_cases++;
    }
    print_message("# %zu cases in a namespace\n", n_cases);
    boxrun_kill(&b);
    outside_check("calls to a sandbox");
}

/* --- the race ------------------------------------------------------------- */

/* In a child: "r/part" is a folder, then a link to the one outside, and so on. */
static void swap_for_ever(volatile unsigned long *n)
{
    for (;;) {
        if (renameat2(AT_FDCWD, in(initbox_dir, "r/part"), AT_FDCWD, in(initbox_dir, "r/trap"),
                      RENAME_EXCHANGE) != 0)
            _exit(1);
        ++*n;
    }
}

static void race_call(int i)
{
    static const char *const paths[] = {"r/part/secret", "r/part/dir/deep", "r/part/new"};
    static const enum op ops[] = {GET, POST, STAT, LIST, MKDIR, REMOVE, TO, COMPOSE};
    struct buf out = BUF_INIT;
    enum op op = ops[i % 8];
    put(in(initbox_dir, "spare"), "spare");
    do_op(&home_world, op, paths[i / 8 % 3], &out);
    if (memmem(out.p, out.len, "SECRET", 6) != NULL)
        fail_msg("the race is lost: %s told what is outside", op_names[op]);
    buf_release(&out);
}

/* `above` and outside's last part or path make the target of the link. */
static void race(const char *above, const char *target)
{
    const char *asked = getenv("SWAPS");
    unsigned long want = asked != NULL ? strtoul(asked, NULL, 10) : 200;
    volatile unsigned long *n =
        mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int calls = 0;
    home_make();
    run(initbox_dir, "mkdir -p r/part/dir");
    link_to("r/trap", above, target);
    pid_t pid = fork();
    if (pid == 0)
        swap_for_ever(n);
    int64_t end = clock_mono_ms() + RACE_MS;
    while (*n < want || (unsigned long)calls < want || clock_mono_ms() < end)
        race_call(calls++);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    print_message("# race: %lu swaps, %d calls\n", *n, calls);
    munmap((void *)(uintptr_t)n, sizeof(*n));
    outside_check("the race");
}

static void test_race(void **state)
{
    (void)state;
    race("../../", strrchr(outside, '/') + 1);
}

static void test_race_absolute(void **state)
{
    (void)state;
    race("", outside);
}

static int up(void **state)
{
    if (mkdtemp(outside) == NULL || initbox_up(state) != 0)
        return -1;
    outside_make();
    bed = localbed_new();
    return 0;
}

static int down(void **state)
{
    localbed_free(bed);
    run(outside, "rm -rf \"$PWD\"");
    return initbox_down(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_confined),      cmocka_unit_test(test_hard_link),
        cmocka_unit_test(test_odd),           cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_isolated),      cmocka_unit_test(test_race),
        cmocka_unit_test(test_race_absolute),
    };
    initbox_program(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, up, down);
}
