/* A web server of a few paths that a test runs inside a sandbox, and the same
 * bytes for the test to compare with. No library: it is a copy of the test's own
 * program, started there with "--port-server". */
#ifndef CCT_TESTS_LIB_PORTSERVER_H
#define CCT_TESTS_LIB_PORTSERVER_H

#include <stddef.h>
#include <stdint.h>

/* argv: FILE ADDRESS...; an address is "127.0.0.1", "::" and so on, with "@PORT"
 * for a given one, "6only@PORT" for [::] without IPv4. The ports, one a line, 0 for
 * an address that this machine has not, go to FILE when all listen.
 *
 *   GET  /hello        "hello PORT"          GET  /head    the request's head
 *   GET  /bytes/N      N bytes of a pattern  POST /sum     "LENGTH HASH" of the body
 *   GET  /events       an event at once, then nothing; stays open
 *   GET  /close        closes without a byte
 * An answer ends with the connection. Returns only in failure. */
int portserver_main(int argc, char **argv);

/* The pattern's bytes from `at` on, and the hash that /sum uses. */
void portserver_fill(char *dst, size_t len, uint64_t at);
uint64_t portserver_hash(uint64_t h, const char *p, size_t len); /* start with 0 */

#endif
