//! Where members lie in the structures of a compiled scheduler, by the type information in its object. Offsets are in bytes.

use libbpf_rs::btf::types::{Composite, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, HasSize};

use crate::description::Policy;
use crate::image::Image;

/// The types of an object.
pub(crate) struct Types<'a>(Btf<'a>);

impl<'a> Types<'a> {
    pub fn of(image: &'a Image) -> Option<Types<'a>> {
        Btf::from_raw("scheduler", &image.bytes).ok()?.map(Types)
    }

    /// Of `struct NAME`.
    pub fn size(&self, structure: &str) -> Option<u64> {
        Some(self.0.type_by_name::<Struct>(structure)?.size() as u64)
    }

    /// Of a member of `struct NAME`, or of a structure without a name in it.
    pub fn offset(&self, structure: &str, member: &str) -> Option<u64> {
        self.find(self.0.type_by_name::<Composite>(structure)?, member)
    }

    fn find(&self, among: Composite, wanted: &str) -> Option<u64> {
        among.iter().find_map(|member| {
            let MemberAttr::Normal { offset } = member.attr else { return None };
            let inside = match member.name.filter(|name| !name.is_empty()) {
                Some(name) => (name == wanted).then_some(0),
                None => self.find(self.0.type_by_id(member.ty)?, wanted),
            };
            Some(u64::from(offset) / 8 + inside?)
        })
    }

    /// From a record's start to each attribute's value, in the order of the description.
    pub fn attributes(&self, policy: &Policy) -> Option<Vec<u64>> {
        // An import's link stands in front of its value.
        let value = |import: bool| if import { 8 } else { 0 };
        let attributes = policy.attributes.iter();
        attributes.map(|it| Some(self.offset("thread", &it.member)? + value(it.import))).collect()
    }
}

/// Offsets in a record.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub size: u64,
    pub container: u64,
    pub key: u64,
    pub line: u64,
    pub thread: u64,
    pub process: u64,
    pub cpu: u64,
    pub state: u64,
    pub domain: u64,
    pub dispatches: u64,
    /// Of each policy, in the order of its description.
    pub attributes: Vec<Vec<u64>>,
}

/// Offsets in a CPU's entry.
#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    pub size: u64,
    pub running: u64,
    pub deadline: u64,
}

impl Record {
    pub fn of(types: &Types, image: &Image) -> Option<Record> {
        let head = |member| types.offset("attune_thread", member);
        let task = types.offset("thread", "attune_task")?;
        let own = |member| Some(task + types.offset("attune_task", member)?);
        Some(Record {
            size: types.size("thread")?,
            container: head("where")?,
            key: head("key")?,
            line: head("line")?,
            thread: own("pid")?,
            process: own("tgid")?,
            cpu: own("cpu")?,
            state: own("state")?,
            domain: own("domain")?,
            dispatches: own("dispatches")?,
            attributes: image
                .description
                .policies
                .iter()
                .map(|policy| types.attributes(policy))
                .collect::<Option<_>>()?,
        })
    }
}

impl Cpu {
    pub fn of(types: &Types) -> Option<Cpu> {
        let offset = |member| types.offset("attune_cpu", member);
        Some(Cpu {
            size: types.size("attune_cpu")?,
            running: offset("running")?,
            deadline: offset("deadline")?,
        })
    }
}
