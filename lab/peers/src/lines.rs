//! How long a scheduler's text is.

/// Lines of a text in C, Rust or the scheduler language that are neither empty nor a comment alone.
pub fn count_lines(text: &str) -> usize {
    let mut in_comment = false;
    let counts = |line: &&str| {
        let line = line.trim();
        if in_comment {
            in_comment = !line.contains("*/");
            return false;
        }
        if line.starts_with("/*") {
            in_comment = !line.contains("*/");
            return line.split_once("*/").is_some_and(|(_, rest)| !rest.trim().is_empty());
        }
        !line.is_empty() && !line.starts_with("//")
    };
    text.lines().filter(counts).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_do_not_count() {
        let text = "// a\n\nint x; // b\n/* c\n   d */\n/* e */ int y;\n  /* f */\n}\n";
        assert_eq!(count_lines(text), 3);
        assert_eq!(count_lines(""), 0);
    }
}
