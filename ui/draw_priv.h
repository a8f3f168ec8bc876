/* What the files of the picture have of each other. Main thread. */
#ifndef CCT_UI_DRAW_PRIV_H
#define CCT_UI_DRAW_PRIV_H

#include <cct/ui/theme.h>

struct model;
struct ui;
enum theme_role ui_link_role(const struct model *m); /* how grave it is */
void ui_draw_status(struct ui *ui, int y);

#endif
