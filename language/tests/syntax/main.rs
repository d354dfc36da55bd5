//! Source to tree, and source to diagnostics: each `.sched` file beside this one has a snapshot.

mod nonsense;
mod view;

use std::fs;
use std::path::{Path, PathBuf};

use attune_language::diagnostic::{Code, Diagnostic, render};
use attune_language::source::SourceMap;
use attune_language::syntax::{self, Parse};

/// Every scheduler in that folder, by name.
fn schedulers(folder: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/syntax").join(folder);
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_string();
    files.iter().map(|path| (stem(path), fs::read_to_string(path).unwrap())).collect()
}

fn parse(text: &str) -> (SourceMap, Parse) {
    let mut sources = SourceMap::new();
    let source = sources.add("example.sched", text);
    let parse = syntax::parse(source, text);
    (sources, parse)
}

fn codes_of(text: &str) -> Vec<Code> {
    parse(text).1.diagnostics.iter().map(|diagnostic| diagnostic.code).collect()
}

fn rendered(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|diagnostic| render(diagnostic, sources)).collect()
}

#[test]
fn trees_of_accepted_schedulers() {
    for (name, text) in schedulers("accepted") {
        let (sources, parse) = parse(&text);
        assert_eq!(rendered(&sources, &parse.diagnostics), "", "{name}");
        assert_eq!(parse.syntax().text().to_string(), text, "{name}");
        insta::assert_snapshot!(format!("tree_{name}"), parse.dump());
    }
}

#[test]
fn messages_about_refused_schedulers() {
    for (name, text) in schedulers("refused") {
        let (sources, parse) = parse(&text);
        assert!(parse.has_errors(), "{name}");
        assert_eq!(parse.syntax().text().to_string(), text, "{name}");
        let lines: String = text.lines().map(|line| format!("    {line}\n")).collect();
        insta::assert_snapshot!(
            format!("messages_{name}"),
            format!("{lines}\n{}", rendered(&sources, &parse.diagnostics))
        );
    }
}

/// The library that comes with the program is written in the language.
#[test]
fn the_standard_library_parses() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedulers");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sched") {
            let (sources, parse) = parse(&fs::read_to_string(&path).unwrap());
            assert_eq!(rendered(&sources, &parse.diagnostics), "", "{}", path.display());
        }
    }
}

#[test]
fn a_byte_order_mark_before_the_text_is_no_part_of_it() {
    assert!(codes_of("\u{feff}scheduler s { }\r\n").is_empty());
    assert!(!codes_of("scheduler \u{feff}s { }").is_empty());
}
