//! A distributed scheduler with the node schedulers that it names.

use super::flatten::{Flat, add_aspect_file, flatten};
use super::{Reader, Request, Sited, SourceText};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, AstNode, DistributedItem, File};

/// A master and its families of nodes.
#[derive(Clone, Debug)]
pub struct FlatDistributed {
    pub name: String,
    pub master: Sited<ast::Distributed>,
    pub families: Vec<Family>,
}

/// Nodes that run the same node scheduler.
#[derive(Clone, Debug)]
pub struct Family {
    pub name: String,
    pub name_span: Span,
    /// How many nodes must have come before any node's `schedule` is called.
    pub expects: u32,
    /// None if its file could not be had, which has been said.
    pub scheduler: Option<Flat>,
}

pub(super) fn resolve(
    master: Sited<ast::Distributed>,
    aspects: &[SourceText],
    reader: &mut Reader<'_>,
) -> FlatDistributed {
    let from = reader.sources.name(master.source).to_string();
    let mut families = Vec::new();
    for item in master.node.items() {
        let DistributedItem::Families(section) = item else { continue };
        for entry in section.families() {
            if let Some(name) = entry.name() {
                let mut scheduler = node_scheduler(&entry, &master, &from, aspects, reader);
                if let Some(scheduler) = &mut scheduler {
                    add_defaults(scheduler, &master);
                }
                families.push(Family {
                    name: name.text(),
                    name_span: name.span(master.source),
                    expects: entry.expects().unwrap_or_default(),
                    scheduler,
                });
            }
        }
    }
    let name = master.node.name().map(|name| name.text()).unwrap_or_default();
    FlatDistributed { name, master, families }
}

/// The master's events are handlers of the nodes that have none of their own.
fn add_defaults(node: &mut Flat, master: &Sited<ast::Distributed>) {
    for item in master.node.items() {
        if let DistributedItem::Handler(handler) = item
            && let Some(name) = handler.name()
        {
            let own = &mut node.at(&name.text()).own;
            own.get_or_insert(Sited { source: master.source, node: handler });
        }
    }
}

fn node_scheduler(
    entry: &ast::NodeFamily,
    master: &Sited<ast::Distributed>,
    from: &str,
    aspects: &[SourceText],
    reader: &mut Reader<'_>,
) -> Option<Flat> {
    let file = entry.file()?;
    let span = Span::new(master.source, entry.file_token()?.text_range());
    let loaded = reader.load(&Request::Node { file: &file, from }, span)?;
    let parsed = reader.read(&loaded);
    match parsed.file()? {
        File::Scheduler(node) => {
            let mut flat = flatten(Sited { source: parsed.source, node }, reader);
            for aspect in aspects {
                add_aspect_file(&mut flat, aspect, reader);
            }
            Some(flat)
        }
        _ => {
            let message = format!("\"{file}\" holds no node scheduler");
            reader.diagnostics.push(
                Diagnostic::new(codes::files::NOT_A_BASE, span, message)
                    .hint("a node scheduler is an ordinary `scheduler { .. }`"),
            );
            None
        }
    }
}
