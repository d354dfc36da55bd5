//! Every kind of container, with several foreach loops under way, in step with the model after
//! every command.

use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;

use crate::model::{CONTAINERS, CURSORS, Command, Model, THREADS};
use crate::{answers, driver};

static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| driver("containers", "gcc"));

fn command() -> impl Strategy<Value = Command> {
    // Few keys, so that many are equal; some at the ends of the range.
    let key = || prop_oneof![8 => -3..3i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    // Sorted containers are the ones worth filling.
    let container = || prop_oneof![1 => 0..CONTAINERS, 2 => prop::sample::select(vec![3, 4, 8, 9])];
    prop_oneof![
        6 => (0..THREADS, container(), key())
            .prop_map(|(thread, container, key)| Command::Move { thread, container, key }),
        2 => (0..THREADS).prop_map(|thread| Command::Remove { thread }),
        2 => (0..THREADS, key()).prop_map(|(thread, key)| Command::Key { thread, key }),
        2 => (0..CURSORS, container())
            .prop_map(|(cursor, container)| Command::Visit { cursor, container }),
        4 => (0..CURSORS).prop_map(|cursor| Command::Next { cursor }),
        1 => (0..CURSORS).prop_map(|cursor| Command::Leave { cursor }),
    ]
}

fn compare(commands: &[Command]) {
    let mut model = Model::default();
    let (mut input, mut expected) = (String::new(), String::new());
    for &command in commands {
        if model.allows(command) {
            input.push_str(&format!("{}\n", command.text()));
            expected.push_str(&format!("{}\n", model.run(command)));
        }
    }
    let said = answers(&DRIVER, input.clone());
    for ((command, said), expected) in input.lines().zip(said.lines()).zip(expected.lines()) {
        assert_eq!(said, expected, "after `{command}`");
    }
    assert_eq!(said.lines().count(), expected.lines().count());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn containers_and_cursors_follow_the_model(
        commands in prop::collection::vec(command(), 1..400),
    ) {
        compare(&commands);
    }
}

/// All insertions in one order, all removals in another: every shape of tree, and every rotation.
#[test]
fn a_sorted_container_keeps_its_order_whatever_leaves() {
    let mut commands = Vec::new();
    for round in 1..24usize {
        let order = |step: usize| (0..THREADS).map(move |i| (i * step + round) % THREADS);
        // Steps without a common factor with 24, and 24 less them, go through all threads.
        for step in [1, 5, 7, 11, 13, 17, 19, 23] {
            for container in [3, 4, 8, 9] {
                commands.extend(order(step).map(|thread| Command::Move {
                    thread,
                    container,
                    key: (thread * round % 9) as i64,
                }));
                commands.extend(order(24 - step).map(|thread| Command::Remove { thread }));
            }
        }
    }
    compare(&commands);
}

#[test]
fn a_body_may_move_the_thread_it_visits_and_the_next_ones() {
    let insert = |thread, container| Command::Move { thread, container, key: 0 };
    let mut commands: Vec<Command> = (0..6).map(|thread| insert(thread, 1)).collect();
    commands.push(Command::Visit { cursor: 0, container: 1 });
    commands.push(insert(0, 1)); // the visited one goes to the end and is not met again
    commands.push(insert(1, 2)); // the next one leaves
    commands.push(insert(2, 2)); // and the one behind it
    commands.push(insert(7, 1)); // a newcomer
    commands.push(Command::Visit { cursor: 1, container: 1 }); // a second loop sees all of them
    commands.extend([0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0].map(|cursor| Command::Next { cursor }));
    compare(&commands);
}
