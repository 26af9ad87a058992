/* The class Heddle::Scheduler. */
#ifndef HEDDLE_SCHEDULER_CLASS_H
#define HEDDLE_SCHEDULER_CLASS_H

void hd_init_scheduler_class(void);

#endif
