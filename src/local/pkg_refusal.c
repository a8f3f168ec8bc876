/* apt-get and its like in a sandbox: see the header. */
#include <cct/local/pkg_refusal.h>
#include <cct/util/xalloc.h>

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STATUS_REFUSED 100 /* apt's own for an error */

const char *const pkg_refusal_names[] = {"apt", "apt-get", "aptitude", "dpkg", NULL};

static bool is_one_of(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (strcmp(*list, word) == 0)
            return true;
    return false;
}

bool pkg_refusal_is(const char *name)
{
    return is_one_of(pkg_refusal_names, name);
}

/* dpkg's actions are options, alone or among others. */
static bool dpkg_wants(int argc, char **argv)
{
    static const char *const changes[] = {"-i",
                                          "--install",
                                          "--unpack",
                                          "-r",
                                          "--remove",
                                          "-P",
                                          "--purge",
                                          "--configure",
                                          "-A",
                                          "--record-avail",
                                          "--update-avail",
                                          "--merge-avail",
                                          "--clear-avail",
                                          "--triggers-only",
                                          "--set-selections",
                                          "--clear-selections",
                                          "--add-architecture",
                                          "--remove-architecture",
                                          NULL};
    for (int i = 0; i < argc; i++)
        if (is_one_of(changes, argv[i]))
            return true;
    return false;
}

/* The others have a verb: the first word that is neither an option nor its value. */
static bool apt_wants(int argc, char **argv)
{
    static const char *const with_value[] = {
        "-o", "-c", "-t", "-a", "--option", "--config-file", "--target-release", NULL};
    static const char *const reading[] = {
        "list", "show", "search",       "policy", "depends", "rdepends", "showpkg", "showsrc",
        "help", "moo",  "indextargets", "why",    "why-not", "versions", NULL};
    for (int i = 0; i < argc; i++) {
        if (is_one_of(with_value, argv[i]))
            i++;
        else if (argv[i][0] != '-')
            return !is_one_of(reading, argv[i]);
    }
    return false;
}

bool pkg_refusal_wants(const char *name, int argc, char **argv)
{
    return strcmp(name, "dpkg") == 0 ? dpkg_wants(argc, argv) : apt_wants(argc, argv);
}

int pkg_refusal_main(const char *name, int argc, char **argv)
{
    if (pkg_refusal_wants(name, argc, argv)) {
        bool local = access("/usr/local/bin", W_OK) == 0;
        fprintf(stderr,
                "%s: refused, nothing was changed: a local sandbox shows the host's /usr "
                "read-only, so packages are installed on the host; what only the sandbox needs "
                "goes %s\n",
                name,
                local
                    ? "below /usr/local (npm install -g, pip install, a static program)"
                    : "into the home folder (npm install --prefix ~/.local -g, a Python venv, "
                      "a static program) or into a template");
        return STATUS_REFUSED;
    }
    char *path = xasprintf("/usr/bin/%s", name);
    argv[-1] = path;
    execv(path, argv - 1);
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
