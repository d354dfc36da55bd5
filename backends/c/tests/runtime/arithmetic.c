/* Answers questions about arithmetic from standard input: an operation, then the bits of two
 * operands in hexadecimal. Prints the bits of the result and the counters. */
#include "../../runtime/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    static struct attune_instance instance;
    char what[16];
    uint64_t a, b;
    while (scanf("%15s %" SCNx64 " %" SCNx64, what, &a, &b) == 3) {
        const double x = attune_from_bits(a), y = attune_from_bits(b);
        uint64_t result = 0;
        if (!strcmp(what, "add"))
            result = (uint64_t)attune_add((int64_t)a, (int64_t)b);
        else if (!strcmp(what, "sub"))
            result = (uint64_t)attune_sub((int64_t)a, (int64_t)b);
        else if (!strcmp(what, "mul"))
            result = (uint64_t)attune_mul((int64_t)a, (int64_t)b);
        else if (!strcmp(what, "neg"))
            result = (uint64_t)attune_neg((int64_t)a);
        else if (!strcmp(what, "div"))
            result = (uint64_t)attune_div(&instance, (int64_t)a, (int64_t)b);
        else if (!strcmp(what, "mod"))
            result = (uint64_t)attune_mod(&instance, (int64_t)a, (int64_t)b);
        else if (!strcmp(what, "fdiv"))
            result = attune_bits(attune_div_real(&instance, x, y));
        else if (!strcmp(what, "fmod"))
            result = attune_bits(attune_mod_real(&instance, x, y));
        else if (!strcmp(what, "int"))
            result = (uint64_t)attune_to_int(x);
        else if (!strcmp(what, "less"))
            result = attune_key_of_real(x) < attune_key_of_real(y);
        else if (!strcmp(what, "random")) {
            instance.random_state = a;
            result = (uint64_t)attune_random(&instance, (int64_t)b);
        } else if (!strncmp(what, "int_", 4) || !strncmp(what, "real_", 5)) {
            /* Written as an int (`real_`: a float) to a variable of that width, and read back as
             * both. */
            struct {
                uint64_t before, there, behind;
            } variable = {77, 0, 77};
            struct attune_import import = {.link = &variable.there};
            const int real = what[0] == 'r';
            const enum attune_width width = (enum attune_width)(what[real ? 5 : 4] - 'a');
            if (real)
                attune_set_real(&instance, &import, width, x);
            else
                attune_set(&instance, &import, width, (int64_t)a);
            if (variable.before != 77 || variable.behind != 77)
                return 3;
            printf("%" PRIx64 " ", attune_bits(attune_get_real(&instance, &import, width)));
            result = (uint64_t)attune_get(&instance, &import, width);
        } else
            return 2;
        printf("%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", result, instance.divisions_by_zero,
               instance.clamped);
        instance.divisions_by_zero = instance.clamped = 0;
    }
    return 0;
}
