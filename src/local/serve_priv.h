/* Between the start of a provider and the commands about one; private to serve*.c. */
#ifndef LOCAL_SERVE_PRIV_H
#define LOCAL_SERVE_PRIV_H

#include <cct/local/serve.h>

/* The two folders as new strings, checked. False when one of them cannot be: that is
 * said on stderr, and both are NULL. */
bool serve_places(const struct serve_opts *o, char **state, char **runtime);

#endif
