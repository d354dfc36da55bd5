//! The mutants of what only the code of a cluster's node holds: `runtime/shared.h`,
//! `runtime/written.h`, and the writer for assignments to shared variables.

use super::Mutant;
use crate::differential::Against;

const fn mutant(
    against: Against,
    name: &'static str,
    breaks: &'static str,
    find: &'static str,
    replace: &'static str,
) -> Mutant {
    Mutant { name, breaks, find, replace, against, nodes: true }
}

pub const MUTANTS: &[Mutant] = &[
    // ---- shared.h, and what the writer says of assignments ----
    mutant(
        Against::C,
        "node-untold",
        "the cluster does not hear of an assignment to an int",
        "    attune_tell(attune, global, operation, by);",
        "",
    ),
    mutant(
        Against::C,
        "node-sets",
        "the cluster hears of an addition as if it set the variable",
        "attune_tell(attune, global, operation, by);",
        "attune_tell(attune, global, ATTUNE_SET, attune_add(old, by));",
    ),
    mutant(
        Against::C,
        "node-subtraction",
        "a subtraction is told as an addition",
        ", attune_neg(",
        ", (",
    ),
    mutant(
        Against::C,
        "node-copy-kept",
        "the node itself does not see what it adds",
        "        return attune_add(old, by);",
        "        return old;",
    ),
    // ---- written.h ----
    mutant(
        Against::Kernel,
        "node-shift-not-scaled",
        "what was added before a multiplication is not multiplied",
        "attune_add(attune_mul(change->shift, scale), shift);",
        "attune_add(change->shift, shift);",
    ),
    mutant(
        Against::Kernel,
        "node-scale-lost",
        "only the last of several multiplications counts",
        "change->scale = attune_mul(change->scale, scale);",
        "change->scale = scale;",
    ),
    mutant(
        Against::Embedded,
        "node-addition-sets",
        "the cluster hears of an addition as if it set the variable",
        "operation == ATTUNE_ADD ? 1 :",
        "operation == ATTUNE_ADD ? 0 :",
    ),
    mutant(
        Against::Kernel,
        "node-set-adds",
        "the cluster hears of setting a variable as an addition",
        "operation == ATTUNE_ADD ? 1 :",
        "operation != ATTUNE_MULTIPLY ? 1 :",
    ),
    mutant(
        Against::Kernel,
        "node-age-never-heard",
        "a node that has never heard of the manager believes its values",
        "        return INT64_MAX;\n    return attune->now > attune_heard_at",
        "        return 0;\n    return attune->now > attune_heard_at",
    ),
];
