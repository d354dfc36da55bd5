//! The generator writes schedulers that are well typed and differ.

use std::collections::HashSet;

use attune_conformance::generator;
use attune_conformance::random::derive;
use attune_conformance::scheduler::Scheduler;

#[test]
fn generated_schedulers_are_well_typed() {
    let mut texts = HashSet::new();
    for number in 0..400 {
        let sources = generator::scheduler(derive(11, number), 6);
        if let Err(rejected) = Scheduler::new(&sources) {
            assert!(
                rejected.refuted_only,
                "{}\n{}",
                rejected.messages.join("\n"),
                sources.listing()
            );
        }
        assert!(texts.insert(sources.listing()), "the same scheduler twice");
    }
}
