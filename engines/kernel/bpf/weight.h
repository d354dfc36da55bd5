/* SPDX-License-Identifier: GPL-2.0 */
/* A thread's own weight as the fair class counts it: 1024 at nice 0, and 1.25 times more for each
 * step down. cgroup.h makes the import `weight` of it.
 *
 * From the nice value, not from what sched_ext makes of it: its scale of 100 at nice 0 leaves one
 * digit for nice 19.
 */
#define ATTUNE_NICEST      (-20)
#define ATTUNE_NICES       40
#define ATTUNE_IDLE_WEIGHT 3

static const uint32_t attune_weights[ATTUNE_NICES] = {
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906,  3121,  2501,  1991,  1586,  1277,  1024,  820,   655,   526,   423,  335,  272,  215,
    172,   137,   110,   87,    70,    56,    45,    36,    29,    23,    18,   15,
};

static inline uint32_t attune_weight(struct task_struct *task)
{
    uint32_t step = (uint32_t)(attune_nice(task) - ATTUNE_NICEST);
    if (task->policy == SCHED_IDLE)
        return ATTUNE_IDLE_WEIGHT;
    return step < ATTUNE_NICES ? attune_weights[step] : attune_weights[-ATTUNE_NICEST];
}
