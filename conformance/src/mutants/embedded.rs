//! The mutants of what only the embedded engine's text holds: `runtime/halt.h`,
//! `runtime/plain_import.h`, and the parts of the writer for plain imports.

use super::Mutant;
use crate::differential::Against;

const fn mutant(
    name: &'static str,
    breaks: &'static str,
    find: &'static str,
    replace: &'static str,
) -> Mutant {
    Mutant { name, breaks, find, replace, against: Against::Embedded, nodes: false }
}

pub const MUTANTS: &[Mutant] = &[
    mutant(
        "embedded-import-unread",
        "a handler does not read its global imports",
        "= ATTUNE_READ(",
        "= 0 * ATTUNE_READ(",
    ),
    mutant(
        "embedded-import-unwritten",
        "the firmware does not see what was assigned to an import",
        "    ATTUNE_WRITE(",
        "    (void)(",
    ),
    mutant(
        "embedded-import-narrow",
        "a 64-bit variable is read as 32 bits",
        "long: sizeof(long) == 4 ? ATTUNE_I32 : ATTUNE_I64,",
        "long: ATTUNE_I32,",
    ),
    mutant(
        "embedded-check-unheard",
        "a failed check of a container is not told",
        "    (void)a;\n    (void)b;\n    attune_halt(attune, check, NULL);",
        "    (void)a;\n    (void)b;",
    ),
];
