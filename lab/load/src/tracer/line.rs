//! A line of the tracer's text:
//!
//! ```text
//! attune-load-93 [000] d.h1. 12.345678: hrtimer_expire_entry: hrtimer=00ab function=.. now=123
//! ```

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The thread that ran then: its name, and its number.
    pub name: &'a str,
    pub thread: u32,
    /// CLOCK_MONOTONIC, ns.
    pub time: u64,
    /// What happened; of a uprobe, its name with ours behind it.
    pub event: &'a str,
    /// The rest.
    pub says: &'a str,
}

impl<'a> Line<'a> {
    /// None: it is a comment, or no line of a trace.
    pub fn read(text: &'a str) -> Option<Line<'a>> {
        if text.starts_with('#') {
            return None;
        }
        // A program's name may hold anything, so from behind: the last dash before the CPU.
        let (who, rest) = text.split_once(" [")?;
        let (name, thread) = who.trim().rsplit_once('-')?;
        let thread = thread.parse().ok()?;
        let mut rest = rest.split_once(']')?.1.trim_start().splitn(2, ": ");
        let time = rest.next()?.split_whitespace().last()?;
        let (seconds, fraction) = time.split_once('.')?;
        let micros: u64 = fraction.parse().ok().filter(|_| fraction.len() == 6)?;
        let (event, says) = rest.next()?.split_once(": ")?;
        let time = (seconds.parse::<u64>().ok()? * 1_000_000 + micros) * 1000;
        Some(Line { name, thread, time, event, says })
    }

    /// The word behind `name=`.
    pub fn word(&self, name: &str) -> Option<&'a str> {
        self.says.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.word(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let text = "    a [b] c-93      [000] d.h1.    12.345678: hrtimer_expire_entry: \
            hrtimer=00ab function=hrtimer_wakeup now=7";
        // The name is cut at a bracket, so such a program's number is not read; others' are.
        assert_eq!(Line::read(text), None);
        let text = "   web-server-93      [001] d.h1.    12.345678: hrtimer_expire_entry: \
            hrtimer=00ab function=hrtimer_wakeup now=7";
        let line = Line::read(text).expect("a line");
        assert_eq!((line.name, line.thread, line.time), ("web-server", 93, 12_345_678_000));
        assert_eq!(line.event, "hrtimer_expire_entry");
        assert_eq!(
            (line.word("function"), line.number("now"), line.number("expires")),
            (Some("hrtimer_wakeup"), Some(7), None)
        );
        assert_eq!(Line::read("# tracer: nop"), None);
        assert_eq!(Line::read("CPU:0 [LOST 7 EVENTS]"), None);
    }
}
