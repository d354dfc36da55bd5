//! What a program made from policies says about itself, as its section of JSON lines tells it
//! (`attune_backend_c::kernel::description`).
//!
//! Two policies share a machine: the first is the command's, the second that of all others
//! (`bpf/share.h`).

use std::collections::HashMap;

pub use attune_backend_c::kernel::description::{Attribute, Check, Container, Global, Storage};
use attune_backend_c::kernel::description::{Line, Source};
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
    /// Set where the first policy is that of a cluster's node.
    pub node: Option<Node>,
}

/// The node that the first policy is.
#[derive(Clone, Debug)]
pub struct Node {
    /// The master's name.
    pub cluster: String,
    /// Its cluster's schema and its family, as `attune_cluster_local::packets` writes them.
    pub description: String,
}

/// One scheduler.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub name: String,
    pub file: String,
    /// The other files that it is made of.
    pub sources: Vec<Source>,
    pub globals: Vec<Global>,
    pub attributes: Vec<Attribute>,
    pub containers: Vec<Container>,
}

/// The type of a variable where it is told or set from outside.
pub fn wire_type(is_time: bool) -> wire::Type {
    if is_time { wire::Type::Time } else { wire::Type::Int }
}

impl Description {
    /// The only policy, or the command's.
    pub fn first(&self) -> &Policy {
        &self.policies[0]
    }

    /// Reads a description; None if a line is not one of this version's.
    pub fn read(text: &str) -> Option<Description> {
        let mut description = Description::default();
        for line in text.trim_end_matches('\0').lines() {
            description.add(serde_json::from_str(line).ok()?)?;
        }
        (!description.policies.is_empty()).then_some(description)
    }

    /// None: a line that belongs to a policy stands before the first of them.
    fn add(&mut self, line: Line) -> Option<()> {
        if let Line::Scheduler { name, file } = line {
            self.policies.push(Policy { name, file, ..Policy::default() });
            return Some(());
        }
        let policy = self.policies.last_mut()?;
        match line {
            Line::Scheduler { .. } => {}
            Line::Source(source) => policy.sources.push(source),
            Line::Check(check) => _ = self.checks.insert(check.number, check),
            Line::Global(global) => policy.globals.push(global),
            Line::Attribute(attribute) => policy.attributes.push(attribute),
            Line::Container(container) => policy.containers.push(container),
            Line::Node { cluster, description } => {
                self.node = Some(Node { cluster, description });
            }
            Line::ThreadImport { name, default, by_loader } => {
                match self.thread_imports.iter_mut().find(|it| it.name == name) {
                    // What one of two policies reserves for the loader, the other does too.
                    Some(known) => known.by_loader |= by_loader,
                    None => self.thread_imports.push(Import { name, default, by_loader }),
                }
            }
            Line::TableImport { name } => {
                if !self.table_imports.contains(&name) {
                    self.table_imports.push(name);
                }
            }
        }
        Some(())
    }
}

impl Policy {
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
        let files = self.sources.iter().filter(|source| source.above <= line);
        match files.max_by_key(|source| source.above) {
            None => (None, line),
            Some(source) => (Some(&source.file), line - source.above),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_with_its_file_where_that_is_another() {
        let text = r#"{"scheduler":{"name":"mine","file":"mine.sched"}}
{"source":{"above":1000,"file":"lifecycle.sched"}}
{"source":{"above":2000,"file":"aspects.sched"}}
"#;
        let description = Description::read(text).expect("a description");
        let first = description.first();
        assert_eq!(first.line(8), "line 8");
        assert_eq!(first.line(1034), "lifecycle.sched:34");
        assert_eq!(first.line(2001), "aspects.sched:1");
        assert_eq!(first.file_and_line(8), "mine.sched:8");
        assert_eq!(first.file_and_line(1034), "lifecycle.sched:34");
    }
}
