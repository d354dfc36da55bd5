//! Distributed schedulers: a master, whose containers hold nodes, and the node schedulers, whose containers hold threads.
//!
//! Both are lowered like an ordinary scheduler, each with the names that it sees of the whole. In the master a node's
//! variables are what attributes are to a thread. In a node scheduler a name is a shared global, then a global of the node,
//! then a local. Nothing runs them yet, so no program comes out, only findings.
//!
//! - `master` what only a master has; `names` names that say whose they are

mod master;
mod names;

use std::collections::{HashMap, HashSet};

use super::Lowering;
use crate::diagnostic::Diagnostic;
use crate::ir::*;
use crate::resolve::{FlatDistributed, Sited};
use crate::source::Span;
use crate::syntax::ast::{self, DistributedItem};

/// What a scheduler sees of the distributed scheduler that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    role: Role,
    families: Vec<String>,
    /// The master's containers of nodes.
    nodes: HashSet<String>,
    /// The shared globals.
    globals: HashSet<String>,
    /// What nodes have, whatever their family.
    variables: HashMap<String, NodeVariable>,
    /// Whether every family's scheduler could be read, so that nothing is missing above.
    complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Master,
    Node,
}

/// A variable or a container at the top of a node scheduler.
#[derive(Clone, Copy, Debug)]
enum NodeVariable {
    Number { ty: Type, storage: Storage, extent: Extent, span: Span },
    Container { kind: ContainerKind, extent: Extent, span: Span },
}

/// What a scheduler's containers hold: the words for messages.
pub(super) struct Vocabulary {
    pub threads: &'static str,
    /// How to declare a variable that each has; NAME stands for it.
    pub declare_attribute: &'static str,
}

/// What there is to say about a master and its node schedulers.
pub(crate) fn distributed(distributed: &FlatDistributed) -> Vec<Diagnostic> {
    let mut distribution = Distribution {
        role: Role::Node,
        families: distributed.families.iter().map(|family| family.name.clone()).collect(),
        nodes: node_names(&distributed.master),
        globals: HashSet::new(),
        variables: HashMap::new(),
        complete: distributed.families.iter().all(|family| family.scheduler.is_some()),
    };
    let globals = globals_of(&distributed.master);
    for declaration in &globals {
        let names = declaration.node.declarators().filter_map(|declarator| declarator.name());
        distribution.globals.extend(names.map(|name| name.text()));
    }

    // Declarations first: what the families' nodes have is known before any handler is looked at.
    let schedulers = distributed.families.iter().filter_map(|family| family.scheduler.as_ref());
    let nodes: Vec<_> = schedulers
        .map(|flat| {
            let mut node = Lowering::new(flat.name_span.source);
            node.distribution = Some(distribution.clone());
            node.enter_node(&globals);
            node.declarations(flat);
            distribution.add_variables(&node.program);
            (flat, node)
        })
        .collect();

    let master = Lowering::new(distributed.master.source);
    let mut diagnostics = master.master(distributed, &globals, distribution.clone());
    for (flat, mut node) in nodes {
        node.distribution = Some(distribution.clone());
        node.handlers(&flat.handlers);
        node.invariants(&flat.invariants);
        diagnostics.extend(node.finish().1);
    }
    diagnostics
}

fn globals_of(master: &Sited<ast::Distributed>) -> Vec<Sited<ast::Declaration>> {
    let sections = master.node.items().filter_map(|item| match item {
        DistributedItem::Globals(globals) => Some(globals),
        _ => None,
    });
    let declarations = sections.flat_map(|section| section.declarations().collect::<Vec<_>>());
    declarations.map(|node| Sited { source: master.source, node }).collect()
}

fn node_declarations(master: &ast::Distributed) -> Vec<ast::NodeDeclaration> {
    let sections = master.items().filter_map(|item| match item {
        DistributedItem::Nodes(nodes) => Some(nodes),
        _ => None,
    });
    sections.flat_map(|section| section.declarations().collect::<Vec<_>>()).collect()
}

fn node_names(master: &Sited<ast::Distributed>) -> HashSet<String> {
    let declarators =
        node_declarations(&master.node).into_iter().flat_map(|it| it.declarators().collect::<Vec<_>>());
    declarators.filter_map(|declarator| declarator.name()).map(|name| name.text()).collect()
}

impl Distribution {
    /// What is at the top of a node scheduler. A name that several families have is what the first of them says.
    fn add_variables(&mut self, program: &Program) {
        for (_, global) in program.globals.iter().filter(|(_, global)| !self.globals.contains(&global.name)) {
            let &Global { ty, storage, extent, span, .. } = global;
            let variable = NodeVariable::Number { ty, storage, extent, span };
            self.variables.entry(global.name.clone()).or_insert(variable);
        }
        for (_, container) in program.containers.iter() {
            let &Container { kind, extent, span, .. } = container;
            let variable = NodeVariable::Container { kind, extent, span };
            self.variables.entry(container.name.clone()).or_insert(variable);
        }
    }
}
