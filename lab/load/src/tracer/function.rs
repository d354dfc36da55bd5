//! Functions as the kernel's uprobes name them: a file and a place in it.

use std::ffi::{CStr, CString};
use std::fmt;
use std::fs;

use anyhow::{Context, Result, ensure};

/// A function in a program or a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    file: String,
    offset: u64,
}

impl Function {
    /// One that this process has in its memory, by its address.
    pub fn at(address: usize) -> Result<Function> {
        let maps = fs::read_to_string("/proc/self/maps").context("reading /proc/self/maps")?;
        let found = maps.lines().find_map(|line| in_mapping(line, address as u64));
        found.context("a function to be traced lies in no file")
    }

    /// One of a library that the dynamic linker finds by its name.
    pub fn in_library(library: &str, name: &str) -> Result<Function> {
        let (file, symbol) = (CString::new(library)?, CString::new(name)?);
        // SAFETY: the names are C strings. The library stays loaded, so that its mapping can be
        // looked up; its initialisers may run.
        let address = unsafe {
            let handle = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
            ensure!(!handle.is_null(), "{library} cannot be loaded: {}", last_error());
            libc::dlsym(handle, symbol.as_ptr())
        };
        ensure!(!address.is_null(), "{library} has no function {name}");
        Function::at(address as usize)
    }
}

fn last_error() -> String {
    // SAFETY: the answer is NULL or a C string, valid until the next call.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            String::new()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// `55..-56.. r-xp 00009000 fe:00 1234   /usr/lib/x.so`, if the address lies there.
fn in_mapping(line: &str, address: u64) -> Option<Function> {
    let mut words = line.split_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (begin, end) = (number(begin)?, number(end)?);
    let offset = number(words.nth(1)?)?;
    let file = words.nth(2)?;
    let there = (begin..end).contains(&address) && file.starts_with('/');
    there.then(|| Function { file: file.to_owned(), offset: address - begin + offset })
}

/// As uprobe_events want it.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{:#x}", self.file, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_a_place_in_its_file() {
        let line = "7f0000001000-7f0000003000 r-xp 00009000 fe:00 1234    /usr/lib/x.so";
        let found = in_mapping(line, 0x7f00_0000_1870).expect("inside");
        assert_eq!(found.to_string(), "/usr/lib/x.so:0x9870");
        assert_eq!(in_mapping(line, 0x7f00_0000_3000), None);
        assert_eq!(
            in_mapping("7f0000001000-7f0000003000 rw-p 00000000 00:00 0", 0x7f00_0000_1870),
            None
        );
        let own = Function::at(a_function_is_a_place_in_its_file as *const () as usize)
            .expect("this program");
        assert!(own.file.contains("attune"), "{own}");
        assert!(
            Function::in_library("libc.so.6", "nanosleep")
                .expect("the C library")
                .file
                .contains("libc")
        );
        assert!(Function::in_library("libc.so.6", "no_such_function").is_err());
    }
}
