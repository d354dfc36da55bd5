//! Compiles schedulers into a program, for its build script: the program then needs no file beside
//! it, and opens none.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), attune_threads_build::Error> {
//!     attune_threads_build::compile("shortest.sched")
//! }
//! ```
//!
//! The program starts with `attune_threads::compiled_scheduler!("shortest")` in its options.
//! `examples/compiled_in` is one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use attune_language::diagnostic::render;
use attune_language::engine::Engine;
use attune_language::{Options, check};

/// Why a scheduler is not compiled, as the user of the build script reads it.
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A build script that fails shows this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Compiles the scheduler, a file or the name of one of the library, into the program whose build
/// script this is. The program knows it by the file's name without the ending, which is made of
/// letters, digits and underscores.
///
/// # Errors
/// The file cannot be read; the text has errors; the threads engine refuses the policy; the C
/// compiler fails; this is no build script.
pub fn compile(scheduler: impl AsRef<Path>) -> Result<(), Error> {
    let scheduler = scheduler.as_ref();
    let name = name_of(scheduler)?;
    let folder = env::var_os("OUT_DIR").map(PathBuf::from);
    let folder = folder.ok_or_else(|| Error("OUT_DIR is not set: not a build script".into()))?;
    let c = c_of(scheduler)?;
    let symbol = format!("attune_scheduler_{name}");
    let file = folder.join(format!("{symbol}.c"));
    write(&file, &c)?;
    let mut build = cc::Build::new();
    build.std("gnu11").opt_level(2).flag("-ffp-contract=off").file(file);
    let compiled = build.define("attune_scheduler", symbol.as_str()).try_compile(&symbol);
    compiled.map_err(|error| Error(format!("{}: {error}", scheduler.display())))?;
    write(&folder.join(format!("{name}.rs")), &expression(&symbol))
}

/// The name of `policies/shortest.sched` is `shortest`.
fn name_of(scheduler: &Path) -> Result<String, Error> {
    let name = scheduler.file_stem().unwrap_or_default().to_string_lossy();
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(fits) {
        return Err(Error(format!(
            "{}: a scheduler that becomes part of a program needs a file name of letters, digits \
             and underscores",
            scheduler.display()
        )));
    }
    Ok(name.into_owned())
}

fn c_of(scheduler: &Path) -> Result<String, Error> {
    let fails = |error: &dyn fmt::Display| Error(format!("{}: {error}", scheduler.display()));
    let mut opened = attune_schedulers::open(scheduler, &[]).map_err(|error| fails(&error))?;
    let checked = check(&opened.source, &mut opened.loader, &Options::default());
    let sources = &checked.sources;
    // Texts of the library are part of this crate, so no files.
    for name in sources.ids().map(|id| sources.name(id)).filter(|name| Path::new(name).exists()) {
        println!("cargo::rerun-if-changed={name}");
    }
    let drawn = checked.diagnostics.iter().map(|diagnostic| render(diagnostic, sources));
    let drawn: String = drawn.collect();
    let Some(program) = checked.program.as_ref().filter(|_| !checked.has_errors()) else {
        return Err(Error(format!("\n{drawn}")));
    };
    for line in drawn.lines() {
        println!("cargo::warning={line}");
    }
    let report = checked.engine(Engine::Threads);
    if !report.accepted {
        let lacks = (!report.missing.is_empty()).then(|| report.missing.join(", "));
        let why = lacks.map(|lacks| format!("it lacks {lacks}")).into_iter();
        let why: Vec<String> = why.chain(report.reason.clone()).collect();
        return Err(fails(&format!("the threads engine refuses it: {}", why.join("; "))));
    }
    let options = Default::default();
    attune_backend_c::generate(program, &report.verdicts, sources, &options)
        .map_err(|refusal| fails(&refusal))
}

/// What `compiled_scheduler!` becomes.
fn expression(symbol: &str) -> String {
    format!(
        "{{\n    unsafe extern \"C\" {{\n        #[link_name = \"{symbol}\"]\n        static \
         SCHEDULER: ::attune_threads::CompiledScheduler;\n    }}\n    // SAFETY: a constant that \
         the build script has compiled into this program.\n    unsafe {{ &SCHEDULER }}\n}}\n"
    )
}

fn write(file: &Path, text: &str) -> Result<(), Error> {
    fs::write(file, text).map_err(|error| Error(format!("{}: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_the_file() {
        assert_eq!(name_of(Path::new("policies/shortest.sched")).unwrap(), "shortest");
        assert_eq!(name_of(Path::new("round_robin")).unwrap(), "round_robin");
        for wrong in ["", "a-b.sched", "a b", ".."] {
            assert!(name_of(Path::new(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_compiled_is_told_with_its_place() {
        let folder = env::temp_dir().join(format!("attune-threads-build.{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let said = |text: &str| {
            let file = folder.join("wrong.sched");
            fs::write(&file, text).unwrap();
            c_of(&file).unwrap_err().to_string()
        };
        let wrong = said("scheduler wrong extends fifo {\n    event schedule {\n        x => y;\n");
        assert!(wrong.contains("wrong.sched:"), "{wrong}");
        let lacking = said("scheduler lacking {\n    data { queue ready; }\n}\n");
        assert!(lacking.contains("the threads engine refuses it: it lacks"), "{lacking}");
        let absent = c_of(&folder.join("absent.sched")).unwrap_err().to_string();
        assert!(absent.contains("absent.sched: "), "{absent}");
        fs::remove_dir_all(folder).unwrap();
    }
}
