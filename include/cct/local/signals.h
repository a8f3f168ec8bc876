/* Signals as a fresh program expects them, whatever the caller was started with. */
#ifndef CCT_LOCAL_SIGNALS_H
#define CCT_LOCAL_SIGNALS_H

/* Every disposition to its default and nothing blocked. Async-signal-safe. */
void signals_default(void);

#endif
