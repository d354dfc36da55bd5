//! Doors: when a user has one, and that nobody needs one. What they are for is measured by `attune
//! lab run trust-flood`.

mod common;

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use attune_broker::{Broker, Memory};
use attune_values::socket::Connection;
use attune_values::wire;
use common::{all_is_well, become_user, is_root, open_to_all};

const KNOWN: u32 = 65_533;

#[test]
fn a_user_has_a_door_from_its_first_connection_on() {
    if !is_root() {
        return;
    }
    let (_folder, socket) = open_to_all();
    let broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    let door = wire::door(&socket, KNOWN);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            become_user(KNOWN);
            all_is_well(&socket);
            assert!(door.exists());
            let about = std::fs::metadata(&door).unwrap();
            assert_eq!((about.uid(), about.mode() & 0o777), (KNOWN, 0o600));
            all_is_well(&socket);
        });
    });
    drop(broker);
    assert!(!door.exists());
}

/// Where no engine listens any more, and where another one does that knows nobody.
#[test]
fn a_door_without_an_engine_keeps_nobody_out() {
    if !is_root() {
        return;
    }
    let (_folder, socket) = open_to_all();
    let door = wire::door(&socket, 0);
    // As an engine that was killed leaves it.
    std::fs::create_dir_all(door.parent().unwrap()).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&door).unwrap());
    assert!(Connection::to(&socket, Duration::from_secs(1)).is_err());
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    all_is_well(&socket);
    std::fs::remove_file(&door).unwrap();
    all_is_well(&socket);
}

/// In a folder of another user's, that user could put something else in a door's place.
#[test]
fn no_door_is_made_where_others_can_replace_it() {
    if !is_root() {
        return;
    }
    let (_folder, socket) = open_to_all();
    let door = wire::door(&socket, 0);
    let doors = door.parent().unwrap();
    std::fs::create_dir(doors).unwrap();
    std::os::unix::fs::chown(doors, Some(KNOWN), None).unwrap();
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    all_is_well(&socket);
    assert!(!door.exists());
}
