//! The runtime's files, and which of them a scheduler needs on a target.

/// What a scheduler uses, so that the rest need not be compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// A pqueue or pstack.
    pub sorted: bool,
    pub stacks: bool,
    /// A `foreach`, which may note its place in a container: insertions are numbered.
    pub visits: bool,
    /// The time of a handler's call.
    pub time: bool,
    pub floats: bool,
    pub imports: bool,
    /// Variables that a cluster supplies.
    pub shared: bool,
    /// All variables of the scheduler.
    pub globals: usize,
}

impl Needs {
    /// What two schedulers in one text need.
    pub fn and(self, other: Needs) -> Needs {
        Needs {
            sorted: self.sorted || other.sorted,
            stacks: self.stacks || other.stacks,
            visits: self.visits || other.visits,
            time: self.time || other.time,
            floats: self.floats || other.floats,
            imports: self.imports || other.imports,
            shared: self.shared || other.shared,
            globals: self.globals.max(other.globals),
        }
    }
}

/// Which files a target takes where they differ.
#[derive(Debug)]
pub struct Runtime {
    /// In front of everything: what the runtime's words mean there.
    pub words: Option<&'static str>,
    /// Whether there are floating-point numbers.
    pub floats: bool,
    /// What a failed check does.
    pub failures: &'static str,
    /// Whether threads may be bound to some of the CPUs: an expression of C's preprocessor.
    pub pins: &'static str,
    /// Behind `import.h`, where the engine reads imports in another way.
    pub imports: Option<&'static str>,
    /// What an assignment to a variable that a cluster supplies does.
    pub shared: &'static str,
}

/// For programs: a failed check makes a message and calls the engine.
pub const PROGRAM: Runtime = Runtime {
    words: None,
    floats: true,
    failures: include_str!("../runtime/trap.h"),
    pins: "0",
    imports: None,
    shared: include_str!("../runtime/shared.h"),
};

/// For BPF: failures are noted as numbers.
pub const BPF: Runtime = Runtime {
    words: Some(include_str!("../runtime/bpf.h")),
    floats: false,
    failures: include_str!("../runtime/failure.h"),
    // In a program for one CPU no thread is bound to another.
    pins: "(ATTUNE_CPUS > 1)",
    imports: None,
    shared: include_str!("../runtime/written.h"),
};

/// For firmware: a failed check stops the machine, imports are plain variables.
pub const FIRMWARE: Runtime = Runtime {
    words: None,
    floats: true,
    failures: include_str!("../runtime/halt.h"),
    pins: "0",
    imports: Some(include_str!("../runtime/plain_import.h")),
    shared: include_str!("../runtime/written.h"),
};

const ABI: &str = include_str!("../runtime/attune_scheduler.h");
const NUMBER: &str = include_str!("../runtime/number.h");
const REAL: &str = include_str!("../runtime/real.h");
const IMPORT: &str = include_str!("../runtime/import.h");
const CONTAINER: &str = include_str!("../runtime/container.h");
const TREE: &str = include_str!("../runtime/tree.h");
const CHECK: &str = include_str!("../runtime/check.h");
const AFFINITY: &str = include_str!("../runtime/affinity.h");

/// What `schedule` needs on several CPUs. Stands behind what the engine says of affinities.
pub fn affinity() -> String {
    without_includes(AFFINITY)
}

/// The parts in one text that needs no other file but <stddef.h> and <stdint.h>.
pub fn text(needs: Needs, runtime: &Runtime) -> String {
    let mut text = String::new();
    let mut part = |part: &str| {
        text.push_str(&without_includes(part));
        text.push('\n');
    };
    if let Some(words) = runtime.words {
        part(words);
    }
    part(ABI);
    part(NUMBER);
    if runtime.floats && (needs.floats || needs.imports) {
        part(REAL);
    }
    if needs.imports {
        part(IMPORT);
        runtime.imports.iter().for_each(|imports| part(imports));
    }
    if needs.shared {
        // An array of one element at least, also where a node shares nothing.
        part(&format!("#define ATTUNE_GLOBALS {}\n", needs.globals.max(1)));
        part(runtime.shared);
    }
    // The container's own `#include` of the tree stands in its middle.
    let tree = if needs.sorted { TREE } else { "" };
    part(&format!(
        "#define ATTUNE_SORTED {}\n#define ATTUNE_STAMPS {}\n#define ATTUNE_STACKS {}\n#define \
         ATTUNE_PINS {}\n#define ATTUNE_TELLS_TIME {}\n",
        u8::from(needs.sorted),
        u8::from(needs.sorted || needs.visits),
        u8::from(needs.stacks),
        runtime.pins,
        u8::from(needs.time),
    ));
    part(&CONTAINER.replace("#include \"tree.h\"", tree));
    part(runtime.failures);
    part(CHECK);
    text
}

fn without_includes(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("#include \""));
    lines.map(|line| format!("{line}\n")).collect()
}
