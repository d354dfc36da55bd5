//! The part of `attune.h` that is the policy's own: its imports and tunables as the firmware sees
//! them.

use attune_language::ir::{Attribute, AttributeId, Storage};

use super::Engine;
use crate::writer::Writer;
use crate::writer::declarations::one_line;
use crate::writer::expressions::constant;
use crate::writer::names::{own_import, plain_import, tuned};
use crate::writer::output::Output;
use crate::writer::statements::c_type;

pub fn text(writer: &mut Writer<'_>, engine: &Engine) -> String {
    let mut out = Output::default();
    out.raw(&engine.header[0]);
    out.blank();
    let name = one_line(&writer.program.name);
    out.line(format!("/* ---- The scheduler {name}: what it imports, and its tunables ---- */"));
    out.blank();
    writer.thread_imports();
    writer.global_imports();
    writer.tunables();
    out.append(writer.written());
    out.blank();
    if let Some(node) = &engine.node {
        out.raw(&node.room_in_header());
        out.blank();
    }
    out.raw(&engine.header[1]);
    out.finish("attune.h")
}

impl Writer<'_> {
    fn thread_imports(&mut self) {
        let imports: Vec<(AttributeId, &Attribute)> =
            self.program.attributes.iter().filter(|(_, attribute)| attribute.import).collect();
        self.out.line("/* What a thread tells the policy. */");
        self.out.open("struct attune_imports {");
        for (id, attribute) in &imports {
            let line = format!("{} {};", c_type(attribute.ty), self.names.attribute(*id));
            self.out.line(line);
        }
        if imports.is_empty() {
            self.out.line("char nothing; /* C has no structure without a member */");
        }
        self.out.close("};");
        let values: Vec<String> = imports
            .iter()
            .map(|(id, it)| format!(".{} = {}", self.names.attribute(*id), constant(it.initial)))
            .collect();
        let values = if values.is_empty() { "0".to_string() } else { values.join(", ") };
        self.out.line(format!("#define ATTUNE_HAS_IMPORTS {}", u8::from(!imports.is_empty())));
        self.out.line("/* The defaults. */");
        self.out.line(format!("#define ATTUNE_IMPORTS {{ {values} }}"));
        self.out.blank();
    }

    fn global_imports(&mut self) {
        for (id, global) in self.program.globals.iter() {
            if global.storage != Storage::Import || self.is_age(id) {
                continue;
            }
            let (ty, name) = (c_type(global.ty), &global.name);
            let (import, own) = (plain_import(name), own_import(name));
            let default = constant(global.initial);
            self.out.raw(&format!(
                "/* The import `{name}`: a variable of the firmware's own of any arithmetic type, \
                 where\n * attune_config.h names it (#define {import} VARIABLE, and its \
                 declaration);\n * else attune_import_{name}, which starts with {default}. */\n\
                 #ifndef {import}\n\
                 extern {ty} attune_import_{name};\n\
                 #define {own} attune_import_{name}\n\
                 #define {import} {own}\n\
                 #endif"
            ));
            self.out.blank();
        }
    }

    fn tunables(&mut self) {
        for (_, global) in self.program.globals.iter() {
            if global.storage == Storage::Tunable {
                let (name, macro_name) = (&global.name, tuned(&global.name));
                self.out.raw(&format!(
                    "/* The tunable `{name}`. */\n#ifndef {macro_name}\n#define {macro_name} \
                     {}\n#endif",
                    constant(global.initial)
                ));
                self.out.blank();
            }
        }
    }

    /// The variables of imports for which the firmware names none.
    pub(super) fn import_variables(&mut self) {
        for (id, global) in self.program.globals.iter() {
            if global.storage == Storage::Import && !self.is_age(id) {
                let own = own_import(&global.name);
                let (ty, default) = (c_type(global.ty), constant(global.initial));
                self.out.raw(&format!("#ifdef {own}\n{ty} {own} = {default};\n#endif"));
            }
        }
    }
}
