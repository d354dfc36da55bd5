//! Makes schedulers of the standard library ready to run.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use attune_kernel::{Compiler, Layout};
use attune_language::engine::Engine;
use attune_language::{Checked, check};
use attune_simulator::interpreter::{self, Interpreter};

/// Reads and checks a scheduler of the library. Err: its first error, in a line.
fn checked(name: &str) -> Result<Checked> {
    let mut opened = attune_schedulers::open(Path::new(name), &[])?;
    let checked = check(&opened.source, &mut opened.loader, &Default::default());
    if let Some(error) = checked.diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
        bail!("{name}: {}", error.message);
    }
    Ok(checked)
}

/// Interprets a scheduler in the simulator, on one CPU.
pub fn interpret(name: &str) -> Result<Interpreter> {
    let checked = checked(name)?;
    let program = checked.program.ok_or_else(|| anyhow!("{name} cannot be run"))?;
    let options = interpreter::Options::default();
    Interpreter::new(Arc::new(program), &checked.sources, options)
        .map_err(|refusal| anyhow!("{name}: {refusal}"))
}

/// Compiles a scheduler for the kernel engine, with `words` in front of its C.
pub fn compile_for_kernel(
    name: &str,
    words: &str,
    out: &Path,
    cpus: u32,
    instances: u32,
) -> Result<()> {
    let checked = checked(name)?;
    let report = checked.engine(Engine::Kernel);
    let Some(program) = checked.program.as_ref().filter(|_| report.accepted) else {
        bail!("{name}: {}", report.reason.as_deref().unwrap_or("it cannot be run"));
    };
    let text = attune_kernel::source(program, &report.verdicts, &checked.sources)?;
    let (compiler, text) = (Compiler::find()?, words.to_owned() + &text);
    attune_kernel::compile(&compiler, &text, out, cpus, instances, Layout::Usual)?;
    Ok(())
}

/// Compiles a scheduler for the threads engine: a shared object at `out`.
pub fn compile(name: &str, out: &Path) -> Result<()> {
    attune_backend_c::compile(&c_of(name)?, out, false)?;
    Ok(())
}

/// A scheduler for the threads engine, in C.
pub fn c_of(name: &str) -> Result<String> {
    let checked = checked(name)?;
    let report = checked.engine(Engine::Threads);
    let Some(program) = checked.program.as_ref().filter(|_| report.accepted) else {
        bail!("{name}: {}", report.reason.as_deref().unwrap_or("it cannot be run"));
    };
    let options = attune_backend_c::Options::default();
    Ok(attune_backend_c::generate(program, &report.verdicts, &checked.sources, &options)?)
}
