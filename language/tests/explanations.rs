//! Every code is explained by an example that gets it, and by one that gets nothing.

use attune_language::diagnostic::{Code, Diagnostic, Example, codes, render};
use attune_language::resolve::SourceText;
use attune_language::source::SourceMap;
use attune_language::{Options, check};

/// What is said about an example: its first file is checked, with the others beside it.
fn check_example(example: Example) -> Option<(SourceMap, Vec<Diagnostic>)> {
    let files = example.files();
    let text =
        |(name, text): &(&str, &str)| SourceText { name: name.to_string(), text: text.to_string() };
    let main = files.first().map(text)?;
    let aspects = files.iter().filter(|(name, _)| *name == "--aspect").map(text).collect();
    let checked = check(&main, &mut files.as_slice(), &Options { aspects });
    Some((checked.sources, checked.diagnostics))
}

fn said(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|diagnostic| render(diagnostic, sources)).collect()
}

#[test]
fn wrong_examples_show_their_code() {
    let mut wrong = Vec::new();
    for code in codes::all() {
        let Some((sources, diagnostics)) = check_example(code.wrong()) else { continue };
        if !diagnostics.iter().any(|diagnostic| diagnostic.code == code) {
            wrong.push(format!("{code} does not come up:\n{}", said(&sources, &diagnostics)));
        }
        // An error of the text itself hides nothing behind others.
        let is_about_text = |code: Code| code.name()[1..].starts_with("01");
        let others = diagnostics.iter().filter(|it| is_about_text(it.code) && it.code != code);
        if let Some(other) = others.into_iter().next() {
            wrong.push(format!(
                "{code} shows {} too:\n{}",
                other.code,
                said(&sources, &diagnostics)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn right_examples_show_nothing() {
    let mut wrong = Vec::new();
    for code in codes::all() {
        let Some((sources, diagnostics)) = check_example(code.right()) else { continue };
        if !diagnostics.is_empty() {
            wrong.push(format!("{code}:\n{}", said(&sources, &diagnostics)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
