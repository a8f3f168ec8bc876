/* Addresses of repositories as people write them, brought to the one form that git gets in
 * the sandbox. Pure. */
#ifndef CCT_MODEL_REPO_H
#define CCT_MODEL_REPO_H

#include <cct/util/err.h>
#include <stdbool.h>

struct repo {
    char *url;    /* for git; on github.com always https, without a user */
    char *show;   /* short: "github.com/acme/web" */
    char *folder; /* below the sandbox's home: "web" */
    bool github;  /* https://github.com itself: the one place that gets GitHub's key */
};
/* "git@github.com:acme/web.git", "ssh://git@github.com/acme/web", "acme/web" (GitHub),
 * "https://host/path", "git://", "http://", "ssh://", "user@host:path", "file:///path" and
 * "/path" (both in the sandbox). ERR_INVALID: a password in it, another kind of address,
 * an address that git would take for an option or a command. */
int repo_parse(const char *address, struct repo *r, struct err *e);
void repo_release(struct repo *r);
/* A branch or tag: what git allows, no option. */
int repo_branch_check(const char *branch, struct err *e);

#endif
