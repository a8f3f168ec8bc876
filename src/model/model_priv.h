/* Shared by the files of src/model only. */
#ifndef CCT_MODEL_PRIV_H
#define CCT_MODEL_PRIV_H

#include <cct/model/model.h>

/* Apply the operations of one EV_ITEMS; takes the items' memory over (the event keeps
 * empty ones). */
void transcript_apply(struct transcript *t, struct ev_items *ev);

#endif
