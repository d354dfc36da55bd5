//! Makes the built-in scheduler, `schedulers/pth.sched`, part of the library: checked, generated
//! and compiled like any other, under a symbol of its own.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use attune_language::engine::Engine;
use attune_language::{Options, check};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let opened = attune_schedulers::open(Path::new("pth"), &[])?;
    let mut loader = opened.loader;
    let checked = check(&opened.source, &mut loader, &Options::default());
    let program = checked.program.as_ref().filter(|_| !checked.has_errors());
    let program = program.ok_or_else(|| format!("pth.sched: {:?}", checked.diagnostics))?;
    let verdicts = &checked.engine(Engine::Threads).verdicts;
    let c = attune_backend_c::generate(program, verdicts, &checked.sources, &Default::default())?;

    let file = PathBuf::from(env::var("OUT_DIR")?).join("builtin_scheduler.c");
    fs::write(&file, c)?;
    cc::Build::new()
        .std("gnu11")
        .opt_level(2)
        .flag("-ffp-contract=off")
        .define("attune_scheduler", "attune_builtin_scheduler")
        .file(file)
        .try_compile("attune_builtin_scheduler")?;
    Ok(())
}
