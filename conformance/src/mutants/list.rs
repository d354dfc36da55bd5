//! The mutants: plausible mistakes in the C back end and its runtime, as substitutions in the
//! generated text.
//!
//! Every occurrence of `find` is replaced. Spelling is that of the runtime's files and of the
//! writer.

use super::Mutant;
use crate::differential::Against;

const fn mutant(
    name: &'static str,
    breaks: &'static str,
    find: &'static str,
    replace: &'static str,
) -> Mutant {
    Mutant { name, breaks, find, replace, against: Against::C, nodes: false }
}

pub const MUTANTS: &[Mutant] = &[
    // ---- containers ----
    mutant(
        "queue-lifo",
        "a queue inserts at its head",
        "if (ATTUNE_STACKS && c->kind == ATTUNE_STACK) {",
        "if (1) {",
    ),
    mutant(
        "stack-fifo",
        "a stack inserts at its tail",
        "if (ATTUNE_STACKS && c->kind == ATTUNE_STACK) {",
        "if (0) {",
    ),
    mutant(
        "pqueue-equals-lifo",
        "equal keys of a pqueue are last in, first out",
        "(c->kind == ATTUNE_PSTACK && t->key == at->key)",
        "(t->key == at->key)",
    ),
    mutant(
        "pstack-equals-fifo",
        "equal keys of a pstack are first in, first out",
        "(c->kind == ATTUNE_PSTACK && t->key == at->key)",
        "(0 && t->key == at->key)",
    ),
    mutant(
        "sort-direction",
        "`reverse` has no effect",
        "(c->lowest ? t->key < at->key : t->key > at->key)",
        "(t->key > at->key)",
    ),
    mutant(
        "key-not-reinserting",
        "assigning a sort key leaves the thread where it was",
        "if (c && c->sorted_on == attribute) {",
        "if (0) {",
    ),
    mutant(
        "reinserts-other-keys",
        "assigning any variable re-inserts",
        "if (c && c->sorted_on == attribute) {",
        "if (c) {",
    ),
    mutant("size-not-counted-down", "|C| never shrinks", "    c->size--;\n", ""),
    mutant("tail-lost", "a queue's tail is not corrected on removal", "c->last = t->prev;", ";"),
    mutant(
        "head-lost",
        "a container's head is not corrected on removal",
        "c->first = t->next;",
        ";",
    ),
    mutant("back-link-lost", "a removal leaves the back link", "t->next->prev = t->prev;", ";"),
    mutant(
        "first-not-cached",
        "the first of a sorted container is not corrected on removal",
        "c->first = attune_tree_after(t);",
        ";",
    ),
    mutant(
        "leftmost-forgotten",
        "any left descent makes a new first",
        "leftmost &= left;",
        "leftmost = left;",
    ),
    mutant(
        "heir-orphaned",
        "the heir's left subtree keeps its old parent",
        "heir->prev->parent = heir;",
        ";",
    ),
    mutant(
        "rotation-forgets-parent",
        "a rotation leaves the inner subtree's parent",
        "inner->parent = t;",
        ";",
    ),
    mutant(
        "tree-successor",
        "the successor in a sorted container stops at a parent",
        "while (t->parent && t->parent->next == t && ATTUNE_MAY_LOOP)",
        "while (0)",
    ),
    // ---- foreach ----
    mutant("foreach-sees-new", "foreach visits what came in since", "t->stamp >= u->since", "0"),
    mutant(
        "foreach-stamp-off-by-one",
        "foreach visits the first that came in",
        "t->stamp >= u->since",
        "t->stamp > u->since",
    ),
    mutant(
        "cursor-not-advanced",
        "foreach follows a thread that left",
        "if (u->next == t)",
        "if (0)",
    ),
    mutant(
        "stamp-kept",
        "a thread that comes back keeps its stamp",
        "t->stamp = attune->stamp++;",
        "if (!t->stamp) t->stamp = attune->stamp++;",
    ),
    mutant(
        "inner-cursor-forgotten",
        "a second foreach over the container hides the first",
        "u->other = c->cursors;",
        "u->other = NULL;",
    ),
    // ---- checks ----
    mutant(
        "empty-not-checked",
        "the first of an empty container is used",
        "if (!c->first) {\n        attune_trap(attune, check, to, c);",
        "if (0) {",
    ),
    mutant(
        "room-not-checked",
        "a full threadref takes another thread",
        "if (c->first && c->first != t)",
        "if (0)",
    ),
    mutant(
        "room-too-strict",
        "a thread cannot be moved onto itself",
        "if (c->first && c->first != t)",
        "if (c->first)",
    ),
    mutant(
        "index-off-by-one",
        "an index may equal the length",
        "index >= length",
        "index > length",
    ),
    mutant("index-negative", "an index may be negative", "index < 0 || ", ""),
    mutant("destroyed-usable", "a destroyed thread may be used", "if (t->destroyed)\n", "if (0)\n"),
    mutant(
        "lost-thread",
        "a new thread need not be stored",
        "if (!t->where && !t->destroyed)\n",
        "if (0)\n",
    ),
    mutant(
        "destroyed-counts-lost",
        "a destroyed new thread counts as lost",
        "if (!t->where && !t->destroyed)\n",
        "if (!t->where)\n",
    ),
    mutant(
        "local-left-full",
        "a local container may stay full",
        "    if (c->size)\n        attune_trap(attune, check, c, NULL);",
        "",
    ),
    mutant(
        "budget-too-small",
        "loops end too early",
        "attune->budget--;",
        "attune->budget -= 262144;",
    ),
    mutant(
        "budget-not-shared",
        "every loop has a budget of its own",
        "attune->budget--;",
        "attune->budget = ATTUNE_LOOP_BUDGET;",
    ),
    mutant(
        "wrong-check",
        "a failed check names another one",
        ".check = check->number,",
        ".check = check->number ^ 1,",
    ),
    mutant(
        "wrong-column",
        "a failed check names the next column",
        ".column = check->column,",
        ".column = check->column + 1,",
    ),
    // ---- numbers ----
    mutant(
        "division-traps",
        "division by zero ends the program",
        "    if (b == 0) {\n        attune->divisions_by_zero++;\n        return 0;\n    }\n    \
            return b == -1",
        "    return b == -1",
    ),
    mutant(
        "remainder-by-zero",
        "x % 0 is 0",
        "        return a;\n    }\n    return b == -1 ? 0 : a % b;",
        "        return 0;\n    }\n    return b == -1 ? 0 : a % b;",
    ),
    mutant(
        "divisions-not-counted",
        "divisions by zero are not counted",
        "attune->divisions_by_zero++;",
        ";",
    ),
    mutant(
        "smallest-by-minus-one",
        "MIN / -1 overflows",
        "return b == -1 ? attune_neg(a) : a / b;",
        "return b == -1 ? a : a / b;",
    ),
    mutant(
        "multiplication-narrow",
        "products are cut to 32 bits",
        "(uint64_t)a * (uint64_t)b",
        "(uint64_t)(int64_t)(int32_t)((uint32_t)a * (uint32_t)b)",
    ),
    mutant(
        "subtraction-reversed",
        "a - b is b - a",
        "(uint64_t)a - (uint64_t)b",
        "(uint64_t)b - (uint64_t)a",
    ),
    mutant(
        "float-division-infinite",
        "a float divided by zero is infinite",
        "        attune->divisions_by_zero++;\n        return 0;\n    }\n    return a / b;",
        "        attune->divisions_by_zero++;\n    }\n    return a / b;",
    ),
    mutant(
        "remainder-sign",
        "the remainder of floats loses its sign",
        "attune_from_bits(x | (attune_bits(a) & sign))",
        "attune_from_bits(x)",
    ),
    mutant(
        "conversion-not-saturating",
        "a large float becomes the smallest int",
        "        return INT64_MAX;",
        "        return INT64_MIN;",
    ),
    mutant(
        "float-key-sign",
        "negative float keys sort backwards",
        "bits < 0 ? bits ^ INT64_MAX : bits",
        "bits",
    ),
    mutant(
        "float-key-truncated",
        "float keys are compared as ints",
        "int64_t bits = (int64_t)attune_bits(x);",
        "int64_t bits = attune_to_int(x);",
    ),
    mutant(
        "random-by-remainder",
        "random is reduced by %",
        "    /* The high half of z * n, from 32-bit halves: not every machine has 128-bit numbers. \
            */",
        "    return (int64_t)(z % (uint64_t)n);",
    ),
    mutant(
        "random-does-not-advance",
        "random(0) does not advance",
        "    if (n <= 0)\n        return 0;",
        "    if (n <= 0) {\n        attune->random_state -= 0x9e3779b97f4a7c15u;\
            \n        return 0;\n    }",
    ),
    mutant(
        "slice-negative",
        "a negative slice is without bound",
        "return d < 0 ? 0 : d;",
        "return d;",
    ),
    // ---- imports ----
    mutant(
        "import-not-written",
        "the application does not see what was assigned",
        "attune_store(attune, import->link, width, value);",
        "import->value.number = value;",
    ),
    mutant(
        "import-not-read",
        "the default stays in force",
        "return ATTUNE_LINKS && import->link ? attune_load(attune, import->link, width)\n",
        "return 0 ? 0\n",
    ),
    mutant(
        "float-import-narrow",
        "a float import is written as 32 bits",
        "*(double *)import->link = value;",
        "*(double *)import->link = (float)value;",
    ),
    mutant(
        "default-not-restored",
        "a new thread's import keeps no default",
        "_import.value.number = ",
        "_import.value.number = 1 + ",
    ),
    // ---- instances, and moves between them ----
    mutant(
        "instances-share-state",
        "all instances have one set of variables and containers",
        "#define ATTUNE_STATE(head) ((struct state ATTUNE_ARENA *)(head))",
        "static struct state attune_all;\n#define ATTUNE_STATE(head) (&attune_all)",
    ),
    mutant(
        "instances-share-stamps",
        "the insertions of all instances are counted together",
        "t->stamp = attune->stamp++;",
        "static uint64_t all = 1; t->stamp = all++;",
    ),
    mutant(
        "instances-share-random",
        "all instances draw from one stream",
        "uint64_t z = attune->random_state += ",
        "static uint64_t all; if (!all) all = attune->random_state; uint64_t z = all += ",
    ),
    mutant(
        "leaves-arrives-swapped",
        "arrives runs where a thread leaves",
        "[ATTUNE_LEAVES] = on_leaves,",
        "[ATTUNE_LEAVES] = on_arrives,",
    ),
    mutant(
        "arrives-as-new",
        "a thread that arrives is told as a new one",
        "[ATTUNE_ARRIVES] = on_arrives,",
        "[ATTUNE_ARRIVES] = on_newthread,",
    ),
    mutant(
        "leaves-as-death",
        "a thread that leaves is told as a dead one",
        "[ATTUNE_LEAVES] = on_leaves,",
        "[ATTUNE_LEAVES] = on_set_dead,",
    ),
    // ---- generated code ----
    mutant("and-evaluates-both", "&& evaluates its right side always", " && (", " & ("),
    mutant("or-evaluates-both", "|| evaluates its right side always", ") || (", ") | ("),
    mutant(
        "slice-forgotten",
        "`for` has no effect",
        "attune->slice = attune_slice(",
        "attune->slice = -1; (void)(",
    ),
    mutant("less-or-equal", "<= is <", " <= ", " < "),
    mutant("cpu-zero", "every CPU uses the first one's variables", "[attune->cpu]", "[0]"),
    mutant(
        "named-next-query",
        "a query returns the thread's address at random",
        "attune->value_thread = ",
        "attune->value_thread = (struct attune_thread *)0; (void)",
    ),
    mutant(
        "alarm-cancelled",
        "an alarm is set for time 0",
        "(attune)->host->alarm((attune)->host->engine, ",
        "conformance_no_alarm(",
    ),
    mutant(
        "preempt-self",
        "preempt names the CPU it runs on",
        "(attune)->host->preempt((attune)->host->engine, ",
        "(attune)->host->preempt((attune)->host->engine, 1 + ",
    ),
    mutant(
        "preempt-late",
        "the time of a preempt is a nanosecond off",
        "(attune)->host->preempt((attune)->host->engine, cpu, at)",
        "(attune)->host->preempt((attune)->host->engine, cpu, (at) + 1)",
    ),
    mutant(
        "preempt-at-once",
        "the time of a preempt is not looked at",
        "(attune)->host->preempt((attune)->host->engine, cpu, at)",
        "(attune)->host->preempt((attune)->host->engine, cpu, 0)",
    ),
    mutant(
        "attach-keeps-globals",
        "a new start keeps old values",
        "    attune->random_state = attune_seed;",
        "    static int again; attune->random_state = attune_seed; if (again++) return;",
    ),
    mutant(
        "seed-ignored",
        "random does not depend on the seed",
        "attune->random_state = attune_seed;",
        "attune->random_state = 1;",
    ),
    mutant(
        "range-not-fitted",
        "a value out of its import's range, or of its variable's, is taken as it is",
        "    if (value >= low && value <= high)",
        "    if (1)",
    ),
    mutant(
        "range-other-end",
        "a value below its range is taken as the greatest",
        "return value < low ? low : high;",
        "return high;",
    ),
    mutant("invariants-off", "invariants do not run", "    attune_watch(attune);", "    ;"),
    mutant(
        "removal-forgotten",
        "a thread that the engine removes stays in its container",
        "    attune_remove(attune_thread);",
        "    ;",
    ),
    mutant(
        "attribute-not-initialised",
        "a new thread's variables start with zero",
        "attune_new->a",
        "int64_t attune_unused_a",
    ),
];
