//! Traces.

use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::status;
use super::threads::text;
use crate::trace_operations;

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_trace(path: *const c_char) -> c_int {
    status(|| match text(path) {
        Some(path) => trace_operations::begin(Path::new(OsStr::from_bytes(path.to_bytes()))),
        None => trace_operations::end(),
    })
}
