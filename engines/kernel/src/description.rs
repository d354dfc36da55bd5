//! What a program made from a scheduler says about itself: lines of words between tabs, written by the C back end.
//!
//! ```text
//! scheduler  NAME  FILE
//! source     NUMBER  FILE   for each file but the scheduler's own; added to a line that stands in it
//! check      NUMBER  LINE  COLUMN  FILE  what was tried
//! global     NAME  C-NAME  data|const|tunable|import
//! attribute  NAME  MEMBER  data|import          of the record; an import is a struct attune_import
//! threadimport  NAME  DEFAULT   in the order of ATTUNE_EACH_SUPPLIED
//! container  NAME  C-NAME
//! ```

use std::collections::HashMap;

use attune_values::wire::Import;

#[derive(Clone, Debug, Default)]
pub struct Description {
    pub scheduler: String,
    pub file: String,
    /// The other files that it is made of, each with what is added to a line to say that it stands in that file.
    pub sources: Vec<(u32, String)>,
    pub checks: HashMap<u32, Check>,
    pub globals: Vec<Global>,
    pub attributes: Vec<Attribute>,
    /// Thread imports that processes may supply.
    pub thread_imports: Vec<Import>,
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
    /// Of the variable in C, perhaps with a member: `urgent_import.value`.
    pub c_name: String,
    pub storage: Storage,
}

impl Global {
    /// Bytes from the variable's start to its value: an import's link stands in front.
    pub fn offset(&self) -> u64 {
        if self.storage == Storage::Import { 8 } else { 0 }
    }
}

/// A variable that every thread has.
#[derive(Clone, Debug)]
pub struct Attribute {
    pub name: String,
    /// Of `struct thread`.
    pub member: String,
    pub import: bool,
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
    /// None if a line is not as above.
    pub fn read(text: &str) -> Option<Description> {
        let mut description = Description::default();
        for line in text.trim_end_matches('\0').lines() {
            let words: Vec<&str> = line.split('\t').collect();
            match words.as_slice() {
                ["scheduler", name, file] => {
                    description.scheduler = name.to_string();
                    description.file = file.to_string();
                }
                ["source", number, file] => {
                    description.sources.push((number.parse().ok()?, file.to_string()));
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
                ["global", name, c_name, storage] => description.globals.push(Global {
                    name: name.to_string(),
                    c_name: c_name.to_string(),
                    storage: match *storage {
                        "data" => Storage::Data,
                        "const" => Storage::Const,
                        "tunable" => Storage::Tunable,
                        "import" => Storage::Import,
                        _ => return None,
                    },
                }),
                ["attribute", name, member, storage] => description.attributes.push(Attribute {
                    name: name.to_string(),
                    member: member.to_string(),
                    import: *storage == "import",
                }),
                ["threadimport", name, default] => {
                    let default = default.parse().ok()?;
                    description.thread_imports.push(Import { name: name.to_string(), default });
                }
                ["container", name, c_name] => description
                    .containers
                    .push(Container { name: name.to_string(), c_name: c_name.to_string() }),
                _ => return None,
            }
        }
        (!description.scheduler.is_empty()).then_some(description)
    }

    /// A thread's last transfer in words: `line 8`, or `lifecycle.sched:8` where it stands in another file than the scheduler's own.
    pub fn line(&self, line: u32) -> String {
        let file =
            self.sources.iter().filter(|(number, _)| *number <= line).max_by_key(|(number, _)| *number);
        match file {
            None => format!("line {line}"),
            Some((number, file)) => format!("{file}:{}", line - number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_with_its_file_where_that_is_another() {
        let text =
            "scheduler\tmine\tmine.sched\nsource\t1000\tlifecycle.sched\nsource\t2000\taspects.sched\n";
        let description = Description::read(text).expect("a description");
        assert_eq!(description.line(8), "line 8");
        assert_eq!(description.line(1034), "lifecycle.sched:34");
        assert_eq!(description.line(2001), "aspects.sched:1");
    }
}
