/* What this machine allows the local provider, and what to do where it does not:
 * the output of `cc-tui-local probe`, which `cc-tui doctor` shows among its own. */
#ifndef CCT_LOCAL_DOCTOR_H
#define CCT_LOCAL_DOCTOR_H

#include <stdbool.h>

/* Look, and print one line for each finding ("ok", "warn" or "FAIL", what, text), or
 * a JSON array of {what, status, text}. `state_dir` NULL: the usual place. 0, or 1
 * when isolated sandboxes do not work here. Blocks up to some seconds. */
int doctor_print(const char *exe, const char *state_dir, bool json);

#endif
