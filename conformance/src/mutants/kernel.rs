//! The mutants of what only BPF programs hold: `runtime/bpf.h`, `failure.h`, `affinity.h`, the parts of the writer for that target,
//! and the engine's view of affinities (`engines/kernel/bpf/thread.h`).

use super::Mutant;
use crate::differential::Against;

const fn mutant(
    name: &'static str,
    breaks: &'static str,
    find: &'static str,
    replace: &'static str,
) -> Mutant {
    Mutant { name, breaks, find, replace, against: Against::Kernel }
}

pub const MUTANTS: &[Mutant] = &[
    // ---- bpf.h ----
    mutant(
        "bpf-loops-cut",
        "a loop that goes on is noted as cut short",
        "    goto attune_on; \\\nattune_ended:",
        "attune_ended:",
    ),
    mutant(
        "bpf-loops-never",
        "no loop is allowed to go on",
        "    int attune_may = 1; \\",
        "    int attune_may = 0; \\",
    ),
    mutant("bpf-zero", "what starts at zero starts at one", "attune_zero;\n", "attune_zero = 1;\n"),
    // ---- failure.h ----
    mutant(
        "bpf-last-failure",
        "the last failed check of a handler is told, not the first",
        "    if (attune_failure.failed)\n        return 0;\n",
        "",
    ),
    mutant("bpf-failure-unnoted", "a failed check is not noted", "    attune_failure.failed = 1;\n", ""),
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
        "for (struct attune_thread ATTUNE_ARENA *t = c->first; t && listed",
        "for (struct attune_thread ATTUNE_ARENA *t = c->first ? attune_after(c->first) : NULL; t && listed",
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
        "return attune_pinned ? attune_allowed_from(call, c->first) : c->first;",
        "return c->first;",
    ),
    mutant(
        "bpf-first-after-one",
        "of a container the second thread that may run there is taken",
        "    while (t && !attune_may_run(t, call->cpu) && ATTUNE_MAY_LOOP)\n        t = attune_after(t);\n    return t;",
        "    if (t && !attune_may_run(t, call->cpu))\n        t = attune_after(t);\n    return t;",
    ),
    mutant(
        "bpf-size-everywhere",
        "|C| counts threads that may not run there",
        "    if (!attune_pinned)\n        return c->size;",
        "    return c->size;",
    ),
    mutant(
        "bpf-foreach-anywhere",
        "foreach visits threads that may not run there",
        "while (t && attune_pinned && !attune_may_run(t, call->cpu) && ATTUNE_MAY_LOOP)",
        "while (0)",
    ),
    mutant(
        "bpf-foreach-first-anywhere",
        "foreach begins with a thread that may not run there",
        "return t && attune_pinned && !attune_may_run(t, call->cpu) ? attune_next_here(call, u) : t;",
        "return t;",
    ),
    mutant(
        "bpf-mask-shifted",
        "affinities are read one CPU off",
        "task->allowed[cpu / 64] >> cpu % 64 & 1",
        "task->allowed[cpu / 64] >> (cpu + 1) % 64 & 1",
    ),
    mutant(
        "bpf-pinned-free",
        "a pinned thread runs everywhere",
        "return !task->pinned || (",
        "return 1 || (",
    ),
    mutant(
        "bpf-need-anywhere",
        "a check takes a thread that may not run there",
        "struct attune_thread ATTUNE_ARENA *t = attune_first_here(call, c);",
        "struct attune_thread ATTUNE_ARENA *t = c->first;",
    ),
    // ---- the writer ----
    mutant(
        "bpf-unfiltered",
        "schedule sees threads that may not run there",
        "attune_first_here(attune_call, &",
        "attune_first(&",
    ),
    mutant("bpf-time-late", "now is a nanosecond late", "attune_call->now", "(1 + attune_call->now)"),
    mutant("bpf-local-kept", "a local keeps the value of the last call", " = ATTUNE_ZERO;\n", ";\n"),
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
        "#define ATTUNE_ON_EVENT_RAISED(call, thread) on_event_raised(",
        "#define ATTUNE_ON_EVENT_RAISED(call, thread) on_switch_out(",
    ),
    mutant(
        "bpf-handler-missing",
        "quantum_expired never runs",
        "#define ATTUNE_ON_QUANTUM_EXPIRED(call, thread) on_quantum_expired(call, thread)",
        "#define ATTUNE_ON_QUANTUM_EXPIRED(call, thread) (void)0",
    ),
    mutant("bpf-check-lines", "a failed check is told with another line", "\"check\\011", "\"check\\0111"),
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
