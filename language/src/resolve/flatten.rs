//! A scheduler, its bases and its aspects, laid together.

use std::collections::HashMap;

use super::{Reader, Request, Sited, SourceText};
use crate::diagnostic::{Diagnostic, codes};
use crate::engine::event::Event;
use crate::source::{SourceId, Span};
use crate::syntax::ast::{self, AstNode, File, Item, Position};

/// One scheduler out of all its files, in the order in which its parts take effect.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    /// Empty where the name could not be read.
    pub name: String,
    pub name_span: Span,
    pub partial: bool,
    /// Whether every base could be read, so that no declaration is missing.
    pub complete: bool,
    /// A file other than that of `lifecycle` holds a part of `arrives`.
    pub may_be_split: bool,
    pub thread: Vec<Sited<ast::Declaration>>,
    pub thread_imports: Vec<Sited<ast::Import>>,
    pub data: Vec<Sited<ast::Declaration>>,
    pub imports: Vec<Sited<ast::Import>>,
    pub invariants: Vec<Sited<ast::Invariant>>,
    /// One entry for each name, in the order of first appearance.
    pub handlers: Vec<FlatHandler>,
    /// Where a name's entry is among the handlers.
    places: HashMap<String, usize>,
}

/// All that happens at one event or query.
#[derive(Clone, Debug)]
pub struct FlatHandler {
    pub name: String,
    /// In the order in which they run.
    pub before: Vec<Sited<ast::Aspect>>,
    /// The most derived scheduler's.
    pub own: Option<Sited<ast::Handler>>,
    /// In the order in which they run.
    pub after: Vec<Sited<ast::Aspect>>,
}

/// The scheduler with everything that it extends.
pub(super) fn flatten(main: Sited<ast::Scheduler>, reader: &mut Reader<'_>) -> Flat {
    let mut flat = Flat {
        name: main.node.name().map(|name| name.text()).unwrap_or_default(),
        name_span: main.node.name().map_or_else(|| main.span(), |name| name.span(main.source)),
        partial: main.node.is_partial(),
        ..Flat::default()
    };
    let (layers, complete) = with_bases(main, reader);
    flat.complete = complete;
    for layer in layers.into_iter().rev() {
        add_layer(&mut flat, layer.source, layer.node.items(), reader);
        let default = layer.node.name().is_some_and(|name| name.text() == "lifecycle");
        flat.may_be_split |= !default && arrives_here(&flat, layer.source);
    }
    flat
}

/// Whether this file holds a part of what happens when a thread arrives from another instance.
fn arrives_here(flat: &Flat, source: SourceId) -> bool {
    let arrives = flat.handlers.iter().find(|handler| handler.name == Event::Arrives.name());
    arrives.is_some_and(|arrives| {
        arrives.own.as_ref().is_some_and(|own| own.source == source)
            || arrives.before.iter().chain(&arrives.after).any(|aspect| aspect.source == source)
    })
}

/// Adds the sections and aspects of a file given beside the scheduler.
pub(super) fn add_aspect_file(flat: &mut Flat, file: &SourceText, reader: &mut Reader<'_>) {
    let parsed = reader.read(file);
    match parsed.file() {
        Some(File::Aspects(aspects)) => {
            let (handlers, parts): (Vec<Item>, Vec<Item>) =
                aspects.items().partition(|item| matches!(item, Item::Handler(_)));
            for handler in handlers {
                reader.diagnostics.push(
                    Diagnostic::new(
                        codes::files::HANDLER_AMONG_ASPECTS,
                        handler.span(parsed.source),
                        "an aspect file cannot replace a handler",
                    )
                    .label("this would replace the scheduler's own")
                    .hint(
                        "make it a `before` or an `after`, or replace the handler in a \
                         scheduler that extends this one",
                    ),
                );
            }
            add_layer(flat, parsed.source, parts.into_iter(), reader)
        }
        Some(File::Scheduler(node)) => refuse_as_aspects(node.span(parsed.source), reader),
        Some(File::Distributed(node)) => refuse_as_aspects(node.span(parsed.source), reader),
        None => {}
    }
}

fn refuse_as_aspects(span: Span, reader: &mut Reader<'_>) {
    let start = Span { end: span.start, ..span };
    reader.diagnostics.push(
        Diagnostic::new(
            codes::files::NOT_ASPECTS,
            start,
            "an aspect file holds no `scheduler { .. }`",
        )
        .hint("leave its `before` and `after` parts and sections, without a scheduler around them"),
    );
}

/// The scheduler first, then its base, the base's base and so on; whether that is all of them. A
/// base that cannot be had ends the list.
fn with_bases(
    main: Sited<ast::Scheduler>,
    reader: &mut Reader<'_>,
) -> (Vec<Sited<ast::Scheduler>>, bool) {
    let mut chain = vec![main];
    let mut complete = false;
    while let Some(derived) = chain.last() {
        let Some(name) = derived.node.base() else {
            complete = true;
            break;
        };
        let span = name.span(derived.source);
        let from = reader.sources.name(derived.source).to_string();
        let Some(loaded) = reader.load(&Request::Base { name: &name.text(), from: &from }, span)
        else {
            break;
        };
        if let Some(known) =
            chain.iter().find(|layer| reader.sources.name(layer.source) == loaded.name)
        {
            let known_name =
                known.node.name().map_or_else(|| known.span(), |name| name.span(known.source));
            reader.diagnostics.push(
                Diagnostic::new(
                    codes::files::CYCLE,
                    span,
                    format!("`{}` extends itself", name.text()),
                )
                .label("this leads back to a scheduler that extends it")
                .also(known_name, "the scheduler that it leads back to")
                .hint("move what they share into a scheduler of its own, which both extend"),
            );
            break;
        }
        let parsed = reader.read(&loaded);
        match parsed.file() {
            Some(File::Scheduler(node)) => chain.push(Sited { source: parsed.source, node }),
            Some(_) => {
                let message =
                    format!("`{}` holds no scheduler that could be extended", loaded.name);
                reader.diagnostics.push(
                    Diagnostic::new(codes::files::NOT_A_BASE, span, message)
                        .hint("extend an ordinary scheduler, or a `partial` one"),
                );
                break;
            }
            None => break,
        }
    }
    (chain, complete)
}

/// Adds one file's parts around what is there.
fn add_layer(
    flat: &mut Flat,
    source: SourceId,
    items: impl Iterator<Item = Item>,
    reader: &mut Reader<'_>,
) {
    let mut written: HashMap<String, Span> = HashMap::new();
    let mut before: Vec<Sited<ast::Aspect>> = Vec::new();
    for item in items {
        match item {
            Item::Thread(it) => {
                flat.thread.extend(it.declarations().map(|node| Sited { source, node }))
            }
            Item::ThreadImports(it) => {
                flat.thread_imports.extend(it.imports().map(|node| Sited { source, node }))
            }
            Item::Data(it) => {
                flat.data.extend(it.declarations().map(|node| Sited { source, node }))
            }
            Item::Imports(it) => {
                flat.imports.extend(it.imports().map(|node| Sited { source, node }))
            }
            Item::Invariant(node) => flat.invariants.push(Sited { source, node }),
            Item::Handler(node) => add_handler(flat, Sited { source, node }, &mut written, reader),
            Item::Aspect(node) => {
                let aspect = Sited { source, node };
                if !stands_at_an_event(&aspect, reader) {
                    continue;
                }
                match aspect.node.position() {
                    Position::Before => before.push(aspect),
                    Position::After => {
                        if let Some(name) = aspect.node.name() {
                            flat.at(&name.text()).after.push(aspect);
                        }
                    }
                }
            }
        }
    }
    // The file's own parts in their order, all of them before what older files added.
    for aspect in before.into_iter().rev() {
        if let Some(name) = aspect.node.name() {
            flat.at(&name.text()).before.insert(0, aspect);
        }
    }
}

fn add_handler(
    flat: &mut Flat,
    handler: Sited<ast::Handler>,
    written: &mut HashMap<String, Span>,
    reader: &mut Reader<'_>,
) {
    let Some(name) = handler.node.name() else { return };
    let span = name.span(handler.source);
    let name = name.text();
    if let Some(first) = written.get(&name) {
        reader.diagnostics.push(
            Diagnostic::new(
                codes::files::DUPLICATE_HANDLER,
                span,
                format!("`{name}` has a handler already"),
            )
            .label("a second handler")
            .also(*first, "the first one")
            .hint("join the two, or make one a `before` or `after` of the event"),
        );
        return;
    }
    written.insert(name.clone(), span);
    flat.at(&name).own = Some(handler);
}

/// Aspects stand around events; a query changes nothing, so there is nothing to add to it.
fn stands_at_an_event(aspect: &Sited<ast::Aspect>, reader: &mut Reader<'_>) -> bool {
    let Some(name) = aspect.node.name() else { return false };
    if Event::from_name(&name.text()).is_some_and(Event::is_query) {
        let message = format!("`{}` is a query, and only events have aspects", name.text());
        reader.diagnostics.push(
            Diagnostic::new(codes::files::ASPECT_OF_QUERY, name.span(aspect.source), message)
                .hint("write the query itself anew in a derived scheduler"),
        );
        return false;
    }
    true
}

impl Flat {
    /// The entry for a name, made if it is not there.
    pub(super) fn at(&mut self, name: &str) -> &mut FlatHandler {
        let index = self.places.get(name).copied().unwrap_or_else(|| {
            let name = name.to_string();
            self.places.insert(name.clone(), self.handlers.len());
            self.handlers.push(FlatHandler {
                name,
                before: Vec::new(),
                own: None,
                after: Vec::new(),
            });
            self.handlers.len() - 1
        });
        &mut self.handlers[index]
    }
}
