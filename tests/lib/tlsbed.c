/* openssl as a child of the test. */
#include "tlsbed.h"
#include "tmpdir.h"
#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MORE_MAX = 8 };

static char dir[] = "/tmp/cct-tls-XXXXXX";

static const char script[] =
    "exec >log 2>&1; set -ex\n"
    "new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
    "ca() { openssl req -x509 $new -keyout $1.key -out $1.pem -days 30 -subj /CN=test-$1; }\n"
    "ca ca; ca stranger\n"
    "openssl req -x509 $new -keyout self.key -out self.pem -days 30 -subj /CN=localhost "
    "-addext subjectAltName=DNS:localhost\n"
    "mkdir old; : > index; echo 01 > serial\n"
    "for by in ca stranger plain; do printf '[ca]\\ndefault_ca=c\\n[c]\\ndir=.\\n"
    "new_certs_dir=old\\ndatabase=index\\nserial=serial\\nunique_subject=no\\npolicy=p\\n"
    "certificate='$by.pem'\\nprivate_key='$by.key'\\n[p]\\ncommonName=supplied\\n' > $by.cnf; done\n"
    /* name, signer, digest, start, end, further lines of extensions */
    "sign() { openssl req $new -keyout $1.key -out $1.csr -subj /CN=localhost\n"
    "  printf 'subjectAltName=%s\\n%b\\n' \"$san\" \"$6\" > ext\n"
    "  openssl ca -batch -notext -config $2.cnf -md $3 -startdate $4 -enddate $5 -extfile ext "
    "-in $1.csr -out $1.pem; }\n"
    "now=20200101000000Z; far=20490101000000Z; san=DNS:localhost,DNS:dual.example\n"
    "server='extendedKeyUsage=serverAuth\\nbasicConstraints=CA:FALSE'\n"
    "sign good ca sha256 $now $far $server\n"
    "sign expired ca sha256 $now 20200301000000Z $server\n"
    "sign early ca sha256 20480101000000Z $far $server\n"
    "sign unknown stranger sha256 $now $far $server\n"
    "sign client ca sha256 $now $far extendedKeyUsage=clientAuth\n"
    "sign sha1 ca sha1 $now $far $server\n"
    "sign plain ca sha256 $now $far basicConstraints=CA:FALSE\n"
    "sign leaf plain sha256 $now $far $server; cat plain.pem >> leaf.pem\n"
    "san=DNS:other.example; sign other ca sha256 $now $far $server\n";

bool tlsbed_open(void)
{
    if (!mkdtemp(dir))
        return false;
    char *all = xasprintf("cd '%s'\n%s", dir, script);
    int rc = system(all);
    free(all);
    if (rc != 0) {
        all = xasprintf("tail -n 5 '%s/log' | sed 's/^/# /'", dir);
        if (system(all) != 0)
            printf("# and its log cannot be read\n");
        free(all);
    }
    return rc == 0;
}

void tlsbed_close(void)
{
    tmpdir_remove(dir);
}

char *tlsbed_file(const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static void read_port(struct tlsbed_server *s)
{
    for (int tries = 0; s->port == 0 && tries < 2000; tries++) {
        size_t len;
        char *text = fs_read(s->heard, 1 << 20, false, &len, NULL);
        char *at = text ? strstr(text, "ACCEPT") : NULL, *end = at ? strchr(at, '\n') : NULL;
        if (end) {
            *end = '\0';
            s->port = (int)strtol(strrchr(at, ':') + 1, NULL, 10);
        } else {
            poll(NULL, 0, 10);
        }
        free(text);
    }
    if (!s->port)
        die("test: openssl s_server does not listen");
}

struct tlsbed_server tlsbed_serve(const char *name, const char *const *more)
{
    static int count;
    struct tlsbed_server s = {.heard = xasprintf("%s/heard-%d", dir, count++)};
    char *cert = xasprintf("%s/%s.pem", dir, name), *key = xasprintf("%s/%s.key", dir, name);
    const char *argv[10 + MORE_MAX] = {"openssl", "s_server", "-accept", "127.0.0.1:0",
                                       "-cert", cert, "-cert_chain", cert, "-key", key};
    posix_spawn_file_actions_t fa;
    size_t n = 10;
    int in[2];

    if (pipe2(in, O_CLOEXEC)) /* it ends with its stdin */
        die("test: no pipe");
    s.hold = in[1];
    for (; more && *more && n < 9 + MORE_MAX; more++)
        argv[n++] = *more;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, in[0], 0);
    posix_spawn_file_actions_addopen(&fa, 1, s.heard, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&s.pid, "openssl", &fa, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
        die("test: cannot start openssl");
    posix_spawn_file_actions_destroy(&fa);
    close(in[0]);
    read_port(&s);
    free(cert);
    free(key);
    return s;
}

bool tlsbed_stop(struct tlsbed_server *s)
{
    size_t len = 0;

    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    close(s->hold);
    char *text = fs_read(s->heard, 1 << 20, false, &len, NULL);
    bool asked = text && (memmem(text, len, "HTTP/", 5) || memmem(text, len, "PRI * ", 6) ||
                          memmem(text, len, "E2B-", 4));
    free(text);
    free(s->heard);
    s->heard = NULL;
    return asked;
}
