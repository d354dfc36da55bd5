/* SPDX-License-Identifier: GPL-2.0 */
/* In front of the engine's text: what it asks of the compiler and of the kernel, as C on this
 * machine. The model (machine.c) answers. The text is changed in a few places (mod.rs): helpers are
 * functions of the model, a lock is taken and given back through it, and the loader's constants can
 * be set.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTUNE_MAY_GO_ON model_may_loop()

/* The one that a BPF program has as number N is model_helper_N. */
void model_helper_1(void), model_helper_5(void), model_helper_8(void), model_helper_115(void),
    model_helper_130(void), model_helper_154(void), model_helper_156(void), model_helper_158(void),
    model_helper_169(void), model_helper_170(void), model_helper_171(void);

/* Another CPU may go on here, and does if the lock is not free. */
int model_take(uint32_t *lock);
void model_gave(void);
int model_may_loop(void);
