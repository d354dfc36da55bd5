//! The examples of docs/language.md and of the README: those marked `sched` check without an error, those marked `sched error` do not.

use attune_language::diagnostic::{has_errors, render};
use attune_language::resolve::SourceText;
use attune_language::{Options, check};
use attune_schedulers::FileLoader;

struct Example {
    line: usize,
    wrong: bool,
    text: String,
}

fn examples(markdown: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for (index, line) in markdown.lines().enumerate() {
        match line.strip_prefix("```") {
            Some("sched" | "sched error") => {
                inside = true;
                examples.push(Example {
                    line: index + 2,
                    wrong: line.ends_with("error"),
                    text: String::new(),
                });
            }
            Some(_) => inside = false,
            None if inside => {
                let example = examples.last_mut().expect("a fence opened it");
                example.text.push_str(line);
                example.text.push('\n');
            }
            None => {}
        }
    }
    examples
}

#[test]
fn every_example_of_the_reference_does_what_it_says() {
    let pages = [
        ("language.md", include_str!("../../docs/language.md"), 9),
        ("README.md", include_str!("../../README.md"), 1),
    ];
    let examples = pages.iter().flat_map(|(page, text, least)| {
        let examples = examples(text);
        assert!(examples.len() >= *least, "{page}: the examples were not found");
        examples.into_iter().map(move |example| (page, example))
    });
    for (page, example) in examples {
        let source = SourceText { name: format!("{page}:{}", example.line), text: example.text };
        let checked = check(&source, &mut FileLoader::default(), &Options::default());
        let said: String = checked.diagnostics.iter().map(|it| render(it, &checked.sources)).collect();
        assert_eq!(has_errors(&checked.diagnostics), example.wrong, "{}\n{said}", source.name);
    }
}
