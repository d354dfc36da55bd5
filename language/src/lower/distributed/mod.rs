//! Distributed schedulers: a master, whose containers hold nodes, and the node schedulers, whose
//! containers hold threads.
//!
//! Both are lowered like an ordinary scheduler, each with the names that it sees of the whole
//! ([`crate::ir::Membership`] says what comes out). In the master a node's variables are what
//! attributes are to a thread. In a node scheduler a name is a shared global, then a global of the
//! node, then a local.
//!
//! - `master` what only a master has; `names` names that say whose they are; `families` what `is`
//!   says of a node in the code behind it

mod families;
mod master;
mod names;

use std::collections::{HashMap, HashSet};

use super::Lowering;
use crate::diagnostic::{Diagnostic, has_errors};
use crate::ir::*;
use crate::resolve::{Flat, FlatDistributed, Sited};
use crate::source::Span;
use crate::syntax::ast::{self, DistributedItem};
use families::FamilySet;

/// What a scheduler sees of the distributed scheduler that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    member: Member,
    families: Vec<String>,
    /// The master's containers of nodes.
    nodes: HashSet<String>,
    /// The shared globals.
    globals: HashSet<String>,
    /// What nodes have, by name, each with the number of its family.
    variables: HashMap<String, Vec<(usize, NodeVariable)>>,
    /// Whether every family's scheduler could be read, so that nothing is missing above.
    complete: bool,
    /// What the code at hand knows of nodes' families, the innermost condition last.
    known: Vec<(String, FamilySet)>,
    /// Variables and containers of nodes that were named from elsewhere.
    observed: HashSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Master,
    Node,
}

/// A variable or a container at the top of a node scheduler.
#[derive(Clone, Copy, Debug)]
enum NodeVariable {
    Number { ty: Type, span: Span },
    Container,
}

/// What a scheduler's containers hold: the words for messages.
pub(super) struct Vocabulary {
    pub threads: &'static str,
    /// How to declare a variable that each has; NAME stands for it.
    pub declare_attribute: &'static str,
}

/// The programs of a distributed scheduler without errors: the master's, and each family's in the
/// order of the families.
pub(crate) struct Programs {
    pub master: Program,
    pub nodes: Vec<Program>,
}

/// The programs, and what there is to say about them; none if one of the diagnostics is an error.
pub(crate) fn distributed(of: &FlatDistributed) -> (Option<Programs>, Vec<Diagnostic>) {
    let mut distribution = Distribution {
        member: Member::Node,
        families: of.families.iter().map(|family| family.name.clone()).collect(),
        nodes: node_names(&of.master),
        globals: HashSet::new(),
        variables: HashMap::new(),
        complete: of.families.iter().all(|family| family.scheduler.is_some()),
        known: Vec::new(),
        observed: HashSet::new(),
    };
    let globals = globals_of(&of.master);
    for declaration in &globals {
        let names = declaration.node.declarators().filter_map(|declarator| declarator.name());
        distribution.globals.extend(names.map(|name| name.text()));
    }

    // Declarations first: what the families' nodes have is known before any handler is looked at.
    let mut nodes: Vec<(&Flat, Lowering)> = Vec::new();
    for (family, flat) in of.families.iter().enumerate() {
        let Some(flat) = &flat.scheduler else { continue };
        let mut node = Lowering::new(flat.name_span.source);
        node.complete = flat.complete;
        node.program.name = flat.name.clone();
        node.program.partial = flat.partial;
        node.distribution = Some(distribution.clone());
        node.enter_node(&globals);
        node.declarations(flat);
        distribution.add_variables(family, &node.program);
        nodes.push((flat, node));
    }

    let master = Lowering::new(of.master.source);
    let (master, mut diagnostics, mut observed) = master.master(of, &globals, distribution.clone());
    let mut programs = Vec::new();
    for (flat, mut node) in nodes {
        node.distribution = Some(distribution.clone());
        node.handlers(&flat.handlers);
        node.invariants(&flat.invariants);
        observed.extend(node.take_observed());
        let (program, found) = node.finish();
        // The master's default handlers are the same in all families.
        for diagnostic in found {
            if !diagnostics.contains(&diagnostic) {
                diagnostics.push(diagnostic);
            }
        }
        programs.extend(program);
    }
    let whole = programs.len() == of.families.len() && !has_errors(&diagnostics);
    for node in &mut programs {
        node.membership.observed = observed.iter().cloned().collect();
    }
    let programs = master.filter(|_| whole).map(|master| Programs { master, nodes: programs });
    (programs, diagnostics)
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
    let declarators = node_declarations(&master.node)
        .into_iter()
        .flat_map(|it| it.declarators().collect::<Vec<_>>());
    declarators.filter_map(|declarator| declarator.name()).map(|name| name.text()).collect()
}

impl Distribution {
    /// What is at the top of a family's scheduler. Arrays are seen by their own node alone.
    fn add_variables(&mut self, family: usize, program: &Program) {
        let own = |global: &&Global| {
            !self.globals.contains(&global.name) && !matches!(global.extent, Extent::Array(_))
        };
        for global in program.globals.values().filter(own) {
            let variable = NodeVariable::Number { ty: global.ty, span: global.span };
            self.variables.entry(global.name.clone()).or_default().push((family, variable));
        }
        for container in program.containers.values() {
            if !matches!(container.extent, Extent::Array(_)) {
                let variable = NodeVariable::Container;
                self.variables.entry(container.name.clone()).or_default().push((family, variable));
            }
        }
    }

    /// The type as which a number of that name is seen in nodes of these families: their own, or
    /// the widest where they differ.
    fn number(&self, name: &str, families: FamilySet) -> Option<(Type, Span)> {
        let found = self.variables.get(name)?.iter().filter(|(family, _)| families.has(*family));
        let numbers = found.filter_map(|(_, variable)| match *variable {
            NodeVariable::Number { ty, span } => Some((ty, span)),
            NodeVariable::Container => None,
        });
        let width = |ty: Type| match ty {
            Type::Int => 0,
            Type::Time => 1,
            Type::Float => 2,
        };
        // The first of those that are equally wide.
        numbers.fold(None, |widest: Option<(Type, Span)>, (ty, span)| match widest {
            Some(widest) if width(widest.0) >= width(ty) => Some(widest),
            _ => Some((ty, span)),
        })
    }

    /// Whether a node of these families has a container of that name.
    fn has_container(&self, name: &str, families: FamilySet) -> bool {
        self.variables.get(name).is_some_and(|found| {
            found.iter().any(|(family, variable)| {
                families.has(*family) && matches!(variable, NodeVariable::Container)
            })
        })
    }
}
