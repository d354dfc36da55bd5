//! What a loader must know to speak in the policy's words: lines of JSON in a section of the
//! program, each a [`Line`]. The kernel engine reads them back by the same type.

use attune_language::ir;
use attune_language::source::SourceId;
use serde::{Deserialize, Serialize};

use super::supply::{Supplies, processes_may, tables_may};
use super::{Engine, LINE_BITS};
use crate::policy::Node;
use crate::writer::Writer;
use crate::writer::output::{Output, quoted};

/// One line. What follows a [`Line::Scheduler`] belongs to it, until the next one: two policies may
/// share a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    Scheduler {
        name: String,
        file: String,
    },
    Source(Source),
    Check(Check),
    Global(Global),
    Attribute(Attribute),
    /// A thread import that processes may supply, in the order of ATTUNE_EACH_SUPPLIED; a name that
    /// was there before has that number.
    ThreadImport {
        name: String,
        default: i64,
        /// Only processes of root and of the user that loads the policy.
        by_loader: bool,
    },
    /// The same for ATTUNE_EACH_TABLED: a table by process may supply it.
    TableImport {
        name: String,
    },
    Container(Container),
    /// The scheduler is that of a cluster's node; the members are those of [`Node`].
    Node {
        cluster: String,
        description: String,
    },
}

/// A file of the policy other than its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A thread's record notes a line of this file as this number plus the line.
    pub above: u32,
    pub file: String,
}

/// A run-time check that was not proved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub number: u32,
    pub file: String,
    /// From 1.
    pub line: u32,
    pub column: u32,
    /// A sentence without a full stop.
    pub what: String,
}

/// A variable of the policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Global {
    pub name: String,
    /// The variable's name in C, perhaps with a member: `urgent_import.value`.
    pub c_name: String,
    pub storage: Storage,
    /// In ns; else a plain number. There are no floats in the kernel.
    pub is_time: bool,
}

impl Global {
    /// Whether it may be changed from outside.
    pub fn is_settable(&self) -> bool {
        matches!(self.storage, Storage::Tunable | Storage::Import)
    }

    /// Bytes from the variable's start to its value: an import's link stands in front.
    pub fn offset(&self) -> u64 {
        if matches!(self.storage, Storage::Import | Storage::Shared) { 8 } else { 0 }
    }
}

/// A variable that every thread has.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    pub name: String,
    /// The name of the member of `struct thread`; an import's is a `struct attune_import`.
    pub member: String,
    pub import: bool,
    pub is_time: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    Data,
    Const,
    Tunable,
    Import,
    /// An import that a cluster supplies.
    Shared,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Container {
    pub name: String,
    pub c_name: String,
}

pub fn write(writers: &[Writer<'_>], engine: &Engine, out: &mut Output) {
    out.line("const char attune_description[] ATTUNE_SECTION(\".rodata.attune\") =");
    let node = engine.node.iter().map(|Node { cluster, description }| Line::Node {
        cluster: cluster.clone(),
        description: description.clone(),
    });
    let lines = writers.iter().flat_map(|writer| writer.description(engine.supplies));
    for line in lines.chain(node) {
        let line = serde_json::to_string(&line).expect("names and numbers are JSON");
        out.line(format!("    {}", quoted(&format!("{line}\n"))));
    }
    out.line(";");
}

impl Writer<'_> {
    fn description(&self, supplies: &Supplies) -> Vec<Line> {
        let file = self.sources.name(SourceId(0)).to_owned();
        let mut lines = vec![Line::Scheduler { name: self.program.name.clone(), file }];
        for source in self.sources.ids().filter(|source| *source != SourceId(0)) {
            let file = self.sources.name(source).to_owned();
            lines.push(Line::Source(Source { above: source.0 << LINE_BITS, file }));
        }
        lines.extend(self.performed_checks().map(|(number, span, what)| {
            let at = self.sources.location(span);
            Line::Check(Check {
                number,
                file: self.sources.name(span.source).to_owned(),
                line: at.line,
                column: at.column,
                what: what.to_owned(),
            })
        }));
        lines.extend(self.program.globals.iter().map(|(id, global)| {
            let (storage, c_name) = match (global.storage, self.names.import(id)) {
                (ir::Storage::Import, Some((state, _))) => {
                    let shared = self.is_shared(id);
                    let storage = if shared { Storage::Shared } else { Storage::Import };
                    (storage, format!("{state}.value"))
                }
                (ir::Storage::Tunable, _) => (Storage::Tunable, self.names.global(id).to_owned()),
                (ir::Storage::Const, _) => (Storage::Const, self.names.global(id).to_owned()),
                _ => (Storage::Data, self.names.global(id).to_owned()),
            };
            let is_time = global.ty == ir::Type::Time;
            Line::Global(Global { name: global.name.clone(), c_name, storage, is_time })
        }));
        lines.extend(self.program.attributes.iter().map(|(id, attribute)| {
            let (member, import) = match self.names.thread_import(id) {
                Some((state, _)) => (state, true),
                None => (self.names.attribute(id), false),
            };
            Line::Attribute(Attribute {
                name: attribute.name.clone(),
                member: member.to_owned(),
                import,
                is_time: attribute.ty == ir::Type::Time,
            })
        }));
        for import in self.program.attributes.values() {
            if let (true, ir::Value::Int(default)) =
                (processes_may(supplies, import), import.initial)
            {
                let by_loader = import.terms.supplier == ir::Supplier::Loader;
                lines.push(Line::ThreadImport { name: import.name.clone(), default, by_loader });
            }
        }
        let tabled = self.program.attributes.values().filter(|it| tables_may(supplies, it));
        lines.extend(tabled.map(|import| Line::TableImport { name: import.name.clone() }));
        lines.extend(self.program.containers.iter().map(|(id, container)| {
            let c_name = self.names.container(id).to_owned();
            Line::Container(Container { name: container.name.clone(), c_name })
        }));
        lines
    }
}
