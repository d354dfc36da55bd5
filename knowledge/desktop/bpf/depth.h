/* SPDX-License-Identifier: GPL-2.0 */
/* Counts the interrupts that are open on each CPU by tracepoints, for kernels that do not say where
 * their own count is (CONFIG_KALLSYMS_ALL): that costs each interrupt two programs.
 *
 * Invariant: no count is too high for long, since the programs that count down are attached before
 * those that count up, and an interrupt that began before ends at 0.
 */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u32);
} depth SECTION(".maps");

static ALWAYS_INLINE int in_counted_interrupt(void)
{
    u32 zero = 0;
    u32 *open = bpf_map_lookup_elem(&depth, &zero);
    return open && *open;
}

static ALWAYS_INLINE int leave(void)
{
    u32 zero = 0;
    u32 *open = bpf_map_lookup_elem(&depth, &zero);
    if (open && *open)
        --*open;
    return 0;
}

static ALWAYS_INLINE int enter(void)
{
    u32 zero = 0;
    u32 *open = bpf_map_lookup_elem(&depth, &zero);
    if (open)
        ++*open;
    return 0;
}

SECTION("tp_btf/softirq_exit") int softirq_leaves(u64 *arguments)
{
    return leave();
}

SECTION("tp_btf/irq_handler_exit") int interrupt_leaves(u64 *arguments)
{
    return leave();
}

/* Where the timer's interrupt has a tracepoint of its own (x86-64). */
SECTION("tp_btf/local_timer_exit") int timer_leaves(u64 *arguments)
{
    return leave();
}

SECTION("tp_btf/softirq_entry") int softirq_enters(u64 *arguments)
{
    return enter();
}

SECTION("tp_btf/irq_handler_entry") int interrupt_enters(u64 *arguments)
{
    return enter();
}

SECTION("tp_btf/local_timer_entry") int timer_enters(u64 *arguments)
{
    return enter();
}
