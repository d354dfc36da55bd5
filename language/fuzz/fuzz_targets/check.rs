//! Any texts as a scheduler, its base, its node scheduler and its aspects: the front end ends, and
//! a program comes only from a scheduler without errors.
#![no_main]

use attune_language::diagnostic::render;
use attune_language::resolve::SourceText;
use attune_language::{Options, check};
use libfuzzer_sys::fuzz_target;

const FILES: [&str; 3] = ["main.sched", "base.sched", "web.subsched"];

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut texts = text.splitn(FILES.len() + 1, '\0');
    let files: Vec<(&str, &str)> = FILES.into_iter().zip(&mut texts).collect();
    let source =
        |name: &str, text: &str| SourceText { name: name.to_string(), text: text.to_string() };
    let aspects = texts.next().map(|text| source("aspects", text)).into_iter().collect();
    let main = source(files[0].0, files[0].1);
    let checked = check(&main, &mut files.as_slice(), &Options { aspects });
    let runs = checked.program.is_some() || checked.cluster.is_some();
    assert!(!runs || !checked.has_errors());
    for diagnostic in &checked.diagnostics {
        render(diagnostic, &checked.sources);
    }
});
