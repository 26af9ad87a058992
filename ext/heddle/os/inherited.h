/* The descriptors of the backends that are open, which the child of a fork inherits and must not keep: they are the
 * parent's kernel objects, and would live on with the child. */
#ifndef HEDDLE_INHERITED_H
#define HEDDLE_INHERITED_H

#include "../core/list.h"

typedef struct {
    hd_node node;
    int *fds[2];
} hd_inherited;

/* From now on a child closes these two, first of all, and finds -1 in their places. */
void hd_inherited_add(hd_inherited *inherited, int *one, int *other);

/* No longer (if it was added at all). To be called before they are closed. */
void hd_inherited_remove(hd_inherited *inherited);

#endif
