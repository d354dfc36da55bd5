//! Names of system calls.

use syscalls::Sysno;

/// The number of a system call that is given by its name or number; None if this machine has no
/// such call.
pub fn call_number(word: &str) -> Option<u32> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    word.parse::<Sysno>().ok().and_then(|call| u32::try_from(call.id()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_a_name_and_a_number() {
        assert_eq!(call_number("futex"), u32::try_from(Sysno::futex.id()).ok());
        assert_eq!(call_number("17"), Some(17));
        assert_eq!(call_number("no_such_call"), None);
    }
}
