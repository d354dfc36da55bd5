//! A schema, with the family of a node, as a text that a compiled scheduler carries: hexadecimal
//! digits. The numbers in it are those of the program from which the scheduler was compiled.

use attune_language::ir::{ContainerId, GlobalId, NodeProperty, Type};
use attune_replica::Schema;
use attune_replica::schema::{Export, FamilySchema, Model, SharedVariable, Source};
use la_arena::RawIdx;

use super::reader::Reader;
use super::writer::Writer;

/// For a node of that family.
pub fn describe(schema: &Schema, family: usize) -> String {
    let mut to = Writer::default();
    to.u32(super::VERSION);
    to.u32(family as u32);
    to.text(&schema.name);
    to.text(&schema.identity);
    to.list(&schema.families, write_family);
    to.list(&schema.shared, |to, shared| {
        to.text(&shared.name);
        to.u8(shared.ty as u8);
        to.value(shared.initial);
        to.flag(shared.model == Model::Request);
    });
    to.list(&schema.properties, |to, property| {
        let (kind, name) = match property {
            NodeProperty::Family => (0, ""),
            NodeProperty::Variable(name) => (1, name.as_str()),
            NodeProperty::Size(name) => (2, name.as_str()),
            NodeProperty::Suspended(name) => (3, name.as_str()),
            NodeProperty::Age(name) => (4, name.as_str()),
        };
        to.u8(kind);
        to.text(name);
    });
    to.list(&schema.seats, |to, (name, container)| {
        to.text(name);
        to.u32(container.into_raw().into_u32());
    });
    to.bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The schema and the number of the node's family; None: the text is of another version.
pub fn description_of(text: &str) -> Option<(Schema, usize)> {
    let digits = text.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    let bytes = bytes?;
    let mut from = Reader { bytes: &bytes };
    if from.u32()? != super::VERSION {
        return None;
    }
    let family = from.u32()? as usize;
    let schema = Schema {
        name: from.text()?,
        identity: from.text()?,
        families: from.list(read_family)?,
        shared: from.list(|from| {
            Some(SharedVariable {
                name: from.text()?,
                ty: match from.u8()? {
                    0 => Type::Int,
                    1 => Type::Float,
                    _ => Type::Time,
                },
                initial: from.value()?,
                model: if from.flag()? { Model::Request } else { Model::Cache },
            })
        })?,
        properties: from.list(|from| {
            let (kind, name) = (from.u8()?, from.text()?);
            Some(match kind {
                0 => NodeProperty::Family,
                1 => NodeProperty::Variable(name),
                2 => NodeProperty::Size(name),
                3 => NodeProperty::Suspended(name),
                4 => NodeProperty::Age(name),
                _ => return None,
            })
        })?,
        seats: from.list(|from| {
            Some((from.text()?, ContainerId::from_raw(RawIdx::from_u32(from.u32()?))))
        })?,
    };
    (family < schema.families.len()).then_some((schema, family))
}

fn write_family(to: &mut Writer, family: &FamilySchema) {
    to.text(&family.name);
    to.u32(family.expects);
    to.list(&family.imports, |to, (global, source)| {
        to.u32(global.into_raw().into_u32());
        let (kind, first, second) = match *source {
            Source::Shared(shared) => (0, shared, 0),
            Source::Family(seat) => (1, seat, 0),
            Source::Of(seat, property) => (2, seat, property),
            Source::Age => (3, 0, 0),
        };
        to.u8(kind);
        to.u16(first);
        to.u16(second);
    });
    to.list(&family.exports, |to, (property, export)| {
        to.u16(*property);
        let (kind, id) = match export {
            Export::Global(global) => (0, global.into_raw().into_u32()),
            Export::Size(container) => (1, container.into_raw().into_u32()),
        };
        to.u8(kind);
        to.u32(id);
    });
    to.list(&family.commands, |to, (property, container)| {
        to.u16(*property);
        to.u32(container.into_raw().into_u32());
    });
}

fn read_family(from: &mut Reader<'_>) -> Option<FamilySchema> {
    Some(FamilySchema {
        name: from.text()?,
        expects: from.u32()?,
        imports: from.list(|from| {
            let global = GlobalId::from_raw(RawIdx::from_u32(from.u32()?));
            let (kind, first, second) = (from.u8()?, from.u16()?, from.u16()?);
            let source = match kind {
                0 => Source::Shared(first),
                1 => Source::Family(first),
                2 => Source::Of(first, second),
                3 => Source::Age,
                _ => return None,
            };
            Some((global, source))
        })?,
        exports: from.list(|from| {
            let property = from.u16()?;
            let (kind, id) = (from.u8()?, RawIdx::from_u32(from.u32()?));
            let export = match kind {
                0 => Export::Global(GlobalId::from_raw(id)),
                1 => Export::Size(ContainerId::from_raw(id)),
                _ => return None,
            };
            Some((property, export))
        })?,
        commands: from.list(|from| {
            Some((from.u16()?, ContainerId::from_raw(RawIdx::from_u32(from.u32()?))))
        })?,
    })
}
