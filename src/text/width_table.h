/* Classes of code points, private to src/text: what the cleaner does with one and
 * how many cells it takes. */
#ifndef CCT_TEXT_WIDTH_TABLE_H
#define CCT_TEXT_WIDTH_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum cp_class {
    CP_NARROW, /* one cell */
    CP_ZERO,   /* stays on the cell before it: Mn, Me, Cf, Hangul vowels and finals */
    CP_WIDE,   /* two cells: East Asian W and F, emoji presentation */
    CP_AMBIG,  /* East Asian A: one or two cells, by setting */
    CP_BAD,    /* unassigned, private, surrogate, noncharacter, control */
    CP_SHOW,   /* invisible or reorders: shown as <U+XXXX> */
    CP_DROP    /* joiners, variation selectors, interlinear marks */
};

/* Each entry is (first code point << 3 | class) and holds until the next entry;
 * the last one is a sentinel at U+110000. */
extern const uint32_t width_table[];
extern const size_t width_table_n;
/* For each 256 code points below U+20000: the entry that covers the first. */
extern const uint16_t width_pages[512 + 1];

/* The class of each code point below U+0800, two to a byte, the lower one low. */
extern const unsigned char width_low[1024];

enum cp_class width_class(uint32_t cp);
/* Cells of a class, by the setting for ambiguous width. */
unsigned width_cells(enum cp_class cls);

#endif
