/* TLS servers with good and bad certificates, played by openssl's own s_server. */
#ifndef CCT_TESTS_TLSBED_H
#define CCT_TESTS_TLSBED_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes a folder with ca.pem, stranger.pem (a CA that nobody knows) and NAME.pem with
 * NAME.key for: good (localhost and dual.example, by the CA), other (another host's),
 * self (signed by itself), expired, early (not yet valid), unknown (by the stranger),
 * client (for clients alone), sha1 (signed in a way that can be forged), leaf (signed by
 * a certificate that may not sign). False: openssl failed. */
bool tlsbed_open(void);
void tlsbed_close(void);
char *tlsbed_file(const char *name); /* its path, a new string */

struct tlsbed_server {
    pid_t pid;
    int port, hold;
    char *heard; /* file with all that came out of the encryption */
};
/* On 127.0.0.1 with that certificate; more: further arguments of s_server, ends with
 * NULL, may be NULL. With "-www" it answers requests; else it only hears. */
struct tlsbed_server tlsbed_serve(const char *name, const char *const *more);
/* Ends it; true when a request came through to it. */
bool tlsbed_stop(struct tlsbed_server *s);

#endif
