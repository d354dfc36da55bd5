//! Reads an object made by [`crate::compile`], as far as a loader must look into it: where its
//! variables lie, and what the scheduler's text calls things.

use std::collections::HashMap;

use object::{Object, ObjectSection, ObjectSymbol};

use crate::description::Description;
use crate::layout::Layout;

/// A compiled scheduler, not loaded yet.
#[derive(Clone, Debug)]
pub struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) description: Description,
    layout: Layout,
    variables: HashMap<String, Variable>,
    /// Bytes of all programs and functions.
    code: u64,
    /// Bytes of all variables in the arena.
    arena: u64,
}

/// Where a variable of the program lies.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// `.bss`, `.rodata`, `.addr_space.1` (the arena), `.struct_ops.link`.
    pub section: String,
    /// Bytes from the section's start.
    pub offset: usize,
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this is no object file that can be read: {0}")]
    Unreadable(#[from] object::Error),
    #[error("this object was not made by `attune build --engine kernel`: it lacks {0}")]
    Foreign(&'static str),
}

impl Image {
    pub fn read(bytes: Vec<u8>) -> Result<Image, Error> {
        let file = object::File::parse(bytes.as_slice())?;
        let section = file.section_by_name(DESCRIPTION).ok_or(Error::Foreign(DESCRIPTION))?;
        let text = String::from_utf8_lossy(section.data()?).into_owned();
        let description =
            Description::read(&text).ok_or(Error::Foreign("a readable description"))?;
        let layout = Layout::of(&bytes, &description.policies)
            .ok_or(Error::Foreign("the types of this version's engine"))?;
        let mut variables = HashMap::new();
        for symbol in file.symbols() {
            if let (Ok(name), Some(section)) = (symbol.name(), symbol.section_index()) {
                let section = file.section_by_index(section)?.name()?.to_string();
                let offset = symbol.address() as usize;
                let bytes = symbol.size();
                variables.insert(name.to_string(), Variable { section, offset, bytes });
            }
        }
        let code = file.sections().filter(|section| section.kind() == object::SectionKind::Text);
        let code = code.map(|section| section.size()).sum();
        let arena = file.section_by_name(ARENA).map_or(0, |section| section.size());
        Ok(Image { bytes, description, layout, variables, code, arena })
    }

    /// The scheduler's name; of two, both.
    pub fn scheduler(&self) -> String {
        let names: Vec<&str> = self.policies().collect();
        names.join(" and ")
    }

    /// The names of its schedulers: one, or the commands' and the others'.
    pub fn policies(&self) -> impl Iterator<Item = &str> {
        self.description.policies.iter().map(|policy| policy.name.as_str())
    }

    /// BPF instructions, as the verifier counts the length of a program: functions once each.
    pub fn instructions(&self) -> u64 {
        self.code / 8
    }

    /// Instances of the policy that it was compiled for.
    pub fn instances(&self) -> u32 {
        let bytes = self.variable("attune_instances").map_or(0, |variable| variable.bytes);
        (bytes / self.layout.state_bytes.max(1)).max(1) as u32
    }

    /// The first so many bytes of a section as the kernel loads it; those behind its end are zero.
    pub(crate) fn initial(&self, section: &str, bytes: usize) -> Option<Vec<u8>> {
        let file = object::File::parse(self.bytes.as_slice()).ok()?;
        let mut data = match file.section_by_name(section) {
            Some(section) => section.data().ok()?.to_vec(),
            None => Vec::new(),
        };
        data.resize(bytes, 0);
        Some(data)
    }

    /// Where members of its structures lie.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn arena_bytes(&self) -> u64 {
        self.arena
    }

    /// A variable of the program by its C name; None if the compiler found that nothing uses it.
    pub(crate) fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.get(name)
    }
}

const DESCRIPTION: &str = ".rodata.attune";
/// The section of variables in the arena.
pub(crate) const ARENA: &str = ".addr_space.1";
