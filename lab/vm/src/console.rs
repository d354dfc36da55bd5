//! The guest's console: the kernel's last words, for messages.

/// So many lines are shown.
const SHOWN: usize = 40;

/// The last lines of what the console got, without the firmware's greeting and its control sequences.
pub fn last_words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = without_escapes(&text);
    let greeting = |line: &&str| {
        !line.trim().is_empty() && !line.contains("SeaBIOS") && !line.starts_with("Booting from")
    };
    let lines: Vec<&str> = plain.lines().map(str::trim_end).filter(greeting).collect();
    if lines.is_empty() {
        return "(none)".to_owned();
    }
    // What it died of comes before a trace of any length.
    let panic = lines.iter().position(|line| line.contains("Kernel panic"));
    let start = panic.unwrap_or(lines.len().saturating_sub(SHOWN));
    lines[start..lines.len().min(start + SHOWN)].join("\n")
}

fn without_escapes(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text.chars());
    while let Some(letter) = rest.next() {
        match letter {
            '\u{1b}' => {
                // `ESC c`, or `ESC [` up to a letter.
                if rest.next() == Some('[') {
                    rest.by_ref().find(char::is_ascii_alphabetic);
                }
            }
            '\r' => {}
            _ => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_goes_the_panic_stays() {
        let console = "\u{1b}c\u{1b}[?7l\u{1b}[2JSeaBIOS (version 1)\r\nBooting from ROM..\r\n[ 1.2] Kernel panic - not syncing\r\n";
        assert_eq!(last_words(console.as_bytes()), "[ 1.2] Kernel panic - not syncing");
        assert_eq!(last_words(b"\r\n"), "(none)");
    }
}
