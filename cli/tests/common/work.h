/* Computing with hardly any branches: an emulator pays for each. */

/* A microsecond in the deterministic machine, less elsewhere. */
static inline void work(void)
{
    for (int part = 0; part < 4; part++)
        __asm__ volatile(".rept 256; nop; .endr");
}
