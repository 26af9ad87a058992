/* Blocking operations that a thread of the pool does: what lib/heddle/scheduler/blocking_job.rb needs of C. */
#ifndef HEDDLE_OFFLOAD_H
#define HEDDLE_OFFLOAD_H

void hd_init_offload(void);

#endif
