//! Any bytes: the parser ends, keeps every byte, bounds its tree, and what it has to say can be
//! drawn.
#![no_main]

use attune_language::diagnostic::render;
use attune_language::source::SourceMap;
use attune_language::syntax::{MAX_DIAGNOSTICS, MAX_HEIGHT, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut sources = SourceMap::new();
    let source = sources.add("input.sched", text.as_ref());
    let parsed = parse(source, &text);
    assert!(parsed.syntax().text() == text.as_ref(), "the tree holds another text");
    assert!(parsed.height() <= MAX_HEIGHT, "the tree is too high");
    assert!(parsed.diagnostics.len() <= MAX_DIAGNOSTICS + 1);
    for diagnostic in &parsed.diagnostics {
        assert!(diagnostic.primary.span.end as usize <= text.len());
        render(diagnostic, &sources);
    }
});
