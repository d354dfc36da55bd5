//! Small clusters for tests.

#![allow(dead_code)] // Each test file uses some of it.

use std::collections::HashMap;
use std::sync::Arc;

use attune_cluster::manager::Texts;
use attune_cluster::{Master, Node};
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};
use attune_replica::schema::Model;
use attune_replica::{Replica, Schema};
use attune_simulator::interpreter::{self, Interpreter};
use attune_simulator::scheduler::Scheduler;

pub struct Fixture {
    pub checked: Checked,
    pub schema: Arc<Schema>,
}

/// Checks a master, the first of the files, which must have no errors.
pub fn fixture(files: &[(&str, &str)], models: &[(&str, Model)]) -> Fixture {
    let source = SourceText { name: files[0].0.to_string(), text: files[0].1.to_string() };
    let mut loader = files;
    let checked = check(&source, &mut loader, &Options::default());
    assert!(!checked.has_errors(), "{:#?}", checked.diagnostics);
    let models: HashMap<String, Model> =
        models.iter().map(|(name, model)| (name.to_string(), *model)).collect();
    let cluster = checked.cluster.as_ref().expect("a master");
    let schema = Arc::new(Schema::new(cluster, &checked.sources, &models));
    Fixture { schema, checked }
}

impl Fixture {
    pub fn master(&self) -> Master {
        let cluster = self.checked.cluster.as_ref().expect("a master");
        Master::new(cluster, self.schema.clone(), &self.checked.sources, 1, 0).expect("it runs")
    }

    pub fn texts(&self) -> Texts<'_> {
        let cluster = self.checked.cluster.as_ref().expect("a master");
        Texts { cluster, sources: &self.checked.sources, seed: 1 }
    }

    /// A node of one CPU. `key` is its own.
    pub fn node(&self, family: &str, key: u64) -> Node {
        let number = self.schema.family_number(family).expect("a family");
        let program = &self.checked.cluster.as_ref().expect("a master").families[number].program;
        let policy = Interpreter::new(
            Arc::new(program.clone()),
            &self.checked.sources,
            interpreter::Options::default(),
        );
        let replica = Replica::new(self.schema.clone(), number, key);
        let mut node = Node::new(policy.expect("it runs"), replica);
        node.start(1, key);
        node
    }
}
