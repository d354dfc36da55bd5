/* Ticks, and sleeping for some. */

void attune_tick(void)
{
    attune_ticked++;
}

uint64_t attune_now(void)
{
    attune_nanoseconds();
    return attune_clock;
}

void attune_sleep_until(uint64_t tick)
{
    int64_t now = attune_begin_stop();
    if (tick <= attune_clock)
        return;
    attune_wake_timer_set(attune_running, (int64_t)tick);
    attune_block(now);
}

void attune_sleep(uint32_t ticks)
{
    attune_sleep_until(attune_now() + ticks);
}
