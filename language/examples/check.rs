//! Checks schedulers, and prints what is found and how long it took:
//! `cargo run --release -p attune-language --example check -- [--ir] FILE..`
//! Bases are looked for beside each file, and in `schedulers/` of the folder that it is run in.

use std::path::{Path, PathBuf};
use std::time::Instant;

use attune_language::resolve::{Loaded, Loader, NotFound, Request, SourceText};
use attune_language::{Options, check, diagnostic};

struct Files;

impl Loader for Files {
    fn load(&mut self, request: &Request<'_>) -> Result<Loaded, NotFound> {
        let (file, from) = match request {
            Request::Base { name, from } => (format!("{name}.sched"), from),
            Request::Node { file, from } => (file.to_string(), from),
        };
        let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(&file);
        let tried: Vec<PathBuf> = vec![beside, Path::new("schedulers").join(&file)];
        for path in &tried {
            if let Ok(text) = std::fs::read_to_string(path) {
                return Ok(Loaded { name: path.display().to_string(), text });
            }
        }
        let tried = tried.iter().map(|path| path.display().to_string()).collect();
        Err(NotFound { tried, reason: None })
    }
}

fn main() -> std::io::Result<()> {
    let (flags, files): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word == "--ir");
    for file in files {
        let main = SourceText { text: std::fs::read_to_string(&file)?, name: file };
        let start = Instant::now();
        let checked = check(&main, &mut Files, &Options::default());
        let took = start.elapsed();
        for diagnostic in &checked.diagnostics {
            print!("{}", diagnostic::render(diagnostic, &checked.sources));
        }
        if let (Some(program), false) = (&checked.program, flags.is_empty()) {
            println!("{program}");
        }
        println!("{}: {took:?}", main.name);
    }
    Ok(())
}
