/* The method in place of Thread.handle_interrupt. */
#ifndef HEDDLE_HANDLE_INTERRUPT_H
#define HEDDLE_HANDLE_INTERRUPT_H

void hd_init_handle_interrupt(void);

#endif
