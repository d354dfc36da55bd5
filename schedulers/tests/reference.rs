//! The examples of docs/language.md, docs/distributed.md, docs/tutorial.md and README.md: those
//! marked `sched` check without an error, those marked `sched error` do not.

use attune_language::diagnostic::{has_errors, render};
use attune_language::resolve::{Loaded, Loader, NotFound, Request, SourceText};
use attune_language::{Options, check};
use attune_schedulers::FileLoader;

struct Example {
    line: usize,
    wrong: bool,
    /// The name of a file of a distributed scheduler.
    file: Option<String>,
    text: String,
}

/// The other files of a page, then the library.
struct Page<'a>(&'a [Example], FileLoader);

impl Loader for Page<'_> {
    fn load(&mut self, request: &Request<'_>) -> Result<Loaded, NotFound> {
        if let Request::Node { file, .. } = *request {
            let named = self.0.iter().find(|example| example.file.as_deref() == Some(file));
            if let Some(example) = named {
                return Ok(SourceText { name: file.to_string(), text: example.text.clone() });
            }
        }
        self.1.load(request)
    }
}

fn examples(markdown: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for (index, line) in markdown.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(word) if word.split(' ').next() == Some("sched") => {
                inside = true;
                let name = word.split(' ').nth(1).filter(|name| name.ends_with("sched"));
                examples.push(Example {
                    line: index + 2,
                    wrong: word.ends_with("error"),
                    file: name.map(str::to_string),
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
        ("distributed.md", include_str!("../../docs/distributed.md"), 2),
        ("tutorial.md", include_str!("../../docs/tutorial.md"), 6),
        ("README.md", include_str!("../../README.md"), 1),
    ];
    for (page, text, least) in pages {
        let examples = examples(text);
        assert!(examples.len() >= least, "{page}: the examples were not found");
        // Node schedulers are checked with their master.
        let is_node =
            |it: &&Example| it.file.as_ref().is_some_and(|file| file.ends_with(".subsched"));
        for example in examples.iter().filter(|it| !is_node(it)) {
            let name = format!("{page}:{}", example.line);
            let source = SourceText { name, text: example.text.clone() };
            let mut loader = Page(&examples, FileLoader::default());
            let checked = check(&source, &mut loader, &Options::default());
            let said: String =
                checked.diagnostics.iter().map(|it| render(it, &checked.sources)).collect();
            assert_eq!(has_errors(&checked.diagnostics), example.wrong, "{}\n{said}", source.name);
            let cluster = example.file.is_some();
            assert_eq!(checked.cluster.is_some(), cluster, "{}\n{said}", source.name);
        }
    }
}
