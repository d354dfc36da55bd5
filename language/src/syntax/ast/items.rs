//! Files, sections, declarations, handlers.

use super::{AstNode, Compound, Expr, child, children, choice, nodes, token, tokens};
use crate::syntax::{SyntaxKind, SyntaxNode, SyntaxToken};

nodes! {
    /// A whole file.
    Root(ROOT);
    /// `[partial] scheduler NAME [extends NAME] { .. }`
    Scheduler(SCHEDULER);
    /// `distributed scheduler NAME { .. }`
    Distributed(DISTRIBUTED);
    /// Sections, aspects and invariants with no scheduler around them, to be added to one.
    AspectFile(ASPECT_FILE);
    /// `thread { .. }`: the attributes of each thread.
    ThreadSection(THREAD_SECTION);
    /// `threadimports { .. }`: what the application tells of each thread.
    ThreadImports(THREAD_IMPORTS);
    /// `data { .. }`: the scheduler's variables and containers.
    DataSection(DATA_SECTION);
    /// `imports { .. }`: what the application tells.
    Imports(IMPORTS);
    /// `invariant CONTAINER { .. }`
    Invariant(INVARIANT);
    /// `event NAME [(..)] { .. }` or `query NAME [(..)] { .. }`
    Handler(HANDLER);
    /// `before EVENT [(..)] { .. }` or `after EVENT [(..)] { .. }`
    Aspect(ASPECT);
    /// The thread that a handler is about: `(fixed NAME)` or `(NAME)`.
    Parameter(PARAMETER);
    /// `TYPE NAME default EXPR [within EXPR to EXPR] [by SUPPLIER];`
    Import(IMPORT);
    /// `within LOW to HIGH`
    ImportRange(IMPORT_RANGE);
    /// `by owner`, `by loader`, `by table` or `by kernel`
    ImportSupplier(SUPPLIER);
    /// `[const] TYPE DECLARATOR, ..;`
    Declaration(DECLARATION);
    /// `int`, `queue` and so on.
    Type(TYPE);
    /// One declared name: `NAME`, `NAME = EXPR`, `NAME[EXPR]`, `NAME reverse sortable on NAME`.
    Declarator(DECLARATOR);
    /// `[EXPR]` behind a declared name.
    ArraySize(ARRAY_SIZE);
    /// `[reverse|increasing|decreasing] sortable on NAME`
    SortClause(SORT_CLAUSE);
    /// `= EXPR` behind a declared name.
    Initializer(INITIALIZER);
    /// An identifier that stands for itself, outside any expression.
    Name(NAME);
    /// `nodefamilies { .. }`
    NodeFamilies(NODE_FAMILIES);
    /// `"FILE" : NAME;`
    NodeFamily(NODE_FAMILY);
    /// `nodes { .. }`: the containers of nodes.
    Nodes(NODES);
    /// `node NAME;`, `queue NAME;` and so on, among the nodes.
    NodeDeclaration(NODE_DECLARATION);
    /// `global { .. }`: what master and nodes share.
    Globals(GLOBALS);
    /// `arrival (NAME) { .. }`
    Arrival(ARRIVAL);
    /// `departure (NAME) { .. }`
    Departure(DEPARTURE);
}

choice! {
    /// What a file holds.
    File {
        Scheduler(Scheduler),
        Distributed(Distributed),
        Aspects(AspectFile),
    }
}

choice! {
    /// A part of a scheduler.
    Item {
        Thread(ThreadSection),
        ThreadImports(ThreadImports),
        Data(DataSection),
        Imports(Imports),
        Invariant(Invariant),
        Handler(Handler),
        Aspect(Aspect),
    }
}

choice! {
    /// A part of a distributed scheduler.
    DistributedItem {
        Families(NodeFamilies),
        Nodes(Nodes),
        Globals(Globals),
        Arrival(Arrival),
        Departure(Departure),
        Handler(Handler),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandlerKind {
    Event,
    Query,
}

/// Where an aspect's code goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    Before,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    Int,
    Float,
    Time,
    Threadref,
    Queue,
    Stack,
    Pqueue,
    Pstack,
}

/// What is held by a declaration of a distributed scheduler's `nodes` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    Node,
    Queue,
    Stack,
    Pqueue,
    Pstack,
}

/// A word before a declaration's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    Const,
    /// A constant that can be changed from outside.
    Tunable,
    /// Every CPU has its own.
    Percpu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortOrder {
    /// `reverse` or `increasing`: the lowest key first.
    Increasing,
    /// `decreasing`, and what holds when nothing is said: the highest key first.
    Decreasing,
}

impl Root {
    /// What the file holds; none if nothing in it could be read.
    pub fn file(&self) -> Option<File> {
        child(&self.0)
    }
}

impl Scheduler {
    pub fn is_partial(&self) -> bool {
        token(&self.0, SyntaxKind::PARTIAL_KW).is_some()
    }

    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }

    /// The scheduler that this one extends.
    pub fn base(&self) -> Option<Name> {
        super::child_behind(&self.0, SyntaxKind::EXTENDS_KW, 1)
    }

    pub fn items(&self) -> impl Iterator<Item = Item> + use<> {
        children(&self.0)
    }
}

impl AspectFile {
    pub fn items(&self) -> impl Iterator<Item = Item> + use<> {
        children(&self.0)
    }
}

impl Distributed {
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }

    pub fn items(&self) -> impl Iterator<Item = DistributedItem> + use<> {
        children(&self.0)
    }
}

impl ThreadSection {
    pub fn declarations(&self) -> impl Iterator<Item = Declaration> + use<> {
        children(&self.0)
    }
}

impl ThreadImports {
    pub fn imports(&self) -> impl Iterator<Item = Import> + use<> {
        children(&self.0)
    }
}

impl DataSection {
    pub fn declarations(&self) -> impl Iterator<Item = Declaration> + use<> {
        children(&self.0)
    }
}

impl Imports {
    pub fn imports(&self) -> impl Iterator<Item = Import> + use<> {
        children(&self.0)
    }
}

impl Invariant {
    pub fn container(&self) -> Option<Name> {
        child(&self.0)
    }

    pub fn body(&self) -> Option<Compound> {
        child(&self.0)
    }
}

impl Handler {
    pub fn kind(&self) -> HandlerKind {
        match token(&self.0, SyntaxKind::QUERY_KW) {
            Some(_) => HandlerKind::Query,
            None => HandlerKind::Event,
        }
    }

    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }

    pub fn parameter(&self) -> Option<Parameter> {
        child(&self.0)
    }

    pub fn body(&self) -> Option<Compound> {
        child(&self.0)
    }
}

impl Aspect {
    pub fn position(&self) -> Position {
        match token(&self.0, SyntaxKind::AFTER_KW) {
            Some(_) => Position::After,
            None => Position::Before,
        }
    }

    /// The event that it is about.
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }

    pub fn parameter(&self) -> Option<Parameter> {
        child(&self.0)
    }

    pub fn body(&self) -> Option<Compound> {
        child(&self.0)
    }
}

impl Parameter {
    /// Whether the handler must leave the thread where it is.
    pub fn is_fixed(&self) -> bool {
        token(&self.0, SyntaxKind::FIXED_KW).is_some()
    }

    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }
}

impl Import {
    pub fn ty(&self) -> Option<Type> {
        child(&self.0)
    }

    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }

    /// What holds until the application has registered the variable.
    pub fn default(&self) -> Option<Expr> {
        child(&self.0)
    }

    pub fn range(&self) -> Option<ImportRange> {
        child(&self.0)
    }

    pub fn supplier(&self) -> Option<ImportSupplier> {
        child(&self.0)
    }
}

impl ImportRange {
    pub fn low(&self) -> Option<Expr> {
        child(&self.0)
    }

    pub fn high(&self) -> Option<Expr> {
        children(&self.0).nth(1)
    }
}

impl ImportSupplier {
    /// The word behind `by`.
    pub fn word(&self) -> Option<SyntaxKind> {
        tokens(&self.0).map(|token| token.kind()).find(|kind| {
            use SyntaxKind::*;
            matches!(kind, OWNER_KW | LOADER_KW | TABLE_KW | KERNEL_KW)
        })
    }
}

impl Declaration {
    /// The words before the type, in order, with their tokens.
    pub fn storage(&self) -> impl Iterator<Item = (Storage, SyntaxToken)> + use<> {
        tokens(&self.0).filter_map(|token| {
            let storage = match token.kind() {
                SyntaxKind::CONST_KW => Storage::Const,
                SyntaxKind::TUNABLE_KW => Storage::Tunable,
                SyntaxKind::PERCPU_KW => Storage::Percpu,
                _ => return None,
            };
            Some((storage, token))
        })
    }

    pub fn has_storage(&self, storage: Storage) -> bool {
        self.storage().any(|(it, _)| it == storage)
    }

    pub fn ty(&self) -> Option<Type> {
        child(&self.0)
    }

    pub fn declarators(&self) -> impl Iterator<Item = Declarator> + use<> {
        children(&self.0)
    }
}

impl Type {
    pub fn kind(&self) -> Option<TypeKind> {
        tokens(&self.0).find_map(|token| {
            Some(match token.kind() {
                SyntaxKind::INT_KW => TypeKind::Int,
                SyntaxKind::FLOAT_KW => TypeKind::Float,
                SyntaxKind::TIME_KW => TypeKind::Time,
                SyntaxKind::THREADREF_KW => TypeKind::Threadref,
                SyntaxKind::QUEUE_KW => TypeKind::Queue,
                SyntaxKind::STACK_KW => TypeKind::Stack,
                SyntaxKind::PQUEUE_KW => TypeKind::Pqueue,
                SyntaxKind::PSTACK_KW => TypeKind::Pstack,
                _ => return None,
            })
        })
    }
}

impl TypeKind {
    /// As written in a scheduler.
    pub fn name(self) -> &'static str {
        match self {
            TypeKind::Int => "int",
            TypeKind::Float => "float",
            TypeKind::Time => "time",
            TypeKind::Threadref => "threadref",
            TypeKind::Queue => "queue",
            TypeKind::Stack => "stack",
            TypeKind::Pqueue => "pqueue",
            TypeKind::Pstack => "pstack",
        }
    }

    pub fn is_container(self) -> bool {
        !matches!(self, TypeKind::Int | TypeKind::Float | TypeKind::Time)
    }

    /// Whether its threads stand in the order of a key.
    pub fn is_sorted(self) -> bool {
        matches!(self, TypeKind::Pqueue | TypeKind::Pstack)
    }
}

impl Declarator {
    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }

    /// How many elements, if it is an array.
    pub fn size(&self) -> Option<Expr> {
        child::<ArraySize>(&self.0).and_then(|size| child(&size.0))
    }

    /// `[EXPR]`: there for an array, even where its size could not be read.
    pub fn array(&self) -> Option<ArraySize> {
        child(&self.0)
    }

    pub fn sort(&self) -> Option<SortClause> {
        child(&self.0)
    }

    pub fn initial(&self) -> Option<Expr> {
        child::<Initializer>(&self.0).and_then(|initializer| child(&initializer.0))
    }
}

impl SortClause {
    pub fn order(&self) -> SortOrder {
        let increasing = |token: SyntaxToken| {
            matches!(token.kind(), SyntaxKind::REVERSE_KW | SyntaxKind::INCREASING_KW)
        };
        if tokens(&self.0).any(increasing) { SortOrder::Increasing } else { SortOrder::Decreasing }
    }

    /// The attribute that is sorted by.
    pub fn key(&self) -> Option<Name> {
        child(&self.0)
    }
}

impl Name {
    pub fn text(&self) -> String {
        self.0.text().to_string()
    }
}

impl NodeFamilies {
    pub fn families(&self) -> impl Iterator<Item = NodeFamily> + use<> {
        children(&self.0)
    }
}

impl NodeFamily {
    /// The token of the file's name.
    pub fn file_token(&self) -> Option<SyntaxToken> {
        token(&self.0, SyntaxKind::STRING)
    }

    /// The file of the family's node scheduler, without its quotes.
    pub fn file(&self) -> Option<String> {
        self.file_token().map(|token| token.text().trim_matches('"').to_string())
    }

    pub fn name(&self) -> Option<Name> {
        child(&self.0)
    }

    /// How many nodes of the family must have come before any node's `schedule` is called.
    pub fn expects(&self) -> Option<u32> {
        token(&self.0, SyntaxKind::INT)?.text().parse().ok()
    }
}

impl Nodes {
    pub fn declarations(&self) -> impl Iterator<Item = NodeDeclaration> + use<> {
        children(&self.0)
    }
}

impl NodeDeclaration {
    pub fn kind(&self) -> Option<NodeKind> {
        tokens(&self.0).find_map(|token| {
            Some(match token.kind() {
                SyntaxKind::NODE_KW => NodeKind::Node,
                SyntaxKind::QUEUE_KW => NodeKind::Queue,
                SyntaxKind::STACK_KW => NodeKind::Stack,
                SyntaxKind::PQUEUE_KW => NodeKind::Pqueue,
                SyntaxKind::PSTACK_KW => NodeKind::Pstack,
                _ => return None,
            })
        })
    }

    pub fn declarators(&self) -> impl Iterator<Item = Declarator> + use<> {
        children(&self.0)
    }
}

impl Globals {
    pub fn declarations(&self) -> impl Iterator<Item = Declaration> + use<> {
        children(&self.0)
    }
}

impl Arrival {
    /// The node that has come.
    pub fn parameter(&self) -> Option<Parameter> {
        child(&self.0)
    }

    pub fn body(&self) -> Option<Compound> {
        child(&self.0)
    }
}

impl Departure {
    /// The node that has gone.
    pub fn parameter(&self) -> Option<Parameter> {
        child(&self.0)
    }

    pub fn body(&self) -> Option<Compound> {
        child(&self.0)
    }
}
