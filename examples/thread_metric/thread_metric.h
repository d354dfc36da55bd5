/* Three tests of Thread-Metric, the benchmark for real-time kernels, in words of our own: what a
 * kernel's port defines, and what each test counts.
 *
 * Priorities are left out: all threads have the same one, which is what these tests measure.
 */
#ifndef THREAD_METRIC_H
#define THREAD_METRIC_H

#include <stdint.h>

/* Rounds of a test; with -icount shift=5 an instruction takes 32 ns, the board's counter 40. */
#define ROUNDS 10000

#define MESSAGE_WORDS 4

/* ---- The port's ---- */

void metric_create(void (*entry)(void *), uint32_t number);
void metric_relinquish(void);
void metric_take(void);
void metric_give(void);
void metric_send(const uint32_t message[MESSAGE_WORDS]);
void metric_receive(uint32_t message[MESSAGE_WORDS]);
/* Runs the threads for ever. */
void metric_run(void);

#endif
