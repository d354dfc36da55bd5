//! The guest's console: the kernel's last words, for messages.

/// So many lines are shown of a machine that stopped without saying why.
const SHOWN: usize = 40;

/// And so many of one that died: the reason, the registers and the trace of calls.
const SHOWN_OF_A_DEATH: usize = 90;

/// How the kernel begins to say what it dies of. The panic itself comes after the registers and the
/// trace.
const BEGINNINGS: [&str; 6] =
    ["BUG: ", "Oops", "general protection fault", "kernel BUG at", "watchdog: ", "Kernel panic"];

/// The last lines of what the console got, without the firmware's greeting and its control
/// sequences.
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
    let reason = |line: &&str| BEGINNINGS.iter().any(|beginning| line.contains(beginning));
    match lines.iter().position(reason) {
        Some(start) => lines[start..lines.len().min(start + SHOWN_OF_A_DEATH)].join("\n"),
        None => lines[lines.len().saturating_sub(SHOWN)..].join("\n"),
    }
}

/// Whether the kernel died of a breakpoint that its memory does not have (any more): see
/// [`crate::FAULT`].
pub fn is_stale_breakpoint(words: &str) -> bool {
    let first = words.lines().next().unwrap_or_default();
    // `<..>` is the instruction after the one that was met; a breakpoint is `cc`.
    let code = words.lines().find_map(|line| line.split_once("Code: "));
    let met = code.and_then(|(_, code)| code.split_once('<')?.0.split_whitespace().last());
    first.contains("int3: ") && met.is_some_and(|met| met != "cc")
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
        let console = "\u{1b}c\u{1b}[?7l\u{1b}[2JSeaBIOS (version 1)\r\nBooting from ROM..\r\n[ \
            1.2] Kernel panic - not syncing\r\n";
        assert_eq!(last_words(console.as_bytes()), "[ 1.2] Kernel panic - not syncing");
        assert_eq!(last_words(b"\r\n"), "(none)");
    }

    #[test]
    fn a_death_is_told_from_its_reason_on() {
        let console = "[ 1.0] attune is well\n[ 1.1] Oops: general protection fault, probably for \
            non-canonical address\n[ 1.2] RIP: 0010:somewhere\n[ 1.3] Kernel panic - not syncing: \
            Fatal exception in interrupt\n";
        let told = last_words(console.as_bytes());
        assert!(
            told.starts_with("[ 1.1] Oops") && told.ends_with("Fatal exception in interrupt"),
            "{told}"
        );
    }

    #[test]
    fn a_breakpoint_that_is_not_there_is_the_emulators() {
        let of = |code: &str| {
            format!(
                "[ 1.1] Oops: int3: 0000 [#1] SMP NOPTI\n[ 1.2] RIP: 0010:sched_tick+0xd4/0x230\n[ \
                    1.3] Code: 20 75 62 {code} 44 89 e7\n"
            )
        };
        assert!(is_stale_breakpoint(&of("66 <90>")));
        assert!(!is_stale_breakpoint(&of("cc <90>")));
        assert!(!is_stale_breakpoint(
            "[ 1.1] Oops: general protection fault\n[ 1.3] Code: 66 <90> 44\n"
        ));
        assert!(!is_stale_breakpoint("(none)"));
    }
}
