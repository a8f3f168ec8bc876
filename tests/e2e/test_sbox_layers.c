/* Sandboxes of templates as the provider makes them: what the image gives, start
 * and ready command, sandboxes of builds. The provider's table in this process,
 * real sandboxes. */
#include <cct/local/initexec.h>
#include <cct/local/ns.h>
#include <cct/local/provider.h>
#include <cct/util/buf.h>
#include <cct/util/clock.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/map.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <event2/event.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_S 20
#define LAYER "0123456789abcdef0123456789abcdef"
#define OTHER "00000000000000000000000000000001"

static struct provider p;
static char root[64];
static char *layers[] = {(char[]){LAYER}};

/* Answer of the last operation. */
static struct {
    int n;
    struct sbox *b;
    struct err e;
} last;

static void on_done(void *arg, struct sbox *b, const struct err *e)
{
    (void)arg;
    last.n++;
    last.b = b;
    last.e = e ? *e : (struct err){0};
    event_base_loopbreak(p.base);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    event_base_loopbreak(p.base);
}

/* The provider's own tick is not what is tried here. */
static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

/* Run the loop until an answer is there. */
static void await(void)
{
    struct event *late = evtimer_new(p.base, on_late, NULL);
    struct timeval tv = {WAIT_S, 0};
    event_add(late, &tv);
    event_base_dispatch(p.base);
    event_free(late);
    if (last.n != 1)
        fail_msg("%d answers within %d s", last.n, WAIT_S);
}

static struct sbox *create(struct sbox_new n)
{
    struct err e = {0};
    n.template_id = "tpl";
    n.timeout_s = 60;
    n.internet = true;
    last.n = 0;
    last.b = NULL;
    if (sbox_create(&p, &n, on_done, NULL, &e) != 0) {
        last.e = e;
        return NULL;
    }
    await();
    return last.b;
}

static struct sbox *must_create(struct sbox_new n)
{
    struct sbox *b = create(n);
    if (!b)
        fail_msg("%s", last.e.text);
    return b;
}

static void end(struct sbox *b)
{
    char *dir = boxstore_dir(p.state_dir, b->rec.id);
    last.n = 0;
    sbox_kill(b, on_done, NULL);
    await();
    int64_t until = clock_mono_ms() + WAIT_S * 1000;
    while (access(dir, F_OK) == 0 && clock_mono_ms() < until)
        poll(NULL, 0, 2); /* a child of ours removes its files */
    assert_int_not_equal(access(dir, F_OK), 0);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    free(dir);
}

/* --- a command in it ---------------------------------------------------------- */

static struct buf said;
static int code;

static void on_out(void *arg, enum initexec_stream s, const char *text, size_t len)
{
    (void)arg;
    (void)s;
    buf_add(&said, text, len);
}

static void on_end(void *arg, int exit_code, const char *why)
{
    (void)arg;
    (void)why;
    code = exit_code;
    last.n++;
    event_base_loopbreak(p.base);
}

static const char *say(struct sbox *b, const char *command)
{
    struct initexec_spec s = {.command = command};
    buf_clear(&said);
    last.n = 0;
    initexec_start(p.base, b->rec.sock, b->rec.token, &s, on_out, on_end, NULL);
    await();
    return buf_str(&said);
}

/* --- cases -------------------------------------------------------------------- */

static void test_build_layer(void **state)
{
    struct sbox *b = must_create((struct sbox_new){.build_layer = LAYER, .hidden = true});
    (void)state;
    assert_string_equal(say(b, "mkdir -p /app && echo built > /app/f && npm config get prefix "
                               "2>/dev/null || echo $NPM_CONFIG_PREFIX"),
                        "/usr/local\n");
    assert_null(sbox_find(&p, b->rec.id));
    assert_ptr_equal(map_get(p.boxes, b->rec.id), b);
    assert_int_equal(sbox_count_running(&p), 0);
    assert_int_equal(sbox_count_hidden(&p), 1);
    end(b);
    assert_int_equal(sbox_count_hidden(&p), 0);
}

static void test_image(void **state)
{
    static const char vars[] = "{\"A\":\"image\",\"B\":\"image\"}", own[] = "{\"B\":\"own\"}";
    struct cJSON *env = json_parse(vars, sizeof(vars) - 1, NULL);
    struct cJSON *mine = json_parse(own, sizeof(own) - 1, NULL);
    struct tpl_image image = {
        .layers = layers, .n_layers = 1, .env = env, .workdir = (char[]){"/app"}};
    (void)state;
    struct sbox *b = must_create((struct sbox_new){.image = &image, .env = mine});
    assert_string_equal(say(b, "cat f; echo $A $B $PWD; echo x > f"),
                        "built\nimage own /app\n");
    assert_ptr_equal(sbox_find(&p, b->rec.id), b);
    struct sbox *two = must_create((struct sbox_new){.image = &image});
    assert_string_equal(say(two, "cat f; echo $B; id -un"), "built\nimage\nuser\n");
    end(b);
    end(two);
    json_free(env);
    json_free(mine);
}

/* Told of only when it is ready; what was started goes on. */
static void test_ready(void **state)
{
    struct tpl_image image = {
        .layers = layers,
        .n_layers = 1,
        .workdir = (char[]){"/app"},
        .start_cmd = (char[]){"sleep 0.3; touch up; exec sleep 1000"},
        .ready_cmd = (char[]){"echo x >> asked; test -e up"},
    };
    (void)state;
    struct sbox *b = must_create((struct sbox_new){.image = &image});
    say(b, "test -e up && grep -c x asked");
    assert_true(strtol(buf_str(&said), NULL, 10) >= 2);
    assert_string_equal(say(b, "pgrep -c -x sleep"), "1\n");
    end(b);
    image.ready_cmd = NULL;
    b = must_create((struct sbox_new){.image = &image});
    end(b);
}

static void test_not_ready(void **state)
{
    struct tpl_image image = {
        .layers = layers,
        .n_layers = 1,
        .start_cmd = (char[]){"echo no such port >&2; exit 3"},
        .ready_cmd = (char[]){"false"},
    };
    (void)state;
    assert_null(create((struct sbox_new){.image = &image}));
    assert_int_equal(last.e.code, ERR_SERVER);
    assert_non_null(strstr(last.e.text, "ended with exit code 3: no such port"));
    while (map_count(p.boxes) > 0)
        event_base_loop(p.base, EVLOOP_ONCE);
}

static void on_kill(evutil_socket_t fd, short what, void *arg)
{
    size_t it = 0;
    (void)fd;
    (void)what;
    (void)arg;
    sbox_kill(map_next(p.boxes, &it, NULL, NULL), NULL, NULL);
}

/* Killed, or dead by itself, before it is ready. */
static void test_gone(void **state)
{
    struct tpl_image image = {.layers = layers,
                              .n_layers = 1,
                              .start_cmd = (char[]){"exec sleep 1000"},
                              .ready_cmd = (char[]){"false"}};
    struct timeval tv = {0, 200000};
    (void)state;
    struct event *kill_it = evtimer_new(p.base, on_kill, NULL);
    event_add(kill_it, &tv);
    assert_null(create((struct sbox_new){.image = &image}));
    assert_non_null(strstr(last.e.text, "was killed"));
    while (map_count(p.boxes) > 0)
        event_base_loop(p.base, EVLOOP_ONCE);
    event_free(kill_it);
    struct sbox *b = must_create((struct sbox_new){.build_layer = OTHER, .hidden = true});
    last.n = 0;
    sbox_run_ready(b, &image, on_done, NULL);
    assert_int_equal(last.n, 0);
    proc_signal(b->pidfd, SIGKILL);
    await();
    assert_null(last.b);
    assert_int_not_equal(last.e.code, 0); /* its stream or its process ends first */
    while (map_count(p.boxes) > 0)
        event_base_loop(p.base, EVLOOP_ONCE);
}

static void test_refused(void **state)
{
    char *lost[] = {(char[]){"ffffffffffffffffffffffffffffffff"}};
    char *evil[] = {(char[]){"../../../../../../../../../../etc"}};
    struct tpl_image image = {.layers = lost, .n_layers = 1};
    (void)state;
    assert_null(create((struct sbox_new){.image = &image}));
    assert_non_null(strstr(last.e.text, "build it again"));
    image.layers = evil;
    assert_null(create((struct sbox_new){.image = &image}));
    p.unsafe = true;
    image.layers = layers;
    assert_null(create((struct sbox_new){.image = &image}));
    assert_non_null(strstr(last.e.text, "without isolation"));
    p.unsafe = false;
    assert_int_equal(map_count(p.boxes), 0);
    for (size_t i = 0; i < PROV_MAX_HIDDEN; i++)
        must_create((struct sbox_new){.hidden = true});
    assert_null(create((struct sbox_new){.hidden = true}));
    assert_int_equal(last.e.code, ERR_LIMIT);
    sbox_kill_all(&p);
    while (map_count(p.boxes) > 0)
        event_base_loop(p.base, EVLOOP_ONCE);
}

static void on_adopted(struct provider *same)
{
    (void)same;
    last.n++;
    event_base_loopbreak(p.base);
}

/* The next provider takes over what clients know, and ends what was of a build. */
static void test_adopt(void **state)
{
    struct sbox *plain = must_create((struct sbox_new){.alias = "base"});
    struct sbox *hidden = must_create((struct sbox_new){.build_layer = OTHER, .hidden = true});
    char id[24];
    pid_t pid = hidden->rec.pid;
    (void)state;
    str_copy(id, sizeof(id), plain->rec.id);
    sbox_free_all(&p);
    last.n = 0;
    sbox_adopt_all(&p, on_adopted);
    if (last.n == 0)
        await();
    assert_int_equal(map_count(p.boxes), 1);
    struct sbox *b = sbox_find(&p, id);
    assert_non_null(b);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    end(b);
}

static int set_up(void)
{
    const char *folder = getenv("B");
    char *path = xasprintf("%s/cc-tui-local", folder ? folder : "build/asan");
    struct err e = {0};
    p.exe = realpath(path, NULL);
    free(path);
    if (!p.exe || ns_probe(p.exe, &e) != 0) {
        printf("1..1\nok 1 - sandboxes of templates # SKIP %s\n",
               p.exe ? e.text : "cc-tui-local is not built");
        return -1;
    }
    str_copy(root, sizeof(root), "/tmp/cct-sbox-XXXXXX");
    if (!mkdtemp(root))
        die("no scratch folder");
    static const char *const dirs[] = {"boxes", "layers", "s"};
    for (size_t i = 0; i < 3; i++) {
        path = fs_join(root, dirs[i]);
        mkdir(path, 0711);
        free(path);
    }
    p.state_dir = p.runtime_dir = root;
    p.max_running = PROV_MAX_RUNNING;
    p.base = event_base_new();
    p.boxes = map_new();
    p.tick = evtimer_new(p.base, on_tick, NULL);
    struct err why = {0};
    if (ns_layers_probe(root, &why) == 0)
        return 0;
    printf("1..1\nok 1 - sandboxes of templates # SKIP %s\n", why.text);
    return -1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_layer), cmocka_unit_test(test_image),
        cmocka_unit_test(test_ready),       cmocka_unit_test(test_not_ready),
        cmocka_unit_test(test_gone),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_adopt),
    };
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return 0; /* the probe runs this program in its sandbox */
    signal(SIGPIPE, SIG_IGN);
    if (set_up() != 0)
        return 0;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    event_free(p.tick);
    event_base_dispatch(p.base); /* calls to sandboxes that are gone end, too */
    map_free(p.boxes, NULL);
    event_base_free(p.base);
    buf_release(&said);
    boxstore_remove_tree(root, NULL);
    free(p.exe);
    free(p.layers_refused);
    return failed;
}
