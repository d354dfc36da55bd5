//! One C text from a checked scheduler and the engine's own C.

use attune_backend_c as c;
use attune_language::ir::{Program, Verdicts};
use attune_language::source::SourceMap;

const KERNEL: &str = include_str!("../bpf/kernel.h");
const THREAD: &str = include_str!("../bpf/thread.h");
const ALARM: &str = include_str!("../bpf/alarm.h");
const VALUES: &str = include_str!("../bpf/values.h");
const ENGINE: &str = include_str!("../bpf/engine.h");

/// The scheduler as a BPF program in C that compiles by itself. `verdicts` are the kernel engine's.
pub fn source(program: &Program, verdicts: &Verdicts, sources: &SourceMap) -> Result<String, c::Refusal> {
    let around = c::Surroundings {
        before: format!("{KERNEL}\n{THREAD}"),
        behind: ENGINE.replace("#include \"alarm.h\"\n", ALARM).replace("#include \"values.h\"\n", VALUES),
    };
    let options = c::Options { debug: false, target: c::Target::Bpf(around) };
    c::generate(program, verdicts, sources, &options)
}
