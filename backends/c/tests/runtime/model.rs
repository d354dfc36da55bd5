//! What the containers mean, said as plainly as possible: vectors, and a foreach that copies what
//! it will visit.

pub const THREADS: usize = 24;
pub const CONTAINERS: usize = 10;
pub const CURSORS: usize = 4;

#[derive(Clone, Copy, Debug)]
pub enum Command {
    Move {
        thread: usize,
        container: usize,
        key: i64,
    },
    Remove {
        thread: usize,
    },
    /// Assigns attribute 1, on which the first pqueue and the first pstack are sorted.
    Key {
        thread: usize,
        key: i64,
    },
    Visit {
        cursor: usize,
        container: usize,
    },
    Next {
        cursor: usize,
    },
    Leave {
        cursor: usize,
    },
}

impl Command {
    pub fn text(self) -> String {
        match self {
            Command::Move { thread, container, key } => format!("move {thread} {container} {key}"),
            Command::Remove { thread } => format!("remove {thread}"),
            Command::Key { thread, key } => format!("key {thread} {key}"),
            Command::Visit { cursor, container } => format!("visit {cursor} {container}"),
            Command::Next { cursor } => format!("next {cursor}"),
            Command::Leave { cursor } => format!("leave {cursor}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    thread: usize,
    key: i64,
    /// Every insertion has its own.
    insertion: u64,
}

#[derive(Default)]
pub struct Model {
    containers: [Vec<Entry>; CONTAINERS],
    /// Container and the entries still to visit, in order.
    cursors: [Option<(usize, Vec<Entry>)>; CURSORS],
    insertions: u64,
}

impl Model {
    /// Whether the runtime may be asked for it: a threadref has room for one.
    pub fn allows(&self, command: Command) -> bool {
        match command {
            Command::Move { thread, container, .. } => {
                !container.is_multiple_of(5)
                    || self.containers[container].iter().all(|entry| entry.thread == thread)
            }
            _ => true,
        }
    }

    /// What the driver prints.
    pub fn run(&mut self, command: Command) -> String {
        let visited = match command {
            Command::Move { thread, container, key } => {
                self.remove(thread);
                self.insert(thread, container, key);
                None
            }
            Command::Remove { thread } => {
                self.remove(thread);
                None
            }
            Command::Key { thread, key } => {
                if let Some(container @ (3 | 4)) = self.home(thread) {
                    self.remove(thread);
                    self.insert(thread, container, key);
                }
                None
            }
            Command::Visit { cursor, container } => {
                self.cursors[cursor] = Some((container, self.containers[container].clone()));
                Some(self.next(cursor))
            }
            Command::Next { cursor } => Some(self.next(cursor)),
            Command::Leave { cursor } => {
                self.cursors[cursor] = None;
                None
            }
        };
        let mut text = match visited {
            None => ".".to_string(),
            Some(None) => "-".to_string(),
            Some(Some(thread)) => thread.to_string(),
        };
        for (number, container) in self.containers.iter().enumerate() {
            text.push_str(&format!(" | {number}:"));
            container.iter().for_each(|entry| text.push_str(&format!(" {}", entry.thread)));
        }
        text
    }

    fn home(&self, thread: usize) -> Option<usize> {
        self.containers
            .iter()
            .position(|container| container.iter().any(|entry| entry.thread == thread))
    }

    fn remove(&mut self, thread: usize) {
        self.containers
            .iter_mut()
            .for_each(|container| container.retain(|entry| entry.thread != thread));
    }

    fn insert(&mut self, thread: usize, container: usize, key: i64) {
        self.insertions += 1;
        let entry = Entry { thread, key, insertion: self.insertions };
        let lowest = container >= 5;
        let entries = &mut self.containers[container];
        // Whether an entry that is there stays in front of the new one.
        let stays = |there: &Entry| match container % 5 {
            0 | 1 => true,
            2 => false,
            _ if there.key == key => container % 5 == 3,
            _ => (there.key < key) == lowest,
        };
        let at = entries.iter().position(|there| !stays(there)).unwrap_or(entries.len());
        entries.insert(at, entry);
    }

    /// The next of those that were there at the start and have stayed since.
    fn next(&mut self, cursor: usize) -> Option<usize> {
        let (container, rest) = self.cursors[cursor].as_mut()?;
        while !rest.is_empty() {
            let entry = rest.remove(0);
            if self.containers[*container].contains(&entry) {
                return Some(entry.thread);
            }
        }
        self.cursors[cursor] = None;
        None
    }
}
