//! Reads what a program made from schedulers says about itself: lines of words between tabs, which
//! the C back end writes.
//!
//! ```text
//! scheduler     NAME  FILE      what follows belongs to it, until the next one
//! source        NUMBER  FILE    for each file but the scheduler's own; added to a line in it
//! check         NUMBER  LINE  COLUMN  FILE  what was tried
//! global        NAME  C-NAME  data|const|tunable|import  int|time
//! attribute     NAME  MEMBER  data|import  int|time   an import is a struct attune_import
//! threadimport  NAME  DEFAULT   in the order of ATTUNE_EACH_SUPPLIED; a name that was there
//!                               before has that number
//! tableimport   NAME      the same for ATTUNE_EACH_TABLED
//! container     NAME  C-NAME
//! ```
//!
//! Two schedulers share a machine: the first is the command's, the second that of all others
//! (`bpf/share.h`).

use std::collections::HashMap;

use attune_values::wire::{self, Import};

/// There is one policy at least.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// One, or the command's and the others'.
    pub policies: Vec<Policy>,
    /// The checks of all policies.
    pub checks: HashMap<u32, Check>,
    /// Thread imports that processes may supply, of all policies.
    pub thread_imports: Vec<Import>,
    /// Thread imports that a table by process may supply, of all policies.
    pub table_imports: Vec<String>,
}

/// One scheduler.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub name: String,
    pub file: String,
    /// The other files that it is made of, each with what is added to a line to say that it stands
    /// in that file.
    pub sources: Vec<(u32, String)>,
    pub globals: Vec<Global>,
    pub attributes: Vec<Attribute>,
    pub containers: Vec<Container>,
}

/// A run-time check that was not proved.
#[derive(Clone, Debug)]
pub struct Check {
    pub file: String,
    /// From 1.
    pub line: u32,
    pub column: u32,
    /// A sentence without a full stop.
    pub what: String,
}

#[derive(Clone, Debug)]
pub struct Global {
    pub name: String,
    /// The variable's name in C, perhaps with a member: `urgent_import.value`.
    pub c_name: String,
    pub storage: Storage,
    /// In ns; else a plain number.
    pub is_time: bool,
}

fn wire_type(is_time: bool) -> wire::Type {
    if is_time { wire::Type::Time } else { wire::Type::Int }
}

impl Global {
    pub fn ty(&self) -> wire::Type {
        wire_type(self.is_time)
    }

    /// Whether it may be changed from outside.
    pub fn is_settable(&self) -> bool {
        matches!(self.storage, Storage::Tunable | Storage::Import)
    }

    /// Bytes from the variable's start to its value: an import's link stands in front.
    pub fn offset(&self) -> u64 {
        if self.storage == Storage::Import { 8 } else { 0 }
    }
}

/// A variable that every thread has.
#[derive(Clone, Debug)]
pub struct Attribute {
    pub name: String,
    /// The name of the member of `struct thread`.
    pub member: String,
    pub import: bool,
    pub ty: wire::Type,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Data,
    Const,
    Tunable,
    Import,
}

#[derive(Clone, Debug)]
pub struct Container {
    pub name: String,
    pub c_name: String,
}

impl Description {
    /// The only policy, or the command's.
    pub fn first(&self) -> &Policy {
        &self.policies[0]
    }

    /// Reads a description; None if a line is not as above.
    pub fn read(text: &str) -> Option<Description> {
        let mut description = Description::default();
        for line in text.trim_end_matches('\0').lines() {
            let words: Vec<&str> = line.split('\t').collect();
            match words.as_slice() {
                ["scheduler", name, file] => {
                    let (name, file) = (name.to_string(), file.to_string());
                    description.policies.push(Policy { name, file, ..Policy::default() });
                }
                ["check", number, line, column, file, what @ ..] => {
                    let check = Check {
                        file: file.to_string(),
                        line: line.parse().ok()?,
                        column: column.parse().ok()?,
                        what: what.join(" "),
                    };
                    description.checks.insert(number.parse().ok()?, check);
                }
                ["threadimport", name, default] => {
                    let import = Import { name: name.to_string(), default: default.parse().ok()? };
                    if description.thread_imports.iter().all(|it| it.name != import.name) {
                        description.thread_imports.push(import);
                    }
                }
                ["tableimport", name] => {
                    if description.table_imports.iter().all(|it| it != name) {
                        description.table_imports.push(name.to_string());
                    }
                }
                words => description.policies.last_mut()?.read(words)?,
            }
        }
        (!description.policies.is_empty()).then_some(description)
    }
}

impl Policy {
    fn read(&mut self, words: &[&str]) -> Option<()> {
        match words {
            ["global", name, c_name, storage, ty] => self.globals.push(Global {
                name: name.to_string(),
                c_name: c_name.to_string(),
                storage: match *storage {
                    "data" => Storage::Data,
                    "const" => Storage::Const,
                    "tunable" => Storage::Tunable,
                    "import" => Storage::Import,
                    _ => return None,
                },
                is_time: *ty == "time",
            }),
            ["source", number, file] => self.sources.push((number.parse().ok()?, file.to_string())),
            ["attribute", name, member, storage, ty] => self.attributes.push(Attribute {
                name: name.to_string(),
                member: member.to_string(),
                import: *storage == "import",
                ty: wire_type(*ty == "time"),
            }),
            ["container", name, c_name] => {
                self.containers
                    .push(Container { name: name.to_string(), c_name: c_name.to_string() });
            }
            _ => return None,
        }
        Some(())
    }

    /// A thread's last transfer in words: `line 8`, or `lifecycle.sched:8` where it stands in
    /// another file than the scheduler's own.
    pub fn line(&self, line: u32) -> String {
        match self.place(line) {
            (None, line) => format!("line {line}"),
            (Some(file), line) => format!("{file}:{line}"),
        }
    }

    /// The same with the file in any case: `mine.sched:8`.
    pub fn file_and_line(&self, line: u32) -> String {
        let (file, line) = self.place(line);
        format!("{}:{line}", file.unwrap_or(&self.file))
    }

    /// The line's file, if it is not the scheduler's own, and the line there.
    fn place(&self, line: u32) -> (Option<&str>, u32) {
        let files = self.sources.iter().filter(|(number, _)| *number <= line);
        match files.max_by_key(|(number, _)| *number) {
            None => (None, line),
            Some((number, file)) => (Some(file), line - number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_with_its_file_where_that_is_another() {
        let text = "scheduler\tmine\tmine.sched\nsource\t1000\tlifecycle.sched\n\
                    source\t2000\taspects.sched\n";
        let description = Description::read(text).expect("a description");
        let first = description.first();
        assert_eq!(first.line(8), "line 8");
        assert_eq!(first.line(1034), "lifecycle.sched:34");
        assert_eq!(first.line(2001), "aspects.sched:1");
        assert_eq!(first.file_and_line(8), "mine.sched:8");
        assert_eq!(first.file_and_line(1034), "lifecycle.sched:34");
    }
}
