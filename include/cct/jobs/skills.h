/* Skills on this machine, packed for a sandbox. A skill is a folder with a SKILL.md, which
 * keeps its name, or one file NAME.md, which becomes NAME/SKILL.md. */
#ifndef CCT_JOBS_SKILLS_H
#define CCT_JOBS_SKILLS_H

#include <cct/util/buf.h>
#include <cct/util/err.h>

enum { SKILLS_BYTES = 4 << 20, SKILLS_FILES = 500, SKILLS_DEPTH = 8 };

/* Packs them (paths ends with NULL) as a tar archive into `out`; regular files alone, names
 * with a dot in front and symbolic links are left out. Reads files: never on main. 0, or a code
 * with *e naming the file: missing, no skill, two of one name, too many, too large. */
int skills_pack(const char *const *paths, struct buf *out, struct err *e);

#endif
