/* The board reports its ticks; FreeRTOS has a timer of its own. */
static inline void attune_tick(void)
{
}
