//! What a checked cluster shares: names become numbers, the same for the master and all nodes that
//! run the same text.
//!
//! The store holds the shared variables first, then for each seat, that is each container of nodes
//! whose first node other nodes look at, the node's number, its family and its properties.

use std::collections::HashMap;

use attune_language::Cluster;
use attune_language::ir::{
    ContainerId, Extent, GlobalId, NodeProperty, Program, Remote, Type, Value,
};
use attune_language::source::SourceMap;
use sha2::{Digest, Sha256};

use crate::messages::{Cell, Property, Shared};

/// How programs use a shared variable outside of handlers. Handlers always read the node's copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// From the node's copy; updates are queued and merged. Causally consistent.
    #[default]
    Cache,
    /// At the owner, each time. Sequentially consistent, and linearizable.
    Request,
}

#[derive(Clone, Debug)]
pub struct Schema {
    /// The master's name.
    pub name: String,
    /// A digest of the texts of the master and all node schedulers: equal for equal texts.
    pub identity: String,
    pub families: Vec<FamilySchema>,
    pub shared: Vec<SharedVariable>,
    /// What master and nodes see of nodes: variables, sizes of containers, commands.
    pub properties: Vec<NodeProperty>,
    /// The master's containers whose first node other nodes look at.
    pub seats: Vec<(String, ContainerId)>,
}

#[derive(Clone, Debug)]
pub struct FamilySchema {
    pub name: String,
    /// How many nodes must have come before any node's `schedule` is called.
    pub expects: u32,
    /// What the cluster supplies to its program.
    pub imports: Vec<(GlobalId, Source)>,
    /// What its program supplies to the cluster.
    pub exports: Vec<(Property, Export)>,
    /// Containers whose threads can be suspended by command.
    pub commands: Vec<(Property, ContainerId)>,
}

#[derive(Clone, Debug)]
pub struct SharedVariable {
    pub name: String,
    pub ty: Type,
    pub initial: Value,
    pub model: Model,
}

/// Where an import's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Shared(Shared),
    /// The family of the node in a seat, -1 where none is.
    Family(u16),
    /// A property of the node in a seat, 0 where none is.
    Of(u16, Property),
    /// How long ago the master was heard of.
    Age,
}

/// What of a node's program a property is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    Global(GlobalId),
    Size(ContainerId),
}

impl Schema {
    /// `models` says the model of some shared variables, by name; the others are cached.
    pub fn new(cluster: &Cluster, sources: &SourceMap, models: &HashMap<String, Model>) -> Schema {
        let master = &cluster.master;
        let mut schema = Schema {
            name: master.name.clone(),
            identity: identity(sources),
            families: Vec::new(),
            shared: Vec::new(),
            properties: Vec::new(),
            seats: Vec::new(),
        };
        for remote in &master.membership.remotes {
            if let (None, NodeProperty::Variable(name)) = (&remote.node, &remote.property) {
                let global = &master.globals[remote.global];
                schema.shared.push(SharedVariable {
                    name: name.clone(),
                    ty: global.ty,
                    initial: global.initial,
                    model: models.get(name).copied().unwrap_or_default(),
                });
            }
        }
        for (_, property) in &master.membership.properties {
            schema.add_property(property);
        }
        for remote in cluster.families.iter().flat_map(|it| &it.program.membership.remotes) {
            if let Some(node) = &remote.node {
                schema.add_property(&remote.property);
                schema.add_seat(node, master);
            }
        }
        for family in &cluster.families {
            let described = schema.family(&family.name, family.expects, &family.program);
            schema.families.push(described);
        }
        schema
    }

    fn add_property(&mut self, property: &NodeProperty) {
        let own = match property {
            NodeProperty::Family => return,
            // An age is the receiver's to know; the variable itself must travel.
            NodeProperty::Age(name) => NodeProperty::Variable(name.clone()),
            property => property.clone(),
        };
        if !self.properties.contains(&own) {
            self.properties.push(own);
        }
    }

    fn add_seat(&mut self, name: &str, master: &Program) {
        let known = self.seats.iter().any(|(seat, _)| seat == name);
        let container = master.containers.iter().find(|(_, it)| it.name == name);
        if let (false, Some((id, _))) = (known, container) {
            self.seats.push((name.to_string(), id));
        }
    }

    fn family(&self, name: &str, expects: u32, program: &Program) -> FamilySchema {
        let remotes = &program.membership.remotes;
        let imports = remotes.iter().filter_map(|it| Some((it.global, self.source(it)?))).collect();
        let mut exports = Vec::new();
        let mut commands = Vec::new();
        for (number, property) in self.properties.iter().enumerate() {
            let number = number as Property;
            let container = |name: &str| {
                let found = program.containers.iter().find(|(_, container)| container.name == name);
                found.map(|(id, _)| id)
            };
            match property {
                NodeProperty::Variable(name) => {
                    let own = program.globals.iter().find(|(id, global)| {
                        global.name == *name
                            && !matches!(global.extent, Extent::Array(_))
                            && !remotes.iter().any(|remote| remote.global == *id)
                    });
                    exports.extend(own.map(|(id, _)| (number, Export::Global(id))));
                }
                NodeProperty::Size(name) => {
                    exports.extend(container(name).map(|id| (number, Export::Size(id))));
                }
                NodeProperty::Suspended(name) => {
                    commands.extend(container(name).map(|id| (number, id)));
                }
                NodeProperty::Family | NodeProperty::Age(_) => {}
            }
        }
        FamilySchema { name: name.to_string(), expects, imports, exports, commands }
    }

    fn source(&self, remote: &Remote) -> Option<Source> {
        let Some(node) = &remote.node else {
            return match &remote.property {
                NodeProperty::Variable(name) => Some(Source::Shared(self.shared(name)?)),
                NodeProperty::Age(_) => Some(Source::Age),
                _ => None,
            };
        };
        let seat = self.seats.iter().position(|(name, _)| name == node)? as u16;
        match &remote.property {
            NodeProperty::Family => Some(Source::Family(seat)),
            NodeProperty::Age(_) => Some(Source::Age),
            property => Some(Source::Of(seat, self.property(property)?)),
        }
    }

    /// What a node of a family says of itself where a gateway speaks for it: the text that it was
    /// made from, and its family.
    pub fn text(&self, family: usize) -> String {
        format!("{} {}", self.identity, self.families[family].name)
    }

    /// The number of a shared variable.
    pub fn shared(&self, name: &str) -> Option<Shared> {
        Some(self.shared.iter().position(|shared| shared.name == name)? as Shared)
    }

    pub fn property(&self, property: &NodeProperty) -> Option<Property> {
        Some(self.properties.iter().position(|known| known == property)? as Property)
    }

    pub fn family_number(&self, name: &str) -> Option<usize> {
        self.families.iter().position(|family| family.name == name)
    }

    /// Whether a start barrier holds threads back at first.
    pub fn expects_nodes(&self) -> bool {
        self.families.iter().any(|family| family.expects > 0)
    }

    pub fn shared_cell(&self, shared: Shared) -> Cell {
        Cell::from(shared)
    }

    /// The cell of the number of the node in a seat; -1 where none is.
    pub fn node_cell(&self, seat: u16) -> Cell {
        (self.shared.len() + usize::from(seat) * (self.properties.len() + 2)) as Cell
    }

    /// The cell of the family of the node in a seat; -1 where none is.
    pub fn family_cell(&self, seat: u16) -> Cell {
        self.node_cell(seat) + 1
    }

    pub fn property_cell(&self, seat: u16, property: Property) -> Cell {
        self.node_cell(seat) + 2 + Cell::from(property)
    }

    /// What the store holds before any node has come.
    pub fn initial_store(&self) -> Vec<Value> {
        let mut values: Vec<Value> = self.shared.iter().map(|shared| shared.initial).collect();
        for _ in &self.seats {
            values.extend([Value::Int(-1); 2]);
            values.extend(self.properties.iter().map(|_| Value::Int(0)));
        }
        values
    }
}

fn identity(sources: &SourceMap) -> String {
    let mut digest = Sha256::new();
    for source in sources.ids() {
        let text = sources.text(source);
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
