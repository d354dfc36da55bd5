//! Random schedulers, as source text, that are well typed and run for a while.
//!
//! A scheduler is a skeleton that keeps threads where they belong (the ready ones in containers of
//! [`Role::Ready`], the others in [`Role::Parked`] ones) with random declarations around it and
//! random statements in between, which move ready threads about, mostly under a condition that
//! makes the move possible. So most runs last for many events, and some end in a failed check.
//!
//! - [`scope`] what is declared and in sight; [`declare`] sections; [`skeleton`] handlers;
//! - [`statement`] and [`expression`] fill their bodies;
//! - all of it is made of [`fragment`]s, which can be simplified, from numbers of [`random`].

mod declare;
mod expression;
pub mod fragment;
pub mod random;
mod scope;
mod skeleton;
mod statement;

use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};

use fragment::Fragment;
use random::Random;
use scope::{Declared, File, Ty};

/// A scheduler in one or several files.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The scheduler, its base if it has one; in front of them the master of a node.
    pub files: Vec<(String, Fragment)>,
    /// Files of aspects.
    pub aspects: Vec<(String, Fragment)>,
}

impl Sources {
    /// The scheduler itself.
    pub fn main(&self) -> SourceText {
        self.files
            .first()
            .map_or_else(|| SourceText { name: String::new(), text: String::new() }, rendered)
    }

    /// What the scheduler extends: file names and texts.
    pub fn bases(&self) -> Vec<SourceText> {
        self.files.iter().skip(1).map(rendered).collect()
    }

    pub fn aspects(&self) -> Vec<SourceText> {
        self.aspects.iter().map(rendered).collect()
    }

    /// What the front end says of it.
    pub fn checked(&self) -> Checked {
        let bases = self.bases();
        let bases: Vec<(&str, &str)> =
            bases.iter().map(|base| (base.name.as_str(), base.text.as_str())).collect();
        let mut loader = &bases[..];
        check(&self.main(), &mut loader, &Options { aspects: self.aspects() })
    }

    /// How many pieces could be simpler.
    pub fn pieces(&self) -> usize {
        self.files.iter().chain(&self.aspects).map(|file| file.1.pieces()).sum()
    }

    /// Everything simpler that differs in the piece of that number. A file of aspects without any
    /// is left out.
    pub fn simpler(&self, mut number: usize) -> Vec<Sources> {
        for index in 0..self.files.len() + self.aspects.len() {
            let in_files = index < self.files.len();
            let file =
                if in_files { &self.files[index] } else { &self.aspects[index - self.files.len()] };
            let pieces = file.1.pieces();
            if number >= pieces {
                number -= pieces;
                continue;
            }
            let with = |fragment: Fragment| {
                let mut sources = self.clone();
                if in_files {
                    sources.files[index].1 = fragment;
                } else {
                    sources.aspects[index - self.files.len()].1 = fragment;
                }
                sources.aspects.retain(|file| !file.1.render().trim().is_empty());
                sources
            };
            return file.1.simpler(number).into_iter().map(with).collect();
        }
        Vec::new()
    }

    /// Every file with its name, as a person would read them.
    pub fn listing(&self) -> String {
        let all = self.files.iter().chain(&self.aspects);
        all.map(|file| format!("--- {}\n{}\n", file.0, rendered(file).text)).collect()
    }
}

/// `(*` would open verbatim text.
fn rendered((name, fragment): &(String, Fragment)) -> SourceText {
    SourceText { name: name.clone(), text: fragment.render().replace("(*", "( *") }
}

/// A random scheduler. `size` is about the number of statements in a handler, from 1.
pub fn scheduler(seed: u64, size: usize) -> Sources {
    generate(seed, size, Taste { floats: true, reckless: false, node: false })
}

/// A random scheduler that leaves guards out or asks the wrong question: many of its transfers
/// always fail.
pub fn reckless(seed: u64, size: usize) -> Sources {
    generate(seed, size, Taste { floats: true, reckless: true, node: false })
}

/// A random scheduler without floats, as the kernel engine wants it.
pub fn for_kernel(seed: u64, size: usize) -> Sources {
    generate(seed, size, Taste { floats: false, reckless: false, node: false })
}

/// A random cluster: a master that does nothing, and the scheduler of its nodes, whose imports are
/// the variables that all share.
pub fn node(seed: u64, size: usize, floats: bool) -> Sources {
    generate(seed, size, Taste { floats, reckless: false, node: true })
}

#[derive(Clone, Copy)]
struct Taste {
    floats: bool,
    /// A cluster supplies the imports.
    node: bool,
    /// Transfers go without the condition that makes them possible.
    reckless: bool,
}

fn generate(seed: u64, size: usize, taste: Taste) -> Sources {
    let mut generator = Generator {
        random: Random::new(seed),
        declared: Declared::default(),
        shared: Vec::new(),
        size: size.max(1),
        fuel: 0,
        names: 0,
        wild: false,
        taste,
    };
    generator.wild = generator.random.percent(15);
    let mut sources = generator.sources();
    if taste.node {
        sources.files.insert(0, master(generator.shared));
    }
    sources
}

/// The master of a cluster whose nodes share these variables.
fn master(shared: Vec<Fragment>) -> (String, Fragment) {
    let file = File {
        name: "cluster.sched".into(),
        header: "distributed scheduler cluster {\n    nodefamilies { \"generated.sched\" : node; \
                 }\n    nodes { queue all; }\n"
            .into(),
        members: shared,
        footer: "    arrival (n) { n => all; }\n}\n".into(),
    };
    (file.name.clone(), file.fragment())
}

pub(crate) struct Generator {
    random: Random,
    declared: Declared,
    /// What the master of a node declares.
    shared: Vec<Fragment>,
    size: usize,
    /// Statements left to the handler that is being written.
    fuel: usize,
    names: usize,
    /// Checks fail often: threads that may be missing are asked, indices may be outside.
    wild: bool,
    taste: Taste,
}

impl Generator {
    fn sources(&mut self) -> Sources {
        if self.random.percent(35) {
            return self.derived();
        }
        let mut file = File { name: "generated.sched".into(), ..File::default() };
        file.header = "scheduler generated {\n".into();
        file.footer = "}\n".into();
        let style = self.style();
        self.sections(&mut file);
        self.handlers(&mut file, style);
        if self.random.percent(50) {
            self.aspects(&mut file);
        }
        self.queries(&mut file);
        self.invariants(&mut file);
        let aspects = self.aspect_file();
        Sources { files: vec![(file.name.clone(), file.fragment())], aspects }
    }

    /// A base and a scheduler that extends it: new variables, aspects, some handlers replaced.
    fn derived(&mut self) -> Sources {
        let mut base = File { name: "base.sched".into(), ..File::default() };
        let partial = if self.random.percent(70) { "partial " } else { "" };
        base.header = format!("{partial}scheduler base {{\n");
        base.footer = "}\n".into();
        let style = self.style();
        self.sections(&mut base);
        self.handlers(&mut base, style);
        if self.random.percent(50) {
            self.aspects(&mut base);
        }
        self.queries(&mut base);
        let mut derived = File { name: "generated.sched".into(), ..File::default() };
        derived.header = "scheduler generated extends base {\n".into();
        derived.footer = "}\n".into();
        self.more_sections(&mut derived);
        self.replacements(&mut derived, style);
        self.aspects(&mut derived);
        self.invariants(&mut derived);
        let aspects = self.aspect_file();
        let files =
            vec![(derived.name.clone(), derived.fragment()), (base.name.clone(), base.fragment())];
        Sources { files, aspects }
    }

    fn aspect_file(&mut self) -> Vec<(String, Fragment)> {
        if self.taste.node || !self.random.percent(20) {
            return Vec::new();
        }
        let mut file = File { name: "added.aspects".into(), ..File::default() };
        self.more_sections(&mut file);
        self.aspects(&mut file);
        if file.members.is_empty() {
            return Vec::new();
        }
        vec![(file.name.clone(), file.fragment())]
    }

    /// One of these; an int for a float where there are no floats.
    fn a_type(&mut self, of: &[Ty]) -> Ty {
        match *self.random.pick(of) {
            Ty::Float if !self.taste.floats => Ty::Int,
            ty => ty,
        }
    }

    /// A name that is used nowhere else. Some are words of C.
    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }
}
