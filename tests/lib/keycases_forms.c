/* Keys of forms: a new sandbox, a new build, a message to several. */
#include "keyrun.h"

#define N(v) (sizeof(v) / sizeof((v)[0]))
#define BUILD "3 [= 3 builds] n [+ new build]"
#define BUILD_OVER "Esc ![+ new build] 3 [AGENT    STATE]"
#define NEW "n [+ new sandbox]"
#define NEW_OVER "Esc ![+ new sandbox]"
#define CAST "b [+ this sandbox] b [+ broadcast] BackTab ~"
#define CAST_OVER "Esc ![+ broadcast]"

static const struct key_case cases[] = {
    KEY_PROBED(FIELD_NEXT, BUILD, "'ab'", "[From        ab]", BUILD_OVER),
    KEY_PROBED(FIELD_ENTER, BUILD, "'ab'", "[From        ab]", BUILD_OVER),
    KEY_PROBED(FIELD_PREV, BUILD " Tab Tab ~", "'ab'", "[From        ab]", BUILD_OVER),
    KEY(FIELD_ENTER, BUILD " BackTab ~", "[what is the template to be called?]", BUILD_OVER),
    KEY(SUBMIT, BUILD, "[what is the template to be called?]", BUILD_OVER),
    KEY(CHOICE_NEXT, BUILD " Tab Tab [< - >]", "[< claude >]", BUILD_OVER),
    KEY(CHOICE_PREV, BUILD " Tab Tab [< - >]", "[< pi >]", BUILD_OVER),
    KEY(FORM_CANCEL, NEW, "![+ new sandbox]", ""),
    KEY(EDIT_FIELD, NEW, "[Prompt      edited]", NEW_OVER),
    KEY(SUBMIT, NEW " 'not a name' [not a name]", "[is not possible]", NEW_OVER),
    KEY(PRESET_SAVE, NEW " BackTab BackTab 'mine' [mine]", "[kept]", NEW_OVER),
    KEY(PRESET_REMOVE, NEW, "[preset: choose the one]", NEW_OVER),
    KEY_PROBED(RECEIVER_DOWN, CAST, "Space", "\"[x] two\"", CAST_OVER),
    KEY_PROBED(RECEIVER_UP, CAST " j ~", "Space", "\"[ ] one\"", CAST_OVER),
    KEY(RECEIVERS_NONE, CAST, "\"[ ] one\"", CAST_OVER),
    KEY(CHOICE_NEXT, CAST, "\"[ ] one\"", CAST_OVER),
};

const struct key_group keys_forms = {
    .name = "forms",
    .h = 24,
    .w = 80,
    .setup = DEMO("one")
             DEMO("two"),
    .begin = "[> . one] [. two]",
    .cases = cases,
    .n = N(cases),
};
