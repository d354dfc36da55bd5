//! The questions that the shared writer asks about its target.
//!
//! A target is data: each field answers one question, and a folder beside this one
//! (`target/object`, `target/kernel`, `target/embedded`) holds the answers and whatever stands
//! around the scheduler there. The writer never asks which target it writes for.

use crate::runtime::Runtime;

/// What the generated C is made for.
#[derive(Debug)]
pub struct Target {
    /// The rest of the file's first comment, behind the line that names the scheduler.
    pub banner: &'static str,
    pub runtime: Runtime,
    /// What verbatim text may use without a declaration of its own.
    pub verbatim_headers: &'static str,
    /// Storage class and return type of a handler's function.
    pub handler: &'static str,
    pub parameters: &'static str,
    /// How a handler's function returns.
    pub leave: &'static str,
    /// Whether a handler's function returns something, so that its end needs a `leave` as well.
    pub returns: bool,
    pub failures: Failures,
    pub state: State,
    /// The CPU on which a handler runs, and how many there are, as C says it.
    pub cpu: &'static str,
    pub cpus: &'static str,
    /// What stands around the slice that is answered.
    pub slice: [&'static str; 2],
    /// Whether containers know their names, for the messages of failed checks.
    pub named_containers: bool,
    pub imports: Imports,
    /// Whether a handler of a cluster's node finds out itself how old its copy is; elsewhere the
    /// engine has set that import.
    pub tells_ages: bool,
    /// Set where a verifier follows the program.
    pub verifier: Option<Verifier>,
    /// Whether `schedule` reads a shared container as holding only the threads that may run on its
    /// CPU (`runtime/affinity.h`).
    pub affinity: bool,
    /// A thread remembers the line of its last transfer, with the number of the file above these
    /// bits. None: it remembers the line alone.
    pub file_above: Option<u32>,
}

/// What a failed check does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failures {
    /// It ends the handler and does not return; the text holds a record of each check.
    EndTheHandler,
    /// It is noted by its number, and the handler goes on with a thread that does not exist.
    AreNoted,
}

/// Where a function finds the state of the instance in which it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its first parameter points to it.
    Passed,
    /// There is one instance, whose state is a variable of the file.
    Only,
}

/// How an import is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imports {
    /// Through a link to a variable that the application registers while the scheduler runs.
    Linked,
    /// A thread import is a plain member of the record, and the macro ATTUNE_IMPORT_name names the
    /// variable of a global one.
    Plain,
}

/// What a verifier wants: every loop asks whether it may go on, a variable that counts starts with
/// a value that the verifier does not know, and the stack stays small.
#[derive(Clone, Copy, Debug)]
pub struct Verifier {
    /// Scalars of a routine that stay on the stack; the others live with the scheduler's variables.
    pub scalars_on_stack: usize,
}
