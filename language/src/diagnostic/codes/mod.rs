//! The tables of codes, one file per group. A new code is one entry in its group's table:
//!
//! ```text
//! NAME = "E0399", "title in one line";
//!     "Why, and what to do.";
//!     wrong r#"scheduler s { .. }"#;
//!     right r#"scheduler s { .. }"#;
//! ```
//!
//! An example of several files is a list of names and texts, `wrong [("a.sched", ".."), ("b.sched",
//! "..")]`, the first of which is checked; an empty list stands for an example that is too long to
//! be shown.

use super::Code;

/// Makes a table: a constant per entry, and `ALL` over them in order.
macro_rules! codes {
    (@example [$($file:expr),* $(,)?]) => { $crate::diagnostic::Example::Files(&[$($file),*]) };
    (@example $text:literal) => { $crate::diagnostic::Example::File($text) };
    ($(
        $name:ident = $code:literal, $title:literal;
            $explanation:literal;
            wrong $wrong:tt;
            right $right:tt;
    )*) => {
        $(
            #[doc = concat!($code, ": ", $title)]
            pub const $name: $crate::diagnostic::Code = $crate::diagnostic::Code {
                name: $code,
                title: $title,
                explanation: $explanation,
                wrong: codes!(@example $wrong),
                right: codes!(@example $right),
            };
        )*
        pub(super) const ALL: &[$crate::diagnostic::Code] = &[$($name),*];
    };
}

pub mod distributed;
pub mod files;
pub mod flow;
pub mod handlers;
pub mod names;
pub mod syntax;
pub mod transfers;
pub mod types;

/// Every code, group by group.
pub fn all() -> impl Iterator<Item = Code> {
    [
        syntax::ALL,
        files::ALL,
        names::ALL,
        types::ALL,
        handlers::ALL,
        transfers::ALL,
        distributed::ALL,
        flow::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_code_is_unique_and_stands_in_its_group() {
        let mut seen = HashSet::new();
        let groups = [
            ("01", syntax::ALL),
            ("02", files::ALL),
            ("03", names::ALL),
            ("04", types::ALL),
            ("05", handlers::ALL),
            ("06", transfers::ALL),
            ("07", distributed::ALL),
            ("08", flow::ALL),
        ];
        for (group, codes) in groups {
            for code in codes {
                let name = code.name();
                assert!(seen.insert(name), "{name} is there twice");
                assert!(
                    name.len() == 5 && (name.starts_with('E') || name.starts_with('W')),
                    "{name}"
                );
                assert_eq!(&name[1..3], group, "{name} stands in the wrong table");
                assert!(!code.title().ends_with('.'), "{name}: the title is no sentence");
                assert!(
                    code.explanation().ends_with('.'),
                    "{name}: the explanation is made of sentences"
                );
            }
        }
        assert_eq!(all().count(), seen.len());
    }

    #[test]
    fn a_code_is_found_in_either_case() {
        for code in all() {
            assert_eq!(Code::from_name(&code.name().to_lowercase()), Some(code));
        }
        assert_eq!(Code::from_name("E9999"), None);
    }
}
