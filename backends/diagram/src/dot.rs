//! The picture as text for Graphviz.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use attune_language::EngineReport;
use attune_language::ir::{Container, ContainerKind, Extent, First, Program, Scope};
use attune_language::source::SourceMap;

use crate::transfers::{Place, Style, Transfers, collect, index};

/// A program to draw.
#[derive(Clone, Copy)]
pub struct Drawn<'a> {
    pub program: &'a Program,
    /// What an engine knows of it: where named threads may sit. Without it they come from a node of
    /// their own.
    pub report: Option<&'a EngineReport>,
    /// The texts that conditions are read from, if arrows shall show them.
    pub conditions: Option<&'a SourceMap>,
}

/// The containers of a scheduler and the transfers between them, in Graphviz' language.
pub fn dot(drawn: Drawn<'_>) -> String {
    picture(&drawn.program.name, &body(drawn, ""))
}

/// A distributed scheduler: each member, with its title, in a frame of its own.
pub fn dot_cluster(name: &str, members: &[(String, Drawn<'_>)]) -> String {
    let mut text = String::new();
    for (number, (title, drawn)) in members.iter().enumerate() {
        let prefix = format!("m{number}_");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    subgraph cluster_{number} {{");
        let _ = writeln!(text, "    label={}; color=\"#d8dee9\";", quoted(title));
        text += &body(*drawn, &prefix);
        text += "    }\n";
    }
    picture(name, &text)
}

fn picture(name: &str, body: &str) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "digraph {} {{", quoted(name));
    let _ = writeln!(
        text,
        "    label={}; labelloc=t; fontsize=18; rankdir=LR; nodesep=0.5; ranksep=1.1;",
        quoted(name)
    );
    text.push_str("    fontname=\"Helvetica\"; bgcolor=\"white\";\n");
    text.push_str(
        "    node [fontname=\"Helvetica\", fontsize=13, color=\"#3b4252\", style=filled];\n",
    );
    text.push_str(
        "    edge [fontname=\"Helvetica\", fontsize=11, color=\"#4c566a\", \
            fontcolor=\"#2e3440\"];\n",
    );
    text.push_str(body);
    text.push_str("}\n");
    text
}

/// The nodes and arrows of one program, each name behind a prefix.
fn body(of: Drawn<'_>, prefix: &str) -> String {
    let program = of.program;
    let transfers = collect(program, of.report, of.conditions);
    let mut text = String::new();
    for (id, container) in program.containers.iter() {
        let _ = writeln!(text, "    {prefix}{}", node(program, container, index(id), &transfers));
    }
    for place in ends(&transfers) {
        if let Some(line) = other_node(place, &transfers) {
            let _ = writeln!(text, "    {prefix}{line}");
        }
    }
    for ((from, to, style), handlers) in by_style(program, &transfers) {
        let label = handlers.into_iter().collect::<Vec<_>>().join("\n");
        let _ = writeln!(
            text,
            "    {prefix}{} -> {prefix}{} [label={}{}];",
            name(from),
            name(to),
            quoted(&label),
            drawn(style)
        );
    }
    text
}

/// Arrows between the same places that look the same are one, with all their handlers.
fn by_style(
    program: &Program,
    transfers: &Transfers,
) -> BTreeMap<(Place, Place, Style), Vec<String>> {
    let mut arrows: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (&(from, to, event), arrow) in &transfers.arrows {
        let mut label = program.handler_name(event).to_string();
        for condition in &arrow.conditions {
            let _ = write!(label, "\n[{condition}]");
        }
        arrows.entry((from, to, arrow.style)).or_default().push(label);
    }
    arrows
}

fn ends(transfers: &Transfers) -> BTreeSet<Place> {
    transfers.arrows.keys().flat_map(|&(from, to, _)| [from, to]).collect()
}

fn node(program: &Program, container: &Container, index: u32, transfers: &Transfers) -> String {
    let (kind, color) = match container.kind {
        ContainerKind::Threadref => ("threadref", "#ebcb8b"),
        ContainerKind::Queue => ("queue", "#a3be8c"),
        ContainerKind::Stack => ("stack", "#b48ead"),
        ContainerKind::PQueue => ("pqueue", "#88c0d0"),
        ContainerKind::PStack => ("pstack", "#81a1c1"),
    };
    let mut label = container.name.clone();
    match container.extent {
        Extent::Array(length) => {
            let _ = write!(label, "[{length}]");
        }
        Extent::One | Extent::PerCpu => {}
    }
    let _ = write!(label, "\n{kind}");
    if let Some(sort) = &container.sort {
        let first = match sort.first {
            First::Highest => "highest",
            First::Lowest => "lowest",
        };
        let _ = write!(label, ", {first} {}", program.attributes[sort.by].name);
    }
    let shape = if container.kind == ContainerKind::Threadref { "ellipse" } else { "box" };
    let local =
        if matches!(container.scope, Scope::Handler(_)) { ", style=\"filled,dashed\"" } else { "" };
    let borders = if transfers.dispatched.contains(&index) { ", peripheries=2" } else { "" };
    format!(
        "{} [label={}, shape={shape}, fillcolor=\"{color}\"{local}{borders}];",
        name(Place::Container(index)),
        quoted(&label)
    )
}

fn other_node(place: Place, transfers: &Transfers) -> Option<String> {
    let attributes = match place {
        Place::Container(_) => return None,
        Place::New => {
            "shape=circle, label=\"\", width=0.2, fillcolor=\"#2e3440\", xlabel=\"new\"".to_string()
        }
        Place::Destroyed => "shape=doublecircle, label=\"\", width=0.16, fillcolor=\"#2e3440\", \
            xlabel=\"destroyed\""
            .to_string(),
        Place::Named(event) => {
            let parameter = transfers.parameters.get(&event).map_or("", String::as_str);
            format!(
                "shape=box, style=\"rounded,dotted\", fontsize=11, fontcolor=\"#4c566a\", \
                 height=0.3, label={}",
                quoted(&format!("{parameter},\nwherever it is"))
            )
        }
    };
    Some(format!("{} [{attributes}];", name(place)))
}

fn name(place: Place) -> String {
    match place {
        Place::New => "new".to_string(),
        Place::Container(index) => format!("c{index}"),
        Place::Named(event) => format!("named_{event}"),
        Place::Destroyed => "destroyed".to_string(),
    }
}

fn drawn(style: Style) -> &'static str {
    match (style.looped, style.conditional) {
        (false, false) => "",
        (true, false) => ", style=bold",
        (false, true) => ", style=dashed",
        (true, true) => ", style=\"bold,dashed\"",
    }
}

/// A string of Graphviz' language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
