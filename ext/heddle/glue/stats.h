/* What a scheduler counts for Heddle.stats, beside what its reactor counts. */
#pragma once

#include "scheduler.h"

/* The scheduler has ended: what it has counted stays in the sums of its Ractor. */
void hd_stats_keep(const hd_scheduler *scheduler);
