//! Every code about text and files is explained by an example that gets it, and by one that gets nothing.

use attune_language::diagnostic::{Code, Example, codes};
use attune_language::resolve::{SourceText, resolve};
use attune_language::source::SourceMap;

/// What is said about an example's first file, with the others beside it.
fn codes_of(example: Example) -> Vec<Code> {
    let files = example.files();
    let text = |(name, text): &(&str, &str)| SourceText { name: name.to_string(), text: text.to_string() };
    let Some(main) = files.first().map(text) else { return Vec::new() };
    let aspects: Vec<SourceText> = files.iter().filter(|(name, _)| *name == "--aspect").map(text).collect();
    let mut diagnostics = Vec::new();
    resolve(&main, &aspects, &mut files.as_slice(), &mut SourceMap::new(), &mut diagnostics);
    diagnostics.iter().map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn the_examples_of_codes_about_text_and_files_show_them() {
    for code in codes::all().filter(|code| ["01", "02"].contains(&&code.name()[1..3])) {
        if !code.wrong().files().is_empty() {
            assert_eq!(codes_of(code.wrong()), [code], "the wrong example of {code}");
        }
        assert_eq!(codes_of(code.right()), [], "the right example of {code}");
    }
}
