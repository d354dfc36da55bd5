//! Random sections: attributes, imports, data.

use super::Generator;
use super::scope::{Attribute, File, Holder, Kind, Role, Scope, Shape, Ty, Variable};
use crate::fragment::{Fragment, frag, member, number};

/// Names that C or the generated code could mistake for its own.
const AWKWARD: [&str; 12] = [
    "register",
    "volatile",
    "double",
    "stdin",
    "NULL",
    "main",
    "errno",
    "int64_t",
    "auto",
    "struct",
    "thread_init",
    "attune_thread",
];

impl Generator {
    /// All sections of a scheduler, with the containers that its skeleton needs.
    pub fn sections(&mut self, file: &mut File) {
        for builtin in ["now", "cpus", "random"] {
            if self.random.percent(4) {
                self.declared.hidden.push(builtin.into());
            }
        }
        file.members
            .push("thread {\n    int blocked = 0;\n    int suspended = 0, dead = 0;\n}\n".into());
        let count = 1 + self.random.below(4);
        self.attributes(file, count);
        let imports = self.random.below(3);
        self.thread_imports(file, imports);
        let imports = self.random.below(3);
        if self.taste.node {
            self.shared(1 + imports);
        } else {
            self.imports(file, imports);
        }
        self.skeleton_containers(file);
        let globals = 2 + self.random.below(5);
        self.globals(file, globals, true);
        let containers = self.random.below(4);
        self.containers(file, containers);
    }

    /// What a derived scheduler or a file of aspects adds.
    pub fn more_sections(&mut self, file: &mut File) {
        let attributes = self.random.below(2);
        self.attributes(file, attributes);
        let imports = self.random.below(2);
        self.thread_imports(file, imports);
        let globals = self.random.below(3);
        self.globals(file, globals, false);
        let containers = self.random.below(2);
        self.containers(file, containers);
    }

    fn attributes(&mut self, file: &mut File, count: usize) {
        for _ in 0..count {
            let ty = self.a_type(&Ty::ALL);
            let name = self.fresh("a");
            let initial = self.initial(ty, 25);
            file.members.push(member(frag![
                "thread {\n    ",
                ty.word(),
                " ",
                name.as_str(),
                initial,
                ";\n}\n"
            ]));
            self.declared.attributes.push(Attribute { name, ty });
        }
    }

    fn thread_imports(&mut self, file: &mut File, count: usize) {
        for _ in 0..count {
            let (name, ty) = self.import(file, "threadimports", "ti");
            self.declared.attributes.push(Attribute { name, ty });
        }
    }

    fn imports(&mut self, file: &mut File, count: usize) {
        for _ in 0..count {
            let (name, ty) = self.import(file, "imports", "im");
            self.global(name, ty, Shape::One, true);
        }
    }

    /// Variables that the master declares.
    fn shared(&mut self, count: usize) {
        for _ in 0..count {
            let (ty, name) = (self.a_type(&Ty::ALL), self.fresh("sh"));
            let initial = self.constant(ty);
            let declared =
                frag!["global { ", ty.word(), " ", name.as_str(), " = ", initial, "; }\n"];
            self.shared.push(member(declared));
            self.global(name, ty, Shape::One, true);
        }
    }

    /// An import in a section of its own, with a range or without.
    fn import(&mut self, file: &mut File, section: &str, prefix: &str) -> (String, Ty) {
        let ty = self.a_type(&Ty::ALL);
        let name = self.fresh(prefix);
        let (default, range) = match ty != Ty::Float && self.random.percent(40) {
            true => {
                let unit = if ty == Ty::Time { "ns" } else { "" };
                let (low, high) = (7 - self.random.below(12) as i64, 7 + self.random.below(12));
                (format!("7{unit}").into(), format!(" within {low}{unit} to {high}{unit}"))
            }
            false => (self.constant(ty), String::new()),
        };
        file.members.push(member(frag![
            section,
            " {\n    ",
            ty.word(),
            " ",
            name.as_str(),
            " default ",
            default,
            range.as_str(),
            ";\n}\n"
        ]));
        (name, ty)
    }

    /// `awkward`: also under names that mean something else elsewhere. Not where handlers have been
    /// written already.
    fn globals(&mut self, file: &mut File, count: usize, awkward: bool) {
        if awkward {
            for name in self.declared.hidden.clone() {
                file.members.push(format!("data {{\n    int {name} = 3;\n}}\n").into());
                self.global(name, Ty::Int, Shape::One, true);
            }
        }
        for _ in 0..count {
            let ty = self.a_type(&Ty::ALL);
            let unusual = *self.random.pick(&AWKWARD);
            let taken = |name: &str| self.declared.globals.iter().any(|global| global.name == name);
            let name = match awkward && self.random.percent(12) && !taken(unusual) {
                true => unusual.to_string(),
                false => self.fresh("g"),
            };
            let (word, shape) = match self.random.weighted(&[50, 15, 15, 20, 20]) {
                1 => ("const ", Shape::One),
                2 => ("tunable ", Shape::One),
                3 => ("percpu ", Shape::PerCpu),
                4 => ("", Shape::Array(1 + self.random.below(5))),
                _ => ("", Shape::One),
            };
            let rest = match (shape, word) {
                (Shape::Array(length), _) => frag![format!("[{length}]")],
                (_, "tunable " | "const ") => frag![" = ", self.constant(ty)],
                _ => self.initial(ty, 30),
            };
            file.members.push(member(frag![
                "data {\n    ",
                word,
                ty.word(),
                " ",
                name.as_str(),
                rest,
                ";\n}\n"
            ]));
            self.global(name, ty, shape, !matches!(word, "const " | "tunable "));
        }
    }

    fn global(&mut self, name: String, ty: Ty, shape: Shape, assignable: bool) {
        self.declared.globals.push(Variable {
            name,
            ty,
            shape,
            assignable,
            local: false,
            below: None,
        });
    }

    /// ` = value`, computed in so many of a hundred cases; or nothing.
    fn initial(&mut self, ty: Ty, computed: usize) -> Fragment {
        if self.random.percent(20) {
            return "".into();
        }
        if !self.random.percent(computed) {
            return frag![" = ", self.constant(ty)];
        }
        let hidden = |name: &str| self.declared.hidden.iter().any(|hidden| hidden == name);
        let scope = Scope { pure: true, ..Scope::default() };
        let value = match (ty, self.random.below(3)) {
            (Ty::Int, 0) if !hidden("random") => "random(7) + 1".into(),
            (Ty::Int, 1) if !hidden("cpus") => "cpus * 3".into(),
            (Ty::Time, 0) if !hidden("now") => "now + 3ms".into(),
            (Ty::Float, 0) => "1 / 3.0".into(),
            _ if self.declared.globals.is_empty() => self.constant(ty),
            _ => {
                let of_type =
                    |variable: &&Variable| variable.ty == ty && variable.shape == Shape::One;
                let known: Vec<_> = self.declared.globals.iter().filter(of_type).cloned().collect();
                match self.random.pick_some(&known).cloned() {
                    Some(variable) => {
                        frag![self.place(&scope, &variable), " + ", self.constant(ty)]
                    }
                    None => self.constant(ty),
                }
            }
        };
        frag![" = ", value]
    }

    fn constant(&mut self, ty: Ty) -> Fragment {
        let values: &[&str] = match ty {
            Ty::Int => &["0", "1", "-1", "5", "100", "-9000", "2 + 3", "true"],
            Ty::Float => &["0.0", "0.5", "-2.5", "1e6", "1.5 * 2"],
            Ty::Time => &["0ns", "1ms", "20ms", "5us", "2s", "3 * 1ms"],
        };
        let value = *self.random.pick(values);
        number(if ty == Ty::Time { &["0ns"] } else { &["0"] }, value.into())
    }

    fn skeleton_containers(&mut self, file: &mut File) {
        let parked =
            *self.random.pick(&["queue WQ;", "stack WQ;", "pqueue WQ sortable on blocked;"]);
        file.members.push(
            format!(
                "data {{\n    threadref current;\n    queue RQ;\n    {parked}\n    queue SQ;\n}}\n"
            )
            .into(),
        );
        let holder =
            |name: &str, kind, shape, role| Holder { name: name.into(), kind, shape, role };
        let parked_kind = match parked.split(' ').next() {
            Some("queue") => Kind::Queue,
            Some("stack") => Kind::Stack,
            _ => Kind::PQueue,
        };
        self.declared.holders.extend([
            holder("current", Kind::Threadref, Shape::PerCpu, Role::Current),
            holder("RQ", Kind::Queue, Shape::One, Role::Ready),
            holder("WQ", parked_kind, Shape::One, Role::Parked),
            holder("SQ", Kind::Queue, Shape::One, Role::Parked),
        ]);
    }

    fn containers(&mut self, file: &mut File, count: usize) {
        for _ in 0..count {
            let kind = *self.random.pick(&[
                Kind::Threadref,
                Kind::Queue,
                Kind::Stack,
                Kind::PQueue,
                Kind::PQueue,
                Kind::PStack,
            ]);
            let shape = match self.random.weighted(&[60, 25, 15]) {
                1 => Shape::Array(1 + self.random.below(4)),
                2 => Shape::PerCpu,
                _ => Shape::One,
            };
            let role = if self.random.percent(85) { Role::Ready } else { Role::Parked };
            let name = self.fresh("C");
            let word = if shape == Shape::PerCpu { "percpu " } else { "" };
            let length = match shape {
                Shape::Array(length) => format!("[{length}]"),
                _ => String::new(),
            };
            let sort = match self.random.pick_some(&self.declared.attributes) {
                _ if !kind.is_sorted() => String::new(),
                Some(attribute) => {
                    let by = attribute.name.clone();
                    let order =
                        *self.random.pick(&["", "", "reverse ", "increasing ", "decreasing "]);
                    format!(" {order}sortable on {by}")
                }
                None => " sortable on blocked".into(),
            };
            file.members.push(member(
                format!("data {{\n    {word}{} {name}{length}{sort};\n}}\n", kind.word()).into(),
            ));
            self.declared.holders.push(Holder { name, kind, shape, role });
        }
    }
}
