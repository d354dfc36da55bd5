//! The examples that `attune explain` shows: the wrong one gets the code, the right one gets nothing at all.

use attune_language::diagnostic::{Code, codes};

use super::{check_files, codes_of, drawn};

/// The codes that lowering reports. Others are tested where they are found.
fn codes_of_lowering() -> impl Iterator<Item = Code> {
    codes::all().filter(|code| ["03", "04", "05", "06", "07"].contains(&&code.name()[1..3]))
}

#[test]
fn every_wrong_example_gets_its_code() {
    for code in codes_of_lowering() {
        let checked = check_files(&code.wrong().files());
        assert!(codes_of(&checked).contains(&code.name()), "{code}:\n{}", drawn(&checked));
        assert_eq!(checked.has_errors(), code.name().starts_with('E'), "{code}:\n{}", drawn(&checked));
    }
}

/// A person is told what stands there and what to do.
#[test]
fn every_message_has_a_label_and_a_hint() {
    for code in codes_of_lowering() {
        for diagnostic in check_files(&code.wrong().files()).diagnostics {
            assert!(!diagnostic.primary.text.is_empty(), "{}: {}", diagnostic.code, diagnostic.message);
            assert!(diagnostic.hint.is_some(), "{}: {}", diagnostic.code, diagnostic.message);
        }
    }
}

#[test]
fn no_right_example_gets_its_code_or_an_error() {
    for code in codes_of_lowering() {
        let checked = check_files(&code.right().files());
        let clean = !checked.has_errors() && !codes_of(&checked).contains(&code.name());
        assert!(clean, "{code}:\n{}", drawn(&checked));
    }
}
