/* Ticks, and sleeping for some. */

void attune_tick(void)
{
    attune_ticked++;
    attune_raised = 1;
}

uint64_t attune_now(void)
{
    attune_read_clock();
    return attune_clock;
}

void attune_sleep_until(uint64_t tick)
{
    attune_begin_stop();
    if (tick <= attune_clock)
        return;
    attune_wake_timer_set(attune_running, (int64_t)tick);
    attune_block();
}

void attune_sleep(uint32_t ticks)
{
    attune_sleep_until(attune_now() + ticks);
}
