/* Recipes: a Dockerfile's steps as E2B's SDK sends them, where the file counts more than the
 * SDK, what is refused and with which words; the short form and those for the tools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cct/recipe.h>
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "IMAGE; TYPE a|b; ...; start CMD; ready CMD", without the steps that every file has. */
static char *told(const struct recipe *r)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, r->from_image ? r->from_image : r->from_template);
    for (size_t i = 0; i < r->steps.n; i++) {
        const struct recipe_step *s = &r->steps.v[i];

        if (!s->line)
            continue;
        buf_addf(&b, "; %s ", s->type);
        for (char **a = s->args; *a; a++)
            buf_addf(&b, "%s%s", a == s->args ? "" : "|", *a);
    }
    if (r->start_cmd)
        buf_addf(&b, "; start %s", r->start_cmd);
    if (r->ready_cmd)
        buf_addf(&b, "; ready %s", r->ready_cmd);
    return buf_detach(&b, NULL);
}

static void check(const char *text, const struct kv *args, const char *want)
{
    struct recipe r;
    struct err e = {0};
    char *got;
    int rc;

    recipe_init(&r);
    rc = recipe_parse(&r, text, strlen(text), "Dockerfile", args, &e);
    got = rc ? xstrdup(e.text) : told(&r);
    assert_string_equal(got, want);
    free(got);
    recipe_release(&r);
}

/* The lists on the right are what the SDK sends (2.51.0). */
static void test_as_the_sdk(void **state)
{
    static const char *const cases[][2] = {
        {"FROM debian:12\nRUN apt-get update &&   apt-get install -y git\n",
         "debian:12; RUN apt-get update && apt-get install -y git"},
        {"from debian AS x\r\nrun a \\\r\n  b \\\r\n# comment\r\n  c && \\\r\n\r\n  d\r\n",
         "debian; RUN a b c && d"},
        {"FROM debian\nRUN a\\\nb\nRUN a; \\ \n  b\nRUN c\td # no comment", "debian; RUN ab; "
         "RUN a; b; RUN c d # no comment"},
        {"FROM debian\nENV A=1 B=2 \\\n  C=x=y\nENV D e\nENV K=\"v\" P=$A/${B:-z}:\nENV E=\nENV U=1 U=2",
         "debian; ENV A|1|B|2|C|x=y; ENV D|e; ENV K|\"v\"|P|$A/${B:-z}:; ENV E|; ENV U|2"},
        {"FROM debian\nARG V\nARG W=3\nARG P Q=2 R", "debian; ENV V|; ENV W|3; ENV P||Q|2|R|"},
        {"FROM debian\nCOPY a b c/ /dest/\nCOPY . .\nADD --chown=user:user x ./y\nCOPY *.c lib?[a] /s",
         "debian; COPY a|/dest/||; COPY b|/dest/||; COPY c/|/dest/||; COPY .|.||; "
         "COPY x|./y|user:user|; COPY *.c|/s||; COPY lib?[a]|/s||"},
        {"FROM debian\nWORKDIR /app\nUSER node:node\nCMD [\"node\", \"server.js\"]",
         "debian; WORKDIR /app; USER node:node; start node server.js; ready sleep 20"},
        {"FROM debian\nENTRYPOINT  python3   -m http.server", "debian; start python3 -m http.server; "
         "ready sleep 20"},
        {"#syntax=docker/dockerfile:1\n# escape=`\nFROM debian\nRUN a `\n  b", "debian; RUN a b"},
        {"# words\n# escape=`\n\nFROM debian\nRUN a \\\n b", "debian; RUN a b"},
        {"\xEF\xBB\xBF" "FROM --platform=linux/amd64 a/b:c@sha256:0\nEXPOSE 80\nLABEL a=b\nRUN x",
         "a/b:c@sha256:0; RUN x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(cases[i][0], NULL, cases[i][1]);
}

/* What the SDK tears apart, drops or leaves as it is. */
static void test_the_file_counts(void **state)
{
    static const char *const cases[][2] = {
        {"FROM d\nRUN echo \"a   b\"   'c  d' e\\  f", "d; RUN echo \"a   b\" 'c  d' e\\  f"},
        {"FROM d\nRUN printf 'a\\n' | sed s/\\\\/x/ && echo it's  so", "d; RUN printf 'a\\n' | sed "
         "s/\\\\/x/ && echo it's so"},
        {"FROM d\nRUN [\"a\", \"b c\", \"$X\", \"it's\"]", "d; RUN a 'b c' '$X' 'it'\\''s'"},
        {"FROM d\nENV A=\"x y\" B='p $q' C=a\\ b D=\"say \\\"hi\\\"\"\nENV L a  b\nARG M=\"q r\"",
         "d; ENV A|x y|B|p \\$q|C|a b|D|say \\\"hi\\\"; ENV L|a  b; ENV M|q r"},
        {"FROM d\nCOPY \"a b\" c\\ d 'e' /x/\nCOPY [\"f g\", \"/y z/\"]\nCOPY --chmod=755 h /i",
         "d; COPY a b|/x/||; COPY c d|/x/||; COPY e|/x/||; COPY f g|/y z/||; COPY h|/i||0755"},
        {"FROM d\nWORKDIR \"/a b\"\nUSER \"x\"", "d; WORKDIR /a b; USER x"},
        {"FROM d\nENTRYPOINT [\"/e.sh\"]\nCMD [\"a b\", \"c\"]", "d; start /e.sh 'a b' c; ready sleep 20"},
        {"FROM d\nENTRYPOINT [\"/e.sh\"]\nCMD a  b", "d; start /e.sh /bin/sh -c 'a b'; ready sleep 20"},
        {"FROM d\nENTRYPOINT run me\nCMD a", "d; start run me; ready sleep 20"},
        {"FROM d\nCMD []", "d"},
        {"ARG TAG=12\nARG X\nFROM debian:${TAG}${X:+-x}${Y:-z}\nARG TAG", "debian:12z; ENV TAG|12; "
         "ENV X|; ENV TAG|12"},
        {"FROM d\nRUN --mount=type=cache,target=/c make\nSHELL [\"/bin/bash\", \"-c\"]\nRUN x",
         "d; RUN make; RUN x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(cases[i][0], NULL, cases[i][1]);
}

static void test_arguments(void **state)
{
    struct kv args[] = {{xstrdup("V"), xstrdup("a \"b\" $c")}, {NULL, NULL}};
    struct kv tag[] = {{xstrdup("TAG"), xstrdup("13")}, {NULL, NULL}};
    struct kv none[] = {{xstrdup("NOPE"), xstrdup("x")}, {NULL, NULL}};

    (void)state;
    check("FROM d\nARG V=1", args, "d; ENV V|a \\\"b\\\" \\$c");
    check("ARG TAG=12\nFROM d:$TAG", tag, "d:13; ENV TAG|13");
    check("FROM d", none, "Dockerfile has no ARG \"NOPE\": add one, or leave that build argument out");
    for (struct kv *k = args; k->k; k++)
        free(k->k), free(k->v);
    free(tag[0].k), free(tag[0].v), free(none[0].k), free(none[0].v);
}

static void test_refused(void **state)
{
    static const char *const cases[][2] = {
        {"", "Dockerfile: there is no FROM: begin with FROM IMAGE"},
        {"RUN x", "Dockerfile:1: RUN stands in front of FROM: begin with FROM IMAGE"},
        {"FROM", "Dockerfile:1: FROM wants an image: FROM debian:12"},
        {"FROM a b", "Dockerfile:1: FROM wants an image: FROM debian:12"},
        {"FROM $X", "Dockerfile:1: the image of FROM is empty: give its ARG a value"},
        {"FROM ${X", "Dockerfile:1: cannot read the variable \"${X\""},
        {"FROM --platform=linux/arm64 a", "Dockerfile:1: FROM --platform=linux/arm64 is not possible: "
         "sandboxes are linux/amd64"},
        {"FROM a AS x\nRUN y\n\nFROM b\n", "Dockerfile:4: a second FROM: files of several stages cannot "
         "be built here; build the other stage as a template of its own and use it as the base"},
        {"FROM a\nCOPY --from=x b c", "Dockerfile:2: --from=x is not possible: there are no other "
         "stages or images here; put the file into the recipe's folder"},
        {"FROM a\nRUN cat <<EOF\nx\nEOF", "Dockerfile:2: here-documents (<<) cannot be built: put the "
         "text into a file beside the recipe and COPY it, or write the commands with && and \\"},
        {"FROM a\nCOPY <<-\"X\" /y\nX", "Dockerfile:2: here-documents (<<) cannot be built: put the "
         "text into a file beside the recipe and COPY it, or write the commands with && and \\"},
        {"FROM a\n\n# x\nONBUILD RUN b", "Dockerfile:4: ONBUILD is not possible: write the instruction "
         "itself"},
        {"FROM a\nSHELL [\"/bin/bash\", \"-o\", \"pipefail\", \"-c\"]", "Dockerfile:2: SHELL is not "
         "possible: commands run in bash; put what it is for into the commands, as RUN set -o "
         "pipefail && ..."},
        {"FROM a\nRUM b", "Dockerfile:2: there is no instruction \"RUM\"; did you mean RUN?"},
        {"FROM a\nQWERTY b", "Dockerfile:2: there is no instruction \"QWERTY\": FROM RUN COPY ADD ENV "
         "ARG WORKDIR USER CMD ENTRYPOINT can be built"},
        {"FROM a\nRUN", "Dockerfile:2: RUN has no command"},
        {"FROM a\nUSER", "Dockerfile:2: USER has no value"},
        {"FROM a\nCOPY b", "Dockerfile:2: COPY wants a source and a destination"},
        {"FROM a\nCOPY /b c", "Dockerfile:2: the source \"/b\" is an absolute path: write it from the "
         "recipe's folder on, without the / in front"},
        {"FROM a\nCOPY x/../../b c", "Dockerfile:2: the source \"x/../../b\" lies outside of the "
         "recipe's folder: move it in there"},
        {"FROM a\nCOPY **/.. c", "Dockerfile:2: the source \"**/..\" lies outside of the "
         "recipe's folder: move it in there"},
        {"FROM a\nCOPY --chmod=u+x b c", "Dockerfile:2: --chmod=u+x is not possible: give the mode in "
         "octal, as 755"},
        {"FROM a\nCOPY --parents b c", "Dockerfile:2: COPY --parents is not known here: leave it out"},
        {"FROM a\nADD https://x/y z", "Dockerfile:2: ADD cannot fetch \"https://x/y\": use RUN curl "
         "-fsSLo FILE URL, or RUN git clone"},
        {"FROM a\nADD x.tar.gz /", "Dockerfile:2: ADD does not unpack \"x.tar.gz\" here: COPY it and RUN "
         "tar -xf"},
        {"FROM a\nRUN --mount=type=secret,id=x b", "Dockerfile:2: RUN --mount=type=secret,id=x is not "
         "possible here: COPY what the command needs"},
        {"FROM a\nENV A", "Dockerfile:2: ENV A has no value: write NAME=value"},
        {"FROM a\nENV A=1 B", "Dockerfile:2: ENV has the word \"B\" without a =: put a value with blanks "
         "into quotes"},
        {"FROM a\nENV 1=2", "Dockerfile:2: \"1\" is no name for a variable: letters, digits and _"},
        {"FROM a\nARG", "Dockerfile:2: ARG wants a name: ARG NAME=value"},
        {"FROM a\nARG a-b", "Dockerfile:2: \"a-b\" is no name for an ARG: letters, digits and _"},
        {"# escape=x\nFROM a", "Dockerfile:1: the escape character must be \\ or `"},
        {"FROM \xff", "Dockerfile: the file is not text in UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(cases[i][0], NULL, cases[i][1]);
}

static void test_frame_and_notes(void **state)
{
    static const char text[] = "FROM d\nEXPOSE 80\nARG NPM_TOKEN=x\nRUN y\n";
    struct recipe r;

    (void)state;
    recipe_init(&r);
    assert_int_equal(recipe_parse(&r, text, strlen(text), "D", NULL, NULL), 0);
    assert_int_equal(r.steps.n, 6);
    assert_string_equal(r.steps.v[0].type, "USER");
    assert_string_equal(r.steps.v[0].args[0], "root");
    assert_string_equal(r.steps.v[1].args[0], "/");
    assert_int_equal(r.steps.v[3].line, 4);
    assert_string_equal(r.steps.v[4].args[0], "user");
    assert_string_equal(r.steps.v[5].args[0], "/home/user");
    assert_int_equal(r.notes.n, 2);
    assert_string_equal(r.notes.v[0], "D:2: EXPOSE has no effect in a sandbox and is left out");
    assert_non_null(strstr(r.notes.v[1], "NPM_TOKEN stays in the template"));
    recipe_release(&r);
}

/* --- the short form ---------------------------------------------------------------- */

static void check_spec(const char *text, const char *want)
{
    struct recipe r;
    struct err e = {0};
    char *got;
    int rc;

    recipe_init(&r);
    assert_true(recipe_is_spec(text, strlen(text)));
    rc = recipe_parse_spec(&r, text, strlen(text), "t.conf", NULL, &e);
    got = rc ? xstrdup(e.text) : told(&r);
    assert_string_equal(got, want);
    free(got);
    recipe_release(&r);
}

static void test_spec(void **state)
{
    (void)state;
    check_spec("# mine\n[template]\nbase = node:22\nenv.A = x $y\napt = git ripgrep\nnpm = @a/b@1.2.3 "
               "c@4.5.6\nrun = echo hi\nroot = id\ncopy = a \"b c\" /d/\nuser = user\nworkdir = /w\n"
               "start = serve\nready = sleep 3\n",
               "node:22; ENV A|x \\$y; RUN apt-get update && DEBIAN_FRONTEND=noninteractive "
               "DEBCONF_NOWARNINGS=yes apt-get install -y git ripgrep|root; RUN npm install -g "
               "@a/b@1.2.3 c@4.5.6|root; RUN echo hi; RUN id|root; COPY a|/d/||; COPY b c|/d/||; "
               "USER user; WORKDIR /w; start serve; ready sleep 3");
    check_spec("[template]\ntemplate = base\nstart = x", "base; start x; ready sleep 20");
    check_spec("[template]\nrun = x", "t.conf: a template begins with one of base = IMAGE and "
               "template = NAME");
    check_spec("[template]\nbase = a\ntemplate = b", "t.conf: a template begins with one of base = "
               "IMAGE and template = NAME");
    check_spec("[template]\nbase = a\nnpm = left-pad", "t.conf:3: the package \"left-pad\" wants a "
               "version: NAME@1.2.3, so that the next build gives the same");
    check_spec("[template]\nbase = a\napt = git;rm", "t.conf:3: \"git;rm\" is no name of a package");
    check_spec("[template]\nbase = a\nrunn = x", "t.conf:3: a template has no \"runn\"; did you mean "
               "\"run\"?");
    check_spec("[template]\nbase = a\n[more]\n", "t.conf:3: \"more\" does not belong into a recipe: "
               "everything stands below [template]");
    check_spec("[template]\nbase = a\ncpu = 99", "t.conf:3: \"99\" is no number that is possible here");
    check_spec("[template]\nbase = a\nready = x", "t.conf:3: ready wants a start command: what is to "
               "become ready?");
    check_spec("[template]\nbase = a\nrun =", "t.conf:3: \"run\" has no value");
    assert_false(recipe_is_spec("FROM a\n[template]", 17));
}

/* Each tool's version is the one that cc-tui is tried with. */
static void test_tools(void **state)
{
    size_t len = 0, n = 0;
    struct err e = {0};
    char *pinned = fs_read("tests/agents/package.json", 1 << 16, false, &len, &e);

    (void)state;
    assert_non_null(pinned);
    for (const char *tool; (tool = recipe_tool_name(n)) != NULL; n++) {
        struct recipe r;
        bool found = false;

        recipe_init(&r);
        assert_int_equal(recipe_for_tool(&r, tool, NULL, &e), 0);
        assert_string_equal(r.tool, tool);
        assert_true(str_starts(r.from_image, "node:22"));
        for (size_t i = 0; i < r.steps.n; i++) {
            char *at = strstr(r.steps.v[i].args[0], "npm install -g ");
            char *want, *version = at ? strrchr(at, '@') : NULL;

            if (!at)
                continue;
            found = true;
            assert_string_equal(version + 1, r.version);
            want = xasprintf("\"%.*s\": \"%s\"", (int)(version - (at + 15)), at + 15, r.version);
            assert_non_null(strstr(pinned, want));
            free(want);
        }
        assert_true(found);
        recipe_release(&r);
    }
    assert_int_equal(n, 4);
    free(pinned);
    struct recipe r;
    recipe_init(&r);
    assert_int_equal(recipe_for_tool(&r, "claude", "9.9.9", &e), 0);
    assert_string_equal(r.version, "9.9.9");
    recipe_release(&r);
    assert_int_equal(recipe_for_tool(&r, "vim", NULL, &e), ERR_NOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_sdk), cmocka_unit_test(test_the_file_counts),
        cmocka_unit_test(test_arguments),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_frame_and_notes), cmocka_unit_test(test_spec),
        cmocka_unit_test(test_tools),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
