/* Addresses of repositories: the one form that git gets, and what it never gets. */
#include <cct/model/repo.h>

#include <cct/util/str.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *address, *url, *folder;
    bool github;
} good[] = {
    {"https://github.com/acme/web", "https://github.com/acme/web.git", "web", true},
    {"https://github.com/acme/web.git", "https://github.com/acme/web.git", "web", true},
    {"https://GitHub.com/acme/web/", "https://github.com/acme/web.git", "web", true},
    {"https://www.github.com/acme/web", "https://github.com/acme/web.git", "web", true},
    {"git@github.com:acme/web.git", "https://github.com/acme/web.git", "web", true},
    {"git@github.com:/acme/web.git", "https://github.com/acme/web.git", "web", true},
    {"ssh://git@github.com/acme/web.git", "https://github.com/acme/web.git", "web", true},
    {"ssh://git@ssh.github.com:443/acme/web.git", "https://github.com/acme/web.git", "web", true},
    {"git://github.com/acme/web", "https://github.com/acme/web.git", "web", true},
    {"github.com/acme/web", "https://github.com/acme/web.git", "web", true},
    {"acme/web", "https://github.com/acme/web.git", "web", true},
    {"acme/my.dot-files_2", "https://github.com/acme/my.dot-files_2.git", "my.dot-files_2", true},
    /* other places get no key */
    {"https://gitlab.com/a/b/c.git", "https://gitlab.com/a/b/c.git", "c", false},
    {"https://github.com.evil.example/acme/web", "https://github.com.evil.example/acme/web", "web",
     false},
    {"https://evil-github.com/acme/web", "https://evil-github.com/acme/web", "web", false},
    {"https://github.com:8443/acme/web", "https://github.com:8443/acme/web", "web", false},
    {"https://evil.example/github.com/acme/web", "https://evil.example/github.com/acme/web", "web",
     false},
    {"git@gitlab.com:a/b.git", "git@gitlab.com:a/b.git", "b", false},
    {"ssh://me@host:2222/~/x.git", "ssh://me@host:2222/~/x.git", "x", false},
    {"http://127.0.0.1:8080/r.git", "http://127.0.0.1:8080/r.git", "r", false},
    {"git://127.0.0.1/r", "git://127.0.0.1/r", "r", false},
    {"/srv/git/web.git", "file:///srv/git/web.git", "web", false},
    {"file:///srv/web/.git", "file:///srv/web/.git", "web", false},
};
static const char *const bad[] = {
    "", "-x", "--upload-pack=touch /tmp/x", "ext::sh -c id", "ext::id", "fd::3", "web", "a b/c",
    "https://user:pass@github.com/acme/web", "https://token@github.com/acme/web",
    "https://x@gitlab.com/a/b", "ssh://u:p@h/a/b", "http://github.com/acme/web",
    "https://github.com/acme", "https://github.com/acme/web/tree/main", "https://github.com/",
    "https://", "https:///x", "https://host", "ftp://h/x", "file://host/x", "https://-h/x",
    "git@github.com:", "git@:x", "acme/", "/", "https://h/..", "https://h/-x", "a;b/c", "a'b/c",
    "$(id)/x", "https://h/a\nb", "~/x", "../x/y",
};

static void brings_addresses_to_one_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct repo r;
        struct err e = {0};

        if (repo_parse(good[i].address, &r, &e) != 0)
            fail_msg("%s: %s", good[i].address, e.text);
        assert_string_equal(r.url, good[i].url);
        assert_string_equal(r.folder, good[i].folder);
        assert_int_equal(r.github, good[i].github);
        if (r.github)
            assert_true(str_starts(r.url, "https://github.com/") && !strchr(r.url, '@'));
        repo_release(&r);
    }
}

static void refuses_the_rest(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct repo r;
        struct err e = {0};

        if (repo_parse(bad[i], &r, &e) == 0)
            fail_msg("%s was taken: %s", bad[i], r.url);
        assert_int_equal(e.code, ERR_INVALID);
        assert_null(strstr(e.text, ":pass"));
        assert_null(r.url);
    }
}

static void branches(void **state)
{
    static const char *const yes[] = {"main", "feature/x-1", "v1.2.3", "a@b", "\xC3\xA9t\xC3\xA9"};
    static const char *const no[] = {"", "-b", "a b", "a..b", "/a", "a/", "a.lock", "a~1", "a:b",
                                     "a\nb", "a//b", "x@{1}", ".a", "a.", "a*", "a\\b"};
    (void)state;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        assert_int_equal(repo_branch_check(yes[i], NULL), 0);
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        assert_int_equal(repo_branch_check(no[i], NULL), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brings_addresses_to_one_form),
        cmocka_unit_test(refuses_the_rest),
        cmocka_unit_test(branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
