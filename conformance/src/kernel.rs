//! Random schedulers for the kernel engine, compiled: what `attune check` accepts must load.

use std::path::Path;

use anyhow::{Context, Result};
use attune_kernel::Compiler;
use attune_language::event::Engine;
use attune_language::resolve::SourceText;
use attune_language::{Options, check};

use crate::generator;

/// From so many lines on a scheduler is long.
const LONG: usize = 150;

/// Writes `cases` objects into the folder, every other one from a long scheduler, with the text beside each. A line on what was
/// made.
pub fn compile(cases: u64, seed: u64, size: usize, folder: &Path) -> Result<String> {
    let compiler = Compiler::find()?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let (mut made, mut long, mut seed, first) = (0, 0, seed, seed);
    while made < cases {
        let wants_long = made % 2 == 1;
        let sources = generator::scheduler(seed, if wants_long { size * 4 } else { size });
        seed += 1;
        let texts = |texts: Vec<SourceText>| texts.into_iter().map(without_floats).collect::<Vec<_>>();
        let (main, bases, aspects) =
            (without_floats(sources.main()), texts(sources.bases()), texts(sources.aspects()));
        let files = std::iter::once(&main).chain(&bases).chain(&aspects);
        let text: String = files.map(|file| format!("--- {}\n{}\n", file.name, file.text)).collect();
        let lines = text.lines().count();
        let bases: Vec<(&str, &str)> =
            bases.iter().map(|base| (base.name.as_str(), base.text.as_str())).collect();
        let checked = check(&main, &mut &bases[..], &Options { aspects });
        let report = checked.engine(Engine::Kernel);
        let Some(program) = checked.program.as_ref().filter(|_| report.accepted) else { continue };
        if wants_long != (lines > LONG) {
            continue;
        }
        let c = attune_kernel::source(program, &report.verdicts, &checked.sources)?;
        let name = format!("random_{:04}", made + 1);
        std::fs::write(folder.join(format!("{name}.sched")), &text)?;
        attune_kernel::compile(&compiler, &c, &folder.join(format!("{name}.bpf.o")), 4)
            .with_context(|| format!("seed {}\n{text}", seed - 1))?;
        made += 1;
        long += u64::from(wants_long);
    }
    Ok(format!("{made} objects, {long} of them from over {LONG} lines; seeds {first} to {}", seed - 1))
}

/// The same text with ints in place of floats: the word, and every number with a point or an exponent that is no time.
fn without_floats(source: SourceText) -> SourceText {
    let mut text = String::new();
    let mut rest = source.text.as_str();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_word(c)).unwrap_or(from.len());
        let (word, behind) = from.split_at(end);
        text.push_str(before);
        text.push_str(match word {
            "float" => "int",
            number if number.starts_with(|c: char| c.is_ascii_digit()) && number.parse::<f64>().is_ok() => {
                if number.parse::<i64>().is_ok() {
                    number
                } else {
                    "1000"
                }
            }
            other => other,
        });
        rest = behind;
    }
    text.push_str(rest);
    SourceText { name: source.name, text }
}
