//! Draws the graph in the language of Graphviz.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Graph;
use crate::process::Process;

/// How a process is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    pub name: String,
    /// Both from 0 to 1, parts of the ceiling.
    pub input: f64,
    pub output: f64,
    pub hub: bool,
}

/// The processes of `looks` and the edges between them, the heavier the thicker. A hub is a box;
/// input colours a process orange, output blue.
pub fn dot(graph: &Graph, looks: &BTreeMap<Process, Look>) -> String {
    let mut text = String::from(
        "digraph focus {\n    rankdir=LR;\n    node [fontname=\"sans-serif\", style=filled];\n",
    );
    for (process, look) in looks {
        let shape = if look.hub { "box" } else { "ellipse" };
        let _ = writeln!(
            text,
            "    p{} [label=\"{}\\n{}\", shape={shape}, fillcolor=\"{}\"];",
            process.key(),
            quoted(&look.name),
            process.pid,
            colour(look)
        );
    }
    let shown: BTreeSet<_> = looks.keys().collect();
    for (from, to, edge) in graph.edges() {
        if shown.contains(&from) && shown.contains(&to) {
            let _ = writeln!(
                text,
                "    p{} -> p{} [label=\"{:.0}\", penwidth={:.1}];",
                from.key(),
                to.key(),
                edge.weight.max(1.0),
                1.0 + edge.weight.max(1.0).log2() / 2.0
            );
        }
    }
    text.push_str("}\n");
    text
}

/// Hue and saturation: the greater rating decides.
fn colour(look: &Look) -> String {
    let hue = if look.input >= look.output { 0.09 } else { 0.58 };
    format!("{hue} {:.2} 1.0", look.input.max(look.output).clamp(0.0, 1.0) * 0.8)
}

/// A process may have any name.
fn quoted(name: &str) -> String {
    let plain = |letter: char| match letter {
        '"' | '\\' => vec!['\\', letter],
        letter if letter.is_control() => vec!['?'],
        letter => vec![letter],
    };
    name.chars().flat_map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::process;
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_picture_holds_the_processes_that_are_shown_and_escapes_their_names() {
        let mut graph = Graph::default();
        let wakes = [(process(1), process(2), 8), (process(2), process(3), 1)];
        graph.count(wakes, 1, &Settings::default());
        let look = |name: &str, hub| Look { name: name.to_owned(), input: 1.0, output: 0.0, hub };
        let looks =
            BTreeMap::from([(process(1), look("X", true)), (process(2), look("a\"b\\\n", false))]);
        let text = dot(&graph, &looks);
        assert!(text.contains("label=\"X\\n1\", shape=box"), "{text}");
        assert!(text.contains("label=\"a\\\"b\\\\?\\n2\""), "{text}");
        let [one, two] = [process(1).key(), process(2).key()];
        assert!(text.contains(&format!("p{one} -> p{two} [label=\"8\"")), "{text}");
        assert!(!text.contains(&format!("p{}", process(3).key())), "{text}");
    }
}
