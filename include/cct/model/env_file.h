/* Files of variables: NAME=value lines, as shells, docker and many tools write them.
 *
 *     # a comment; empty lines are skipped
 *     export NAME=value        # a comment behind a value wants a blank in front
 *     QUOTED="two words\n"     \n \r \t \" \\ \$ are known; may go over several lines
 *     LITERAL='as $it stands'  nothing is changed; may go over several lines
 *
 * Nothing is expanded and nothing is run: $ is a character. The last line of a name
 * counts. Pure. */
#ifndef CCT_MODEL_ENV_FILE_H
#define CCT_MODEL_ENV_FILE_H

#include <cct/model/sandbox.h>
#include <cct/util/err.h>

enum {
    ENV_FILE_BYTES = 256 << 10, /* of a file */
    ENV_FILE_VARS = 1000,
    ENV_VALUE_BYTES = 100 << 10 /* of one value: a program gets 128 KiB at most in one string */
};

/* The list ends with k NULL and may hold secrets: wiped and freed by its owner. NULL with
 * *e: "FILE:LINE: what is wrong", which repeats a name and never a value. */
struct kv *env_file_parse(const char *text, size_t len, const char *file, struct err *e);
/* Letters, digits and _, no digit in front. */
bool env_name_ok(const char *name);

#endif
