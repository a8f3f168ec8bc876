/* Finding by some of the letters: "pai" in "pause all idle". Pure. */
#ifndef CCT_UTIL_FUZZY_H
#define CCT_UTIL_FUZZY_H

/* How well the letters of `typed` stand in `text`, in their order and in any case (ASCII): the
 * more the better, for letters side by side, at the begin of a word, early. -1: they do not;
 * 0: nothing was typed. */
int fuzzy_score(const char *typed, const char *text);

#endif
