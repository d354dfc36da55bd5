//! What a loader must know to speak in the scheduler's words: lines of words between tabs, in a
//! section of the program.

use attune_language::ir::{Storage, Type, Value};
use attune_language::source::SourceId;

use super::LINE_BITS;
use super::supply::{Supplies, processes_may, tables_may};
use crate::writer::Writer;
use crate::writer::output::{Output, quoted};

pub fn write(writers: &[Writer<'_>], supplies: &Supplies, out: &mut Output) {
    out.line("const char attune_description[] ATTUNE_SECTION(\".rodata.attune\") =");
    for line in writers.iter().flat_map(|writer| writer.description(supplies)) {
        out.line(format!("    {}", quoted(&format!("{line}\n"))));
    }
    out.line(";");
}

impl Writer<'_> {
    fn description(&self, supplies: &Supplies) -> Vec<String> {
        let mut lines =
            vec![format!("scheduler\t{}\t{}", self.program.name, self.sources.name(SourceId(0)))];
        for source in self.sources.ids().filter(|source| *source != SourceId(0)) {
            lines.push(format!("source\t{}\t{}", source.0 << LINE_BITS, self.sources.name(source)));
        }
        for (number, span, what) in self.performed_checks() {
            let at = self.sources.location(span);
            let file = self.sources.name(span.source);
            lines.push(format!("check\t{number}\t{}\t{}\t{file}\t{what}", at.line, at.column));
        }
        for (id, global) in self.program.globals.iter() {
            let (storage, name) = match (global.storage, self.names.import(id)) {
                (Storage::Import, Some((state, _))) => ("import", format!("{state}.value")),
                (Storage::Tunable, _) => ("tunable", self.names.global(id).to_string()),
                (Storage::Const, _) => ("const", self.names.global(id).to_string()),
                _ => ("data", self.names.global(id).to_string()),
            };
            let ty = type_name(global.ty);
            lines.push(format!("global\t{}\t{name}\t{storage}\t{ty}", global.name));
        }
        for (id, attribute) in self.program.attributes.iter() {
            let (member, storage) = match self.names.thread_import(id) {
                Some((state, _)) => (state, "import"),
                None => (self.names.attribute(id), "data"),
            };
            let ty = type_name(attribute.ty);
            lines.push(format!("attribute\t{}\t{member}\t{storage}\t{ty}", attribute.name));
        }
        for import in self.program.attributes.values() {
            if let (true, Value::Int(default)) = (processes_may(supplies, import), import.initial) {
                lines.push(format!("threadimport\t{}\t{default}", import.name));
            }
        }
        let tabled = self.program.attributes.values().filter(|it| tables_may(supplies, it));
        lines.extend(tabled.map(|import| format!("tableimport\t{}", import.name)));
        for (id, container) in self.program.containers.iter() {
            lines.push(format!("container\t{}\t{}", container.name, self.names.container(id)));
        }
        lines
    }
}

/// There are no floats in the kernel.
fn type_name(ty: Type) -> &'static str {
    if ty == Type::Time { "time" } else { "int" }
}
