//! Finds the kernel's functions by which `bpf/implicit.h` recognises the timers that a thread waits
//! for.

use std::fs::File;
use std::io::{BufRead, BufReader};

#[derive(Debug, thiserror::Error)]
#[error(
    "what threads wait until cannot be told: /proc/kallsyms does not give the addresses of the \
     kernel's functions {0}; it gives them to root, unless /proc/sys/kernel/kptr_restrict is 2"
)]
pub struct Hidden(&'static str);

/// Addresses; 0: not wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timers {
    /// The function of the timer of a thread that sleeps, or blocks with a time-out.
    pub sleeper: u64,
    /// The function of a timerfd's timer.
    pub descriptor: u64,
}

const SLEEPER: &str = "hrtimer_wakeup";
const DESCRIPTOR: &str = "timerfd_tmrproc";

/// Looks them up in the running kernel's table of symbols.
pub(crate) fn functions() -> Result<Timers, Hidden> {
    match File::open("/proc/kallsyms") {
        Ok(symbols) => find(BufReader::new(symbols)),
        Err(_) => Err(Hidden(SLEEPER)),
    }
}

fn find(symbols: impl BufRead) -> Result<Timers, Hidden> {
    let mut found = Timers::default();
    for line in symbols.lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        let (address, _, name, None) = (words.next(), words.next(), words.next(), words.next())
        else {
            continue; // of a module
        };
        let address =
            address.and_then(|address| u64::from_str_radix(address, 16).ok()).unwrap_or(0);
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
        Timers { sleeper: 0, .. } => Err(Hidden(SLEEPER)),
        Timers { descriptor: 0, .. } => Err(Hidden(DESCRIPTOR)),
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "ffffffff81000000 T _text\nffffffff8113a000 t \
        hrtimer_wakeup\nffffffffc0000000 t hrtimer_wakeup\t[module]\n\
                         ffffffff812b0000 t timerfd_tmrproc\n";

    #[test]
    fn the_kernels_own_functions_are_found() {
        let timers = find(TABLE.as_bytes()).expect("both are there");
        assert_eq!(
            timers,
            Timers { sleeper: 0xffff_ffff_8113_a000, descriptor: 0xffff_ffff_812b_0000 }
        );
    }

    #[test]
    fn hidden_addresses_and_missing_functions_are_named() {
        let hidden = "0000000000000000 t hrtimer_wakeup\n0000000000000000 t timerfd_tmrproc\n";
        let without = "ffffffff8113a000 t hrtimer_wakeup\n";
        for (table, missing) in [(hidden, SLEEPER), (without, DESCRIPTOR), ("garbage\n\n", SLEEPER)]
        {
            match find(table.as_bytes()) {
                Err(Hidden(name)) => assert_eq!(name, missing),
                other => panic!("{other:?}"),
            }
        }
    }
}
