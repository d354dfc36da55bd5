//! The words of a verbatim text: which names it uses, and which of them for members of structures.
//!
//! Words in strings, characters and comments are none.

use std::ops::Range;

use super::keywords;

/// A word and where it stands; a member's name stands behind `.` or `->`.
struct Word {
    at: Range<usize>,
    member: bool,
}

/// All words.
pub(super) fn words(text: &str) -> Vec<&str> {
    scan(text).into_iter().map(|word| &text[word.at]).collect()
}

/// The words that do not name a member of some structure (`t->size`).
pub(super) fn free_words(text: &str) -> Vec<&str> {
    let free = scan(text).into_iter().filter(|word| !word.member);
    free.map(|word| &text[word.at]).collect()
}

/// How a text names something: by its own name or, where C has another meaning for that, by its
/// name in C. None if it does not.
pub(super) fn spelling<'a>(words: &[&str], name: &'a str, in_c: &'a str) -> Option<&'a str> {
    let mentioned = |name: &&str| words.contains(name) && !keywords::means_something_in_c(name);
    [name, in_c].into_iter().find(mentioned)
}

/// Takes those macros away whose names the text also uses for members, where a macro would change
/// them as well, and writes them out where the names stand alone.
pub(super) fn write_out(text: &str, macros: &mut Vec<(String, String)>) -> String {
    let words = scan(text);
    let is_member = |name: &str| words.iter().any(|it| it.member && &text[it.at.clone()] == name);
    let (written, kept) = std::mem::take(macros).into_iter().partition(|(it, _)| is_member(it));
    *macros = kept;
    let written: Vec<(String, String)> = written;
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for word in words.iter().filter(|word| !word.member) {
        let found = written.iter().find(|(name, _)| *name == text[word.at.clone()]);
        let Some((_, meant)) = found else { continue };
        out.push_str(&text[from..word.at.start]);
        out.push_str(meant);
        from = word.at.end;
    }
    out.push_str(&text[from..]);
    out
}

fn scan(text: &str) -> Vec<Word> {
    let bytes = text.as_bytes();
    let in_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'/' if bytes[at..].starts_with(b"//") => at = end_of(text, at, "\n"),
            b'/' if bytes[at..].starts_with(b"/*") => at = end_of(text, at + 2, "*/"),
            byte if in_word(byte) => {
                while at < bytes.len() && in_word(bytes[at]) {
                    at += 1;
                }
                let before = text[..from].trim_end();
                let member = before.ends_with("->") || before.ends_with('.');
                found.push(Word { at: from..at, member });
            }
            _ => at += 1,
        }
    }
    found
}

/// The place behind the next `end`.
fn end_of(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |there| from + there + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_strings_and_comments_are_none() {
        let text = "a = \"b \\\" c\" + 'd' /* e */ + f->g . h; // i\nj";
        assert_eq!(words(text), ["a", "f", "g", "h", "j"]);
        assert_eq!(free_words(text), ["a", "f", "j"]);
        assert_eq!(words("\"open \\"), [""; 0]);
        assert_eq!(words("/* open"), [""; 0]);
    }

    #[test]
    fn a_name_that_is_a_members_as_well_is_written_out() {
        let mut macros = vec![("x".into(), "(s->x)".into()), ("y".into(), "(s->y)".into())];
        let text = write_out("x = t->x + y + u. x; \"x\"; /* x */ x++;", &mut macros);
        assert_eq!(text, "(s->x) = t->x + y + u. x; \"x\"; /* x */ (s->x)++;");
        assert_eq!(macros, [("y".into(), "(s->y)".into())]);
    }
}
