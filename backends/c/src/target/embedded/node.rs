//! What the firmware of a cluster's node exchanges with its gateway
//! (`engines/embedded/runtime/node.h`): the numbers, each by its place in the exchange.

use attune_language::ir::{ContainerId, Extent, GlobalId};

use crate::writer::Writer;
use crate::writer::names::plain_import;
use crate::writer::output::{Output, quoted};

/// Bytes of a frame around its numbers, and of a number.
const AROUND: usize = 13;
const NUMBER: usize = 8;

/// What a node says of itself, and the numbers of the exchange in their order.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The identity of the cluster's texts, and the family: its hello.
    pub text: String,
    /// What others share.
    pub shared: Vec<GlobalId>,
    /// What others see of the node.
    pub own: Vec<Own>,
}

#[derive(Clone, Copy, Debug)]
pub enum Own {
    Global(GlobalId),
    /// The number of threads in a container.
    Size(ContainerId),
}

impl Node {
    /// The most bytes that a frame takes, with the zeros around it.
    fn room(&self) -> usize {
        let (shared, own) = (self.shared.len(), self.own.len());
        let asked = (1 + shared + 2 * own) * NUMBER;
        let answered = (2 * shared + own) * NUMBER;
        let frame = AROUND + asked.max(answered).max(self.text.len());
        frame + frame / 254 + 4
    }

    /// In the header.
    pub(super) fn room_in_header(&self) -> String {
        format!(
            "/* Bytes of the longest frame of a node. */\n#define ATTUNE_NODE_ROOM {}\n",
            self.room()
        )
    }
}

impl Writer<'_> {
    pub(super) fn node_numbers(&mut self, node: &Node) {
        let Node { text, shared, own } = node;
        self.out.line("/* ---- What the node shares with its cluster ---- */");
        self.out.line(format!("#define ATTUNE_NODE_TEXT {}", quoted(text)));
        self.out.line(format!("#define ATTUNE_NODE_SHARED {}", shared.len()));
        self.out.line(format!("#define ATTUNE_NODE_OWN {}", own.len()));
        let globals: Vec<String> =
            shared.iter().map(|id| id.into_raw().into_u32().to_string()).collect();
        // C has no array of no elements.
        let globals = if globals.is_empty() { "0".to_owned() } else { globals.join(", ") };
        self.out.line(format!("static const uint32_t attune_node_globals[] = {{{globals}}};"));
        let set = shared.iter().map(|id| {
            let import = plain_import(&self.program.globals[*id].name);
            format!("ATTUNE_WRITE({import}, number)")
        });
        let set = cases(set);
        let tell = cases(own.iter().map(|own| match own {
            Own::Global(id) => format!("return {}", self.own_number(*id)),
            Own::Size(id) => {
                let first = self.first_of(self.program.containers[*id].extent);
                format!("return attune_size(&{}{first})", self.container_place(*id))
            }
        }));
        let obey = cases(own.iter().map(|own| match own {
            Own::Global(id) => {
                let number = self.own_number(*id);
                format!("{number} = attune_add(attune_mul({number}, change.scale), change.shift)")
            }
            // Nobody but the node itself moves its threads.
            Own::Size(_) => "(void)change".to_owned(),
        }));
        for (head, cases, end) in [
            ("static void attune_node_set(uint32_t place, int64_t number)", set, "(void)number;"),
            ("static int64_t attune_node_own(uint32_t place)", tell, "return 0;"),
            (
                "static void attune_node_obey(uint32_t place, struct attune_change change)",
                obey,
                "(void)change;",
            ),
        ] {
            self.out.line(head);
            self.out.open("{");
            self.out.append(cases);
            self.out.line(end);
            self.out.close("}");
        }
        self.out.blank();
    }

    fn own_number(&self, id: GlobalId) -> String {
        format!("{}{}", self.global(id), self.first_of(self.program.globals[id].extent))
    }

    /// There is one processor.
    fn first_of(&self, extent: Extent) -> &'static str {
        if extent == Extent::One { "" } else { "[0]" }
    }
}

fn cases(each: impl Iterator<Item = String>) -> Output {
    let mut out = Output::default();
    out.open("switch (place) {");
    for (place, statement) in each.enumerate() {
        out.line(format!("case {place}:"));
        out.line(format!("    {statement};"));
        out.line("    break;");
    }
    out.line("default:");
    out.line("    break;");
    out.close("}");
    out
}
