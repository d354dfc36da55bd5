//! Traces of what the program's threads do, which Perfetto opens.

use std::io;
use std::path::Path;

use crate::trace_operations;

/// Writes a trace to the file from now on, until [`end_trace`] or the end of the process.
///
/// # Errors
/// EALREADY: a trace is being written. EBUSY: another process writes its trace there. EPERM: a
/// foreign OS thread. Those of open(2).
pub fn trace(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(trace_operations::begin(path.as_ref())?)
}

/// Ends the trace. When this returns, the file is complete; other threads run meanwhile.
///
/// # Errors
/// EALREADY: no trace is being written, or another thread ends it. EPERM: a foreign OS thread.
/// Those of the write(2) that failed.
pub fn end_trace() -> io::Result<()> {
    Ok(trace_operations::end()?)
}
