//! Every code of the syntax group is explained by an example that gets it, and by one that gets nothing.

use attune_language::diagnostic::codes;

use super::codes_of;

#[test]
fn the_examples_of_syntax_codes_show_them() {
    for code in codes::all().filter(|code| code.name()[1..].starts_with("01")) {
        for (name, text) in code.wrong().files() {
            assert_eq!(codes_of(text), [code], "the wrong example of {code}, {name}");
        }
        for (name, text) in code.right().files() {
            assert_eq!(codes_of(text), [], "the right example of {code}, {name}");
        }
    }
}
