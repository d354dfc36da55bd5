//! What every finding of lowering has. That the examples show their codes is tested with the
//! explanations.

use attune_language::diagnostic::codes;

use super::check_files;

/// A person is told what stands there and what to do.
#[test]
fn every_message_has_a_label_and_a_hint() {
    let groups = ["03", "04", "05", "06", "07"];
    for code in codes::all().filter(|code| groups.contains(&&code.name()[1..3])) {
        for diagnostic in check_files(&code.wrong().files()).diagnostics {
            assert!(
                !diagnostic.primary.text.is_empty(),
                "{}: {}",
                diagnostic.code,
                diagnostic.message
            );
            assert!(diagnostic.hint.is_some(), "{}: {}", diagnostic.code, diagnostic.message);
        }
    }
}
