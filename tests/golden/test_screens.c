/* Golden screens: each file in tests/golden/screens is a script (size, rows, agent events,
 * keys; see tests/lib/screenscript.h) with the screens it must show. UPDATE=1 rewrites
 * them; review the difference. */
#include "../lib/screenscript.h"

#include <cct/util/fs.h>
#include <cct/util/xalloc.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The screen and the calls since the last one, onto the file as it should be. */
static void show(struct script *s, struct buf *out)
{
    char *dump = script_screen(s);
    buf_adds(out, "screen\n");
    buf_adds(out, dump);
    buf_adds(out, buf_str(&s->app->calls));
    buf_clear(&s->app->calls);
    buf_adds(out, "end\n");
    free(dump);
}

/* Run the script; `out` becomes the file with the screens as they are now. */
static void run_script(struct script *s, const char *text, const char *file, struct buf *out)
{
    bool in_screen = false;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        char *line = xstrndup(p, n);
        p += n + (p[n] == '\n');
        if (in_screen) {
            in_screen = strcmp(line, "end") != 0;
        } else if (!strcmp(line, "screen")) {
            show(s, out);
            in_screen = true;
        } else {
            buf_addf(out, "%s\n", line);
            script_line(s, line, file);
        }
        free(line);
    }
}

static bool check_file(const char *path)
{
    size_t len;
    struct err e = {0};
    char *text = fs_read(path, 4 << 20, false, &len, &e);
    if (!text) {
        fprintf(stderr, "%s\n", e.text);
        return false;
    }
    struct script s;
    struct buf out = BUF_INIT;
    script_init(&s);
    run_script(&s, text, path, &out);
    bool same = strcmp(buf_str(&out), text) == 0;
    if (!same && getenv("UPDATE"))
        same = fs_write_private(path, out.p, out.len, &e) == 0;
    if (!same) {
        char *got = xasprintf("/tmp/golden.%d", (int)getpid());
        fs_write_private(got, out.p, out.len, &e);
        fprintf(stderr, "%s differs; as it is now: %s\n", path, got);
        free(got);
    }
    script_release(&s);
    buf_release(&out);
    free(text);
    return same;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int main(void)
{
    static const char dir[] = "tests/golden/screens";
    struct dirent **list;
    int failed = 0, no = 0, n;
    n = scandir(dir, &list, NULL, by_name);
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.') {
            char *path = xasprintf("%s/%s", dir, list[i]->d_name);
            bool ok = check_file(path);
            printf("%sok %d - %s\n", ok ? "" : "not ", ++no, list[i]->d_name);
            failed += !ok;
            free(path);
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    printf("1..%d\n", no);
    return failed || !no;
}
