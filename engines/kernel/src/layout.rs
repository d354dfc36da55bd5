//! Finds where members lie in the structures of a compiled scheduler. The type information (BTF) in
//! its object is the only source: no number here repeats what the C says. Offsets are in bytes.

use std::collections::HashMap;

use libbpf_rs::btf::types::{Composite, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, HasSize};

use crate::description::Policy;

/// All that the loader reads and writes of a scheduler's memory.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub container: Container,
    pub record: Record,
    pub failure: Failure,
    /// Where the policies' variables and containers lie in `struct state`, by their names in C.
    pub state: HashMap<String, u64>,
    pub state_bytes: u64,
    /// Counters at the head of `struct state`.
    pub divisions_by_zero: u64,
    pub clamped: u64,
    /// None in a program for [`crate::Replay`], which has no CPUs and counts nothing.
    pub engine: Option<Engine>,
}

/// `struct attune_container`.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub bytes: u64,
    pub first: u64,
    pub size: u64,
    pub kind: u64,
    pub sorted_on: u64,
    pub element: u64,
}

/// `struct thread`: the runtime's head, `struct attune_task`, and the policies' attributes.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub bytes: u64,
    pub id: u64,
    pub container: u64,
    pub left: u64,
    pub next: u64,
    pub parent: u64,
    pub key: u64,
    pub line: u64,
    pub last_container: u64,
    pub thread: u64,
    pub process: u64,
    pub cpu: u64,
    pub state: u64,
    pub domain: u64,
    pub dispatches: u64,
    /// Where the attributes' values lie, by policy, in the order of its description.
    pub attributes: Vec<Vec<u64>>,
}

/// `struct attune_failure`, and `struct attune_contents` in it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub failed: u64,
    pub check: u64,
    pub about: u64,
    pub policy: u64,
    pub thread: u64,
    pub index: u64,
    pub length: u64,
    /// The first of two.
    pub contents: u64,
    pub contents_bytes: u64,
    /// This member and the next ones lie inside the contents.
    pub container: u64,
    pub size: u64,
    pub listed: u64,
    pub threads: u64,
}

/// What the engine keeps beside threads: `struct attune_cpu`, `attune_domain`,
/// `attune_statistics`, and `attune_chunk`, the head of a chunk of records.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    pub cpu_bytes: u64,
    pub running: u64,
    pub deadline: u64,
    pub domain_bytes: u64,
    pub ready: u64,
    pub ran: u64,
    pub dispatches: u64,
    pub calls: u64,
    pub kept: u64,
    pub kicks: u64,
    pub timers: u64,
    pub fall_backs: u64,
    pub records: u64,
    pub moves: u64,
    pub pulls: u64,
    pub balanced: u64,
    pub locks: u64,
    pub held: u64,
    pub idles: u64,
    pub neglects: u64,
    pub rescues: u64,
    /// Bytes to each member of `struct sched_ext_ops`.
    pub calls_at: HashMap<String, usize>,
    pub rescue: Rescue,
    pub chunk_before: u64,
    pub chunk_records: u64,
    pub chunk_first: u64,
}

/// `struct attune_rescue`.
#[derive(Clone, Debug)]
pub(crate) struct Rescue {
    pub bytes: u64,
    pub number: u64,
    pub thread: u64,
    pub container: u64,
    pub waited: u64,
    pub line: u64,
    pub policy: u64,
}

impl Layout {
    /// Reads an object's types; None if it has none, or not those of this engine.
    pub fn of(object: &[u8], policies: &[Policy]) -> Option<Layout> {
        let types = Types(Btf::from_raw("scheduler", object).ok()??);
        Some(Layout {
            container: types.container()?,
            record: types.record(policies)?,
            failure: types.failure()?,
            state: types.state(policies)?,
            state_bytes: types.bytes("state")?,
            divisions_by_zero: types.offset("attune_instance", "divisions_by_zero")?,
            clamped: types.offset("attune_instance", "clamped")?,
            engine: types.engine(),
        })
    }
}

/// The types of an object.
struct Types<'a>(Btf<'a>);

impl Types<'_> {
    /// The size of `struct NAME`.
    fn bytes(&self, structure: &str) -> Option<u64> {
        Some(self.0.type_by_name::<Struct>(structure)?.size() as u64)
    }

    /// Where a member of `struct NAME`, or of a structure without a name in it, lies.
    fn offset(&self, structure: &str, member: &str) -> Option<u64> {
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

    fn container(&self) -> Option<Container> {
        let of = |member| self.offset("attune_container", member);
        Some(Container {
            bytes: self.bytes("attune_container")?,
            first: of("first")?,
            size: of("size")?,
            kind: of("kind")?,
            sorted_on: of("sorted_on")?,
            element: of("element")?,
        })
    }

    fn record(&self, policies: &[Policy]) -> Option<Record> {
        let head = |member| self.offset("attune_thread", member);
        let task = self.offset("thread", "attune_task")?;
        let own = |member| Some(task + self.offset("attune_task", member)?);
        Some(Record {
            bytes: self.bytes("thread")?,
            id: head("id")?,
            container: head("where")?,
            left: head("prev")?,
            next: head("next")?,
            parent: head("parent")?,
            key: head("key")?,
            line: head("line")?,
            last_container: own("was")?,
            thread: own("pid")?,
            process: own("tgid")?,
            cpu: own("cpu")?,
            state: own("state")?,
            domain: own("domain")?,
            dispatches: own("dispatches")?,
            attributes: policies
                .iter()
                .map(|policy| self.attributes(policy))
                .collect::<Option<_>>()?,
        })
    }

    fn attributes(&self, policy: &Policy) -> Option<Vec<u64>> {
        let value = self.offset("attune_import", "value");
        let attribute = |import, member: &str| {
            let start = self.offset("thread", member)?;
            Some(if import { start + value? } else { start })
        };
        policy.attributes.iter().map(|it| attribute(it.import, &it.member)).collect()
    }

    fn state(&self, policies: &[Policy]) -> Option<HashMap<String, u64>> {
        let globals = policies.iter().flat_map(|policy| &policy.globals).map(|it| &it.c_name);
        let containers = policies.iter().flat_map(|policy| &policy.containers);
        let members = globals.chain(containers.map(|it| &it.c_name));
        // An import's value is a member of the import.
        let members = members.map(|name| name.split('.').next().unwrap_or(name));
        members.map(|name| Some((name.to_string(), self.offset("state", name)?))).collect()
    }

    fn failure(&self) -> Option<Failure> {
        let of = |member| self.offset("attune_failure", member);
        let contents = |member| self.offset("attune_contents", member);
        Some(Failure {
            failed: of("failed")?,
            check: of("check")?,
            about: of("about")?,
            policy: of("policy")?,
            thread: of("thread")?,
            index: of("index")?,
            length: of("length")?,
            contents: of("contents")?,
            contents_bytes: self.bytes("attune_contents")?,
            container: contents("container")?,
            size: contents("size")?,
            listed: contents("listed")?,
            threads: contents("thread")?,
        })
    }

    fn engine(&self) -> Option<Engine> {
        let cpu = |member| self.offset("attune_cpu", member);
        let domain = |member| self.offset("attune_domain", member);
        let counter = |member| self.offset("attune_statistics", member);
        let chunk = |member| self.offset("attune_chunk", member);
        Some(Engine {
            cpu_bytes: self.bytes("attune_cpu")?,
            running: cpu("running")?,
            deadline: cpu("deadline")?,
            domain_bytes: self.bytes("attune_domain")?,
            ready: domain("ready")?,
            ran: domain("ran")?,
            dispatches: domain("dispatches")?,
            calls: domain("calls")?,
            kept: counter("kept")?,
            kicks: counter("kicks")?,
            timers: counter("timers")?,
            fall_backs: counter("fall_backs")?,
            records: counter("records")?,
            moves: counter("moves")?,
            pulls: counter("pulls")?,
            balanced: counter("balanced")?,
            locks: counter("locks")?,
            held: counter("held")?,
            idles: counter("idles")?,
            neglects: counter("neglects")?,
            rescues: counter("rescues")?,
            calls_at: self.calls_at()?,
            rescue: self.rescue()?,
            chunk_before: chunk("before")?,
            chunk_records: chunk("records")?,
            chunk_first: chunk("record")?,
        })
    }

    fn calls_at(&self) -> Option<HashMap<String, usize>> {
        let calls = self.0.type_by_name::<Struct>("sched_ext_ops")?;
        let members = calls.iter().filter_map(|member| {
            let MemberAttr::Normal { offset } = member.attr else { return None };
            Some((member.name?.to_string_lossy().into_owned(), offset as usize / 8))
        });
        Some(members.collect())
    }

    fn rescue(&self) -> Option<Rescue> {
        let of = |member| self.offset("attune_rescue", member);
        Some(Rescue {
            bytes: self.bytes("attune_rescue")?,
            number: of("number")?,
            thread: of("thread")?,
            container: of("container")?,
            waited: of("waited")?,
            line: of("line")?,
            policy: of("policy")?,
        })
    }
}
