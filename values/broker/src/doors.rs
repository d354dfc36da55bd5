//! Doors: for each known user a socket beside the one for all, at which only that user's programs
//! connect (and root's). Connections wait to be accepted in the order in which they came, so
//! without a door one user's flood makes the programs of all others wait.
//!
//! Invariant: there are at most `most`. One that cannot be made is missing, and its user connects
//! where all do. Users that the machine names come first, so that nobody with many numbers takes
//! their doors.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use attune_linux::process;
use attune_values::socket::Listener;
use attune_values::wire;

const USERS: &str = "/etc/passwd";
/// A folder for each user that is logged in.
const LOGGED_IN: &str = "/run/user";

#[derive(Debug)]
pub struct Doors {
    /// The socket for all.
    common: Listener,
    path: PathBuf,
    most: usize,
    doors: BTreeMap<u32, Listener>,
}

impl Doors {
    /// Beside the socket for all, which is there. Only root makes doors for others; where somebody
    /// else runs the scheduler, all connect at the same place.
    pub fn new(common: Listener, path: &Path, most: usize) -> Doors {
        let most = if process::effective_user() == 0 && is_roots(&folder(path)) { most } else { 0 };
        let mut doors = Doors { common, path: path.to_owned(), most, doors: BTreeMap::new() };
        let numbers = |text: &str| text.split(':').nth(2)?.parse().ok();
        let named = fs::read_to_string(USERS).unwrap_or_default();
        let folders = fs::read_dir(LOGGED_IN).into_iter().flatten().flatten();
        let logged_in = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
        for user in [0].into_iter().chain(logged_in).chain(named.lines().filter_map(numbers)) {
            doors.open(user);
        }
        doors
    }

    /// The user has a door from now on, if there may be one more. True: it is new.
    pub fn open(&mut self, user: u32) -> bool {
        if self.doors.len() >= self.most {
            return false;
        }
        match self.doors.entry(user) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => match Listener::for_user(&self.path, user) {
                Ok(door) => {
                    entry.insert(door);
                    true
                }
                Err(_) => false,
            },
        }
    }

    pub fn common(&self) -> &Listener {
        &self.common
    }

    pub fn of(&self, user: u32) -> Option<&Listener> {
        self.doors.get(&user)
    }

    pub fn users(&self) -> impl Iterator<Item = u32> {
        self.doors.keys().copied()
    }
}

/// Where the doors beside that socket are.
fn folder(path: &Path) -> PathBuf {
    wire::door(path, 0).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// Whether nobody but root can put something else in a door's place, which is then given to a user.
/// The folder is made if it is not there.
fn is_roots(folder: &Path) -> bool {
    // What is wrong with it is seen next.
    let _ = DirBuilder::new().recursive(true).mode(0o755).create(folder);
    fs::symlink_metadata(folder)
        .is_ok_and(|about| about.is_dir() && about.uid() == 0 && about.mode() & 0o022 == 0)
}
