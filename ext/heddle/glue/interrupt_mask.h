/* Thread.handle_interrupt around a piece of a fiber: what the other files need of interrupt_mask.c. */
#ifndef HEDDLE_INTERRUPT_MASK_H
#define HEDDLE_INTERRUPT_MASK_H

#include "scheduler.h"

typedef enum { HD_MASK_IMMEDIATE, HD_MASK_ON_BLOCKING, HD_MASK_NEVER } hd_mask;

/* Where an exception is to strike: the root of the chain of fibers, and the one of them that runs or is parked. */
typedef struct {
    VALUE root, fiber;
} hd_struck;

/* When this exception, or one of this class, may strike there. Runs no Ruby code. */
hd_mask hd_interrupt_mask(const hd_scheduler *scheduler, hd_struck struck, VALUE exception);

/* May a fiber of this scheduler hold it back? Ruby then holds it back for the whole thread. Runs no Ruby code. */
bool hd_interrupt_masked_somewhere(const hd_scheduler *scheduler, VALUE exception);

/* Puts off an exception that is masked and has nobody else who could raise it, until the mask ends. */
void hd_interrupt_mask_hold(hd_scheduler *scheduler, hd_struck struck, VALUE exception);

/* The classes that are held back. */
void hd_interrupt_mask_mark(const hd_scheduler *scheduler);

void hd_init_interrupt_mask(void);

#endif
