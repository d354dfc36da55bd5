//! The runtime's files, and which of them a scheduler needs.

/// What a scheduler uses, so that the rest need not be compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// A pqueue or pstack.
    pub sorted: bool,
    pub floats: bool,
    pub imports: bool,
    /// For BPF: without floats, without linked variables, failures noted as numbers.
    pub bpf: bool,
}

impl Needs {
    /// What two schedulers in one text need.
    pub fn and(self, other: Needs) -> Needs {
        Needs {
            sorted: self.sorted || other.sorted,
            floats: self.floats || other.floats,
            imports: self.imports || other.imports,
            bpf: self.bpf || other.bpf,
        }
    }
}

const ABI: &str = include_str!("../runtime/attune_scheduler.h");
const NUMBER: &str = include_str!("../runtime/number.h");
const REAL: &str = include_str!("../runtime/real.h");
const IMPORT: &str = include_str!("../runtime/import.h");
const CONTAINER: &str = include_str!("../runtime/container.h");
const TREE: &str = include_str!("../runtime/tree.h");
const CHECK: &str = include_str!("../runtime/check.h");
const TRAP: &str = include_str!("../runtime/trap.h");
const FAILURE: &str = include_str!("../runtime/failure.h");
const BPF: &str = include_str!("../runtime/bpf.h");
const AFFINITY: &str = include_str!("../runtime/affinity.h");

/// What `schedule` needs on several CPUs. Stands behind what the engine says of affinities.
pub fn affinity() -> String {
    AFFINITY.lines().filter(|line| !line.starts_with("#include \"")).map(|line| format!("{line}\n")).collect()
}

/// The parts in one text that needs no other file but <stddef.h> and <stdint.h>.
pub fn text(needs: Needs) -> String {
    let mut text = String::new();
    let mut part = |part: &str| {
        for line in part.lines().filter(|line| !line.starts_with("#include \"")) {
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
    };
    if needs.bpf {
        part(BPF);
    }
    part(ABI);
    part(NUMBER);
    if !needs.bpf && (needs.floats || needs.imports) {
        part(REAL);
    }
    if needs.imports {
        part(IMPORT);
    }
    // The container's own `#include` of the tree stands in its middle.
    let tree = if needs.sorted { TREE } else { "" };
    part(&format!("#define ATTUNE_SORTED {}\n", u8::from(needs.sorted)));
    part(&CONTAINER.replace("#include \"tree.h\"", tree));
    part(if needs.bpf { FAILURE } else { TRAP });
    part(CHECK);
    text
}
