/* The log: a bounded private file, and its newest lines in memory. Identical
 * neighbouring lines are folded with a count. Text passes a redactor that
 * removes registered secrets (plain, base64, URL-encoded) and header values by
 * name. Any thread; nothing is ever written to stderr while curses is on. */
#ifndef CCT_UTIL_LOG_H
#define CCT_UTIL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Open (append, 0600, rotated once at LIM_LOG_FILE_BYTES); NULL = ring only. */
int log_open(const char *path, enum log_level min);
/* From now on lines reach the file by a thread, so that nobody who logs waits for the disk; what
 * it does not take is left out, which is said. Until log_close(); main thread. */
void log_beside(void);
/* With a thread: one that the disk holds is left behind. */
void log_close(void);
void log_add(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_debug(...) log_add(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_add(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_add(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_add(LOG_ERROR, __VA_ARGS__)
/* Register a value that must never appear; kept as a masked copy in memory that
 * is locked and not dumped (a refused lock is said in the log). Values shorter
 * than 8 bytes are ignored. At most 64; one more is said in the log. */
void log_redact_value(const char *value, size_t len);
/* The same for one of many, like what opens a sandbox: the newest 32 are known. */
void log_redact_token(const char *value, size_t len);
/* Replace registered values in text[0..len) in place by '*'; the new length is
 * the same. Used for any text that leaves the program. */
void log_redact(char *text, size_t len);

struct log_line {
    int64_t wall_ms;
    enum log_level level;
    uint32_t repeat;
    char text[320];
};
/* Copy the newest <= n lines, oldest first; returns how many. `*rev` gets a
 * number that grows with each new line. */
size_t log_snapshot(struct log_line *dst, size_t n, uint64_t *rev);

#endif
