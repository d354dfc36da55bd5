//! The mutants of what only BPF programs hold: `runtime/bpf.h`, `failure.h`, `affinity.h`,
//! `backends/c/src/target/kernel`, and the engine's view of affinities
//! (`engines/kernel/bpf/thread.h`).

use super::Mutant;
use crate::differential::Against;

const fn mutant(
    name: &'static str,
    breaks: &'static str,
    find: &'static str,
    replace: &'static str,
) -> Mutant {
    Mutant { name, breaks, find, replace, against: Against::Kernel, nodes: false }
}

pub const MUTANTS: &[Mutant] = &[
    // ---- bpf.h ----
    mutant("bpf-loops-cut", "a loop that goes on is noted as cut short", "goto attune_on;", ";"),
    mutant(
        "bpf-loops-never",
        "no loop is allowed to go on",
        "int attune_may = 1;",
        "int attune_may = 0;",
    ),
    mutant("bpf-zero", "what starts at zero starts at one", "attune_zero;\n", "attune_zero = 1;\n"),
    // ---- failure.h ----
    mutant(
        "bpf-last-failure",
        "the last failed check of a handler is told, not the first",
        "    if (attune_failure.failed)\n        return 0;\n",
        "",
    ),
    mutant(
        "bpf-failure-unnoted",
        "a failed check is not noted",
        "    attune_failure.failed = 1;\n",
        "",
    ),
    mutant(
        "bpf-wrong-check",
        "a failed check names another one",
        "attune_failure.check = check;",
        "attune_failure.check = check ^ 1;",
    ),
    mutant(
        "bpf-wrong-size",
        "a message says a wrong size",
        "note->size = c->size;",
        "note->size = c->size + 1;",
    ),
    mutant(
        "bpf-lists-one-less",
        "a message leaves out a container's first thread",
        "*t = c->first;\n         t && listed",
        "*t = c->first ? attune_after(c->first) : NULL;\n         t && listed",
    ),
    mutant(
        "bpf-lists-few",
        "a message lists too few threads",
        "#define ATTUNE_LISTED 16",
        "#define ATTUNE_LISTED 2",
    ),
    mutant("bpf-notes-twice", "a message tells one container twice", "a && b != a ? b : NULL", "b"),
    mutant(
        "bpf-other-container",
        "a message tells the other container",
        "attune_note(&attune_failure.contents[0], a ? a : b);",
        "attune_note(&attune_failure.contents[0], b ? b : a);",
    ),
    mutant(
        "bpf-thread-forgotten",
        "a message names thread 0",
        "attune_failure.thread = t->id;",
        "attune_failure.thread = 0;",
    ),
    mutant(
        "bpf-index-forgotten",
        "a message says a wrong index",
        "attune_failure.index = index;",
        "attune_failure.index = index + 1;",
    ),
    mutant(
        "bpf-length-forgotten",
        "a message says a wrong length",
        "attune_failure.length = length;",
        "attune_failure.length = index;",
    ),
    // ---- affinity.h, thread.h ----
    mutant(
        "bpf-first-anywhere",
        "the first thread of a container may not run there",
        "    t = attune_allowed_from(attune, from);\n",
        "    t = c->first;\n",
    ),
    mutant(
        "bpf-first-after-one",
        "of a container the second thread that may run there is taken",
        "    while (t && !attune_may_run(t, attune->cpu) && ATTUNE_MAY_LOOP)\n        t = \
            attune_after(t);\n    return t;",
        "    if (t && !attune_may_run(t, attune->cpu))\n        t = attune_after(t);\n    return \
            t;",
    ),
    mutant(
        "bpf-passed-comer",
        "a CPU overlooks a thread that has come to a place that it had passed",
        "if (p && attune_may_run_on(t, cpu) && attune_came_before(c, t, p))",
        "if (0)",
    ),
    mutant(
        "bpf-passed-leaver",
        "a CPU looks on behind a thread that has left the container",
        "        if (c->passed[cpu] == t)\n",
        "        if (0)\n",
    ),
    mutant(
        "bpf-passed-affinity",
        "a CPU overlooks a thread that may run there since it had passed it",
        "    if (c->passes)\n        attune_forget_passed(c);\n",
        "",
    ),
    mutant(
        "bpf-passed-too-far",
        "a CPU overlooks the thread that it took before",
        "attune_pass(c, number, attune_before(t));",
        "attune_pass(c, number, t);",
    ),
    mutant(
        "bpf-size-everywhere",
        "|C| counts threads that may not run there",
        "    if (!c->pinned)\n        return c->size;",
        "    return c->size;",
    ),
    mutant(
        "bpf-size-of-old-affinity",
        "|C| counts a thread by the affinity that it had before",
        "    attune_uncount_pins(&t->attune);\n    t->attune.pinned = (cpus & all) != all;\n",
        "    t->attune.pinned = (cpus & all) != all;\n",
    ),
    mutant(
        "bpf-foreach-anywhere",
        "foreach visits threads that may not run there",
        "while (t && t->pinned && !attune_may_run(t, attune->cpu) && ATTUNE_MAY_LOOP)",
        "while (0)",
    ),
    mutant(
        "bpf-foreach-first-anywhere",
        "foreach begins with a thread that may not run there",
        "return t && t->pinned && !attune_may_run(t, attune->cpu) ? attune_next_here(attune, u) : \
            t;",
        "return t;",
    ),
    mutant(
        "bpf-mask-shifted",
        "affinities are read one CPU off",
        "attune_task(t)->allowed[cpu / 64] >> cpu % 64 & 1",
        "attune_task(t)->allowed[cpu / 64] >> (cpu + 1) % 64 & 1",
    ),
    mutant(
        "bpf-pinned-free",
        "a pinned thread runs everywhere",
        "return !t->pinned || (",
        "return 1 || (",
    ),
    mutant(
        "bpf-need-anywhere",
        "a check takes a thread that may not run there",
        "struct attune_thread ATTUNE_ARENA *t = attune_first_here(attune, c);",
        "struct attune_thread ATTUNE_ARENA *t = c->first;",
    ),
    // ---- instances, and moves between them (replay.h) ----
    mutant(
        "bpf-one-instance",
        "every handler runs in the first instance",
        "&attune_instances[attune_order.instance & (ATTUNE_REPLAY_INSTANCES - 1)].attune;",
        "&attune_instances[0].attune;",
    ),
    mutant(
        "bpf-leaver-stays",
        "a thread that has left stays in its old instance's container",
        "        attune_thread_remove(&t->attune);\n",
        "",
    ),
    mutant(
        "bpf-leaves-arrives-swapped",
        "arrives runs where a thread leaves",
        "#define ATTUNE_ON_LEAVES(instance, thread) on_leaves(",
        "#define ATTUNE_ON_LEAVES(instance, thread) on_arrives(",
    ),
    // ---- the writer ----
    mutant(
        "bpf-unfiltered",
        "schedule sees threads that may not run there",
        "attune_first_here(attune, &",
        "attune_first(&",
    ),
    mutant("bpf-time-late", "now is a nanosecond late", "attune->now", "(1 + attune->now)"),
    mutant(
        "bpf-local-kept",
        "a local keeps the value of the last call",
        " = ATTUNE_ZERO;\n",
        ";\n",
    ),
    mutant(
        "bpf-counters-off",
        "an assigned local is one too large",
        " + ATTUNE_ZERO;\n",
        " + 1 + ATTUNE_ZERO;\n",
    ),
    mutant(
        "bpf-loop-counters-off",
        "arrays are cleared from their second element on",
        "attune_i = (uint32_t)ATTUNE_ZERO;",
        "attune_i = 1 + (uint32_t)ATTUNE_ZERO;",
    ),
    mutant(
        "bpf-handlers-swapped",
        "switch_out runs in place of event_raised",
        "#define ATTUNE_ON_EVENT_RAISED(instance, thread) on_event_raised(",
        "#define ATTUNE_ON_EVENT_RAISED(instance, thread) on_switch_out(",
    ),
    mutant(
        "bpf-handler-missing",
        "quantum_expired never runs",
        "#define ATTUNE_ON_QUANTUM_EXPIRED(instance, thread) on_quantum_expired(instance, thread)",
        "#define ATTUNE_ON_QUANTUM_EXPIRED(instance, thread) (void)0",
    ),
    mutant(
        "bpf-check-lines",
        "a failed check is told with another line",
        "{\\\"check\\\":{\\\"number\\\":",
        "{\\\"check\\\":{\\\"number\\\":1",
    ),
    mutant(
        "bpf-arrays-short",
        "an array's last element keeps its value",
        "attune_i < 4 &&",
        "attune_i < 3 &&",
    ),
    // ---- what it shares with C, as clang makes it ----
    mutant(
        "bpf-import-lost",
        "what is assigned to an import is lost",
        "    import->value.number = value;\n",
        "    ;\n",
    ),
    mutant(
        "bpf-division-signed",
        "the kernel's division is one of unsigned numbers",
        "attune_neg(a) : a / b;",
        "attune_neg(a) : (int64_t)((uint64_t)a / (uint64_t)b);",
    ),
];
