//! The kernel's functions by which `bpf/implicit.h` knows timers that somebody waits for.

use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::load::Error;

/// Addresses; 0: not wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timers {
    /// Of a thread that sleeps, or blocks with a time-out.
    pub sleeper: u64,
    /// Of a timerfd.
    pub descriptor: u64,
}

const SLEEPER: &str = "hrtimer_wakeup";
const DESCRIPTOR: &str = "timerfd_tmrproc";

/// From the running kernel's table of symbols.
pub(crate) fn functions() -> Result<Timers, Error> {
    match File::open("/proc/kallsyms") {
        Ok(symbols) => find(BufReader::new(symbols)),
        Err(_) => Err(Error::NoTimers(SLEEPER)),
    }
}

fn find(symbols: impl BufRead) -> Result<Timers, Error> {
    let mut found = Timers::default();
    for line in symbols.lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        let (address, _, name, None) = (words.next(), words.next(), words.next(), words.next()) else {
            continue; // of a module
        };
        let address = address.and_then(|address| u64::from_str_radix(address, 16).ok()).unwrap_or(0);
        match name {
            Some(SLEEPER) => found.sleeper = address,
            Some(DESCRIPTOR) => found.descriptor = address,
            _ => {}
        }
        if found.sleeper != 0 && found.descriptor != 0 {
            break;
        }
    }
    match found {
        Timers { sleeper: 0, .. } => Err(Error::NoTimers(SLEEPER)),
        Timers { descriptor: 0, .. } => Err(Error::NoTimers(DESCRIPTOR)),
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "ffffffff81000000 T _text\nffffffff8113a000 t hrtimer_wakeup\nffffffffc0000000 t hrtimer_wakeup\t[module]\n\
                         ffffffff812b0000 t timerfd_tmrproc\n";

    #[test]
    fn the_kernels_own_functions_are_found() {
        let timers = find(TABLE.as_bytes()).expect("both are there");
        assert_eq!(timers, Timers { sleeper: 0xffff_ffff_8113_a000, descriptor: 0xffff_ffff_812b_0000 });
    }

    #[test]
    fn hidden_addresses_and_missing_functions_are_named() {
        let hidden = "0000000000000000 t hrtimer_wakeup\n0000000000000000 t timerfd_tmrproc\n";
        let without = "ffffffff8113a000 t hrtimer_wakeup\n";
        for (table, missing) in [(hidden, SLEEPER), (without, DESCRIPTOR), ("garbage\n\n", SLEEPER)] {
            match find(table.as_bytes()) {
                Err(Error::NoTimers(name)) => assert_eq!(name, missing),
                other => panic!("{other:?}"),
            }
        }
    }
}
