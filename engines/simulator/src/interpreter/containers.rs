//! The containers of a running scheduler: every thread sits in at most one of them.
//!
//! ```text
//!   head.first -> [thread] <-> [thread] <-> [thread] <- head.last      in order, for every kind
//!                               /      \
//!                        a treap over the same threads, for sorted kinds only
//! ```
//!
//! Invariants: a thread's node is linked exactly when `home` is not [`NONE`]; the list of a sorted
//! container is the in-order walk of its treap; parents have higher priority than their children;
//! stamps grow along insertions. Containers and threads are dense numbers; nothing is allocated
//! once a thread's node exists.

/// No thread, no container.
pub(super) const NONE: u32 = u32::MAX;

/// Where an insertion puts a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    /// `stack`.
    Front,
    /// `queue`, `threadref`.
    Back,
    /// `pqueue`: by key, behind its equals.
    SortedBehind,
    /// `pstack`: by key, before its equals.
    SortedBefore,
}

#[derive(Clone, Debug)]
struct Head {
    discipline: Discipline,
    first: u32,
    last: u32,
    root: u32,
    size: u32,
    /// The number of threads inside that may not run everywhere.
    pinned: u32,
}

#[derive(Clone, Debug)]
struct Node {
    home: u32,
    previous: u32,
    next: u32,
    left: u32,
    right: u32,
    parent: u32,
    /// Smaller comes first.
    key: i64,
    /// The number of the insertion.
    stamp: u64,
    priority: u32,
    pinned: bool,
}

const UNLINKED: Node = Node {
    home: NONE,
    previous: NONE,
    next: NONE,
    left: NONE,
    right: NONE,
    parent: NONE,
    key: 0,
    stamp: 0,
    priority: 0,
    pinned: false,
};

/// A running `foreach`.
#[derive(Clone, Debug)]
struct Cursor {
    /// The thread that it looks at next.
    next: u32,
    /// It visits threads inserted up to this stamp.
    until: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Containers {
    heads: Vec<Head>,
    nodes: Vec<Node>,
    cursors: Vec<Cursor>,
    stamp: u64,
}

impl Containers {
    pub fn new(disciplines: impl Iterator<Item = Discipline>) -> Containers {
        let head = |discipline| Head {
            discipline,
            first: NONE,
            last: NONE,
            root: NONE,
            size: 0,
            pinned: 0,
        };
        Containers { heads: disciplines.map(head).collect(), ..Containers::default() }
    }

    /// Makes room for threads up to this one; it sits in no container.
    pub fn add_thread(&mut self, thread: u32) {
        if self.nodes.len() <= thread as usize {
            self.nodes.resize(thread as usize + 1, UNLINKED);
        }
        self.remove(thread);
        self.nodes[thread as usize] = UNLINKED;
    }

    pub fn home(&self, thread: u32) -> u32 {
        self.nodes[thread as usize].home
    }

    pub fn size(&self, container: u32) -> u32 {
        self.heads[container as usize].size
    }

    /// [`NONE`] if it is empty.
    pub fn first(&self, container: u32) -> u32 {
        self.heads[container as usize].first
    }

    /// The one behind it in its container, or [`NONE`].
    pub fn next(&self, thread: u32) -> u32 {
        self.nodes[thread as usize].next
    }

    pub fn threads(&self, container: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |thread: u32| (thread != NONE).then_some(thread);
        std::iter::successors(some(self.first(container)), move |&thread| some(self.next(thread)))
    }

    pub fn pinned(&self, container: u32) -> u32 {
        self.heads[container as usize].pinned
    }

    /// Notes whether the thread may run on some CPUs only.
    pub fn set_pinned(&mut self, thread: u32, pinned: bool) {
        let node = &mut self.nodes[thread as usize];
        if node.pinned != pinned {
            node.pinned = pinned;
            if let Some(head) = self.heads.get_mut(node.home as usize) {
                head.pinned = if pinned { head.pinned + 1 } else { head.pinned - 1 };
            }
        }
    }

    pub fn is_pinned(&self, thread: u32) -> bool {
        self.nodes[thread as usize].pinned
    }

    /// Puts a thread that sits nowhere into a container. `key` matters to sorted ones.
    pub fn insert(&mut self, container: u32, thread: u32, key: i64) {
        self.stamp += 1;
        let stamp = self.stamp;
        let head = &mut self.heads[container as usize];
        let node = &mut self.nodes[thread as usize];
        head.size += 1;
        head.pinned += u32::from(node.pinned);
        node.home = container;
        node.key = key;
        node.stamp = stamp;
        match head.discipline {
            Discipline::Front => {
                let behind = head.first;
                self.link(container, thread, NONE, behind);
            }
            Discipline::Back => {
                let before = head.last;
                self.link(container, thread, before, NONE);
            }
            Discipline::SortedBehind => {
                self.insert_sorted(container, thread, |key, other| key < other)
            }
            Discipline::SortedBefore => {
                self.insert_sorted(container, thread, |key, other| key <= other)
            }
        }
    }

    /// Takes a thread out of whatever container it sits in.
    pub fn remove(&mut self, thread: u32) {
        let node = &self.nodes[thread as usize];
        let (container, previous, next) = (node.home, node.previous, node.next);
        if container == NONE {
            return;
        }
        for cursor in &mut self.cursors {
            if cursor.next == thread {
                cursor.next = next;
            }
        }
        let head = &mut self.heads[container as usize];
        head.size -= 1;
        head.pinned -= u32::from(node.pinned);
        if head.root != NONE {
            self.unroot(container, thread);
        }
        let head = &mut self.heads[container as usize];
        match previous {
            NONE => head.first = next,
            _ => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => head.last = previous,
            _ => self.nodes[next as usize].previous = previous,
        }
        let node = &mut self.nodes[thread as usize];
        node.home = NONE;
        node.previous = NONE;
        node.next = NONE;
    }

    /// Starts a `foreach`; returns its number. [`Containers::close`] ends it.
    pub fn open(&mut self, container: u32) -> usize {
        self.cursors.push(Cursor { next: self.first(container), until: self.stamp });
        self.cursors.len() - 1
    }

    /// The next thread of a `foreach`, or [`NONE`].
    pub fn advance(&mut self, cursor: usize) -> u32 {
        let Some(cursor) = self.cursors.get_mut(cursor) else { return NONE };
        let mut thread = cursor.next;
        while thread != NONE && self.nodes[thread as usize].stamp > cursor.until {
            thread = self.nodes[thread as usize].next;
        }
        cursor.next = if thread == NONE { NONE } else { self.nodes[thread as usize].next };
        thread
    }

    /// Ends a `foreach` and those inside it.
    pub fn close(&mut self, cursor: usize) {
        self.cursors.truncate(cursor);
    }

    fn link(&mut self, container: u32, thread: u32, previous: u32, next: u32) {
        let node = &mut self.nodes[thread as usize];
        node.previous = previous;
        node.next = next;
        let head = &mut self.heads[container as usize];
        match previous {
            NONE => head.first = thread,
            _ => self.nodes[previous as usize].next = thread,
        }
        match next {
            NONE => head.last = thread,
            _ => self.nodes[next as usize].previous = thread,
        }
    }

    /// `goes_left(key, other)`: whether a new key belongs before an old one.
    fn insert_sorted(&mut self, container: u32, thread: u32, goes_left: impl Fn(i64, i64) -> bool) {
        let (mut previous, mut next) = (NONE, NONE);
        let mut at = self.heads[container as usize].root;
        let mut parent = NONE;
        let key = self.nodes[thread as usize].key;
        while at != NONE {
            parent = at;
            let node = &self.nodes[at as usize];
            if goes_left(key, node.key) {
                next = at;
                at = node.left;
            } else {
                previous = at;
                at = node.right;
            }
        }
        self.link(container, thread, previous, next);
        let node = &mut self.nodes[thread as usize];
        node.left = NONE;
        node.right = NONE;
        node.parent = parent;
        node.priority = scatter(node.stamp);
        match parent {
            NONE => self.heads[container as usize].root = thread,
            _ if parent == next => self.nodes[parent as usize].left = thread,
            _ => self.nodes[parent as usize].right = thread,
        }
        self.rise(container, thread);
    }

    /// Rotates a thread up until its parent has a higher priority.
    fn rise(&mut self, container: u32, thread: u32) {
        loop {
            let node = &self.nodes[thread as usize];
            let parent = node.parent;
            if parent == NONE || self.nodes[parent as usize].priority >= node.priority {
                return;
            }
            self.rotate_up(container, thread);
        }
    }

    /// Takes a thread out of the treap: rotated down until one child is missing, the other takes
    /// its place.
    fn unroot(&mut self, container: u32, thread: u32) {
        loop {
            let Node { left, right, .. } = self.nodes[thread as usize];
            if left == NONE || right == NONE {
                self.replace(container, thread, if left == NONE { right } else { left });
                return;
            }
            let (left_priority, right_priority) =
                (self.nodes[left as usize].priority, self.nodes[right as usize].priority);
            self.rotate_up(container, if left_priority >= right_priority { left } else { right });
        }
    }

    /// Exchanges a thread with its parent, keeping the order.
    fn rotate_up(&mut self, container: u32, thread: u32) {
        let Node { left, right, parent, .. } = self.nodes[thread as usize];
        let inner;
        if self.nodes[parent as usize].left == thread {
            inner = right;
            self.nodes[thread as usize].right = parent;
            self.nodes[parent as usize].left = inner;
        } else {
            inner = left;
            self.nodes[thread as usize].left = parent;
            self.nodes[parent as usize].right = inner;
        }
        if inner != NONE {
            self.nodes[inner as usize].parent = parent;
        }
        self.replace(container, parent, thread);
        self.nodes[parent as usize].parent = thread;
    }

    /// Puts `new` (or nothing) where `old` hangs.
    fn replace(&mut self, container: u32, old: u32, new: u32) {
        let parent = self.nodes[old as usize].parent;
        match parent {
            NONE => self.heads[container as usize].root = new,
            _ => {
                let parent = &mut self.nodes[parent as usize];
                if parent.left == old { parent.left = new } else { parent.right = new }
            }
        }
        if new != NONE {
            self.nodes[new as usize].parent = parent;
        }
    }
}

/// A priority that has nothing to do with the order of insertions.
fn scatter(stamp: u64) -> u32 {
    (super::random::mix(stamp) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(discipline: Discipline, threads: u32) -> Containers {
        let mut containers = Containers::new([discipline, Discipline::Back].into_iter());
        (0..threads).for_each(|thread| containers.add_thread(thread));
        containers
    }

    fn height(containers: &Containers, at: u32) -> u32 {
        if at == NONE {
            return 0;
        }
        let node = &containers.nodes[at as usize];
        1 + height(containers, node.left).max(height(containers, node.right))
    }

    fn in_order(containers: &Containers, at: u32, into: &mut Vec<u32>) {
        if at != NONE {
            let node = &containers.nodes[at as usize];
            in_order(containers, node.left, into);
            into.push(at);
            in_order(containers, node.right, into);
        }
    }

    /// Against a sorted vector, over insertions and removals at every position.
    #[test]
    fn sorted_containers_order_like_a_stable_sort() {
        for discipline in [Discipline::SortedBehind, Discipline::SortedBefore] {
            let mut containers = sorted(discipline, 300);
            let mut model: Vec<(i64, u32)> = Vec::new();
            let mut random = crate::interpreter::random::Random::new(7);
            for _ in 0..5000 {
                let thread = random.below(300) as u32;
                let key = random.below(20);
                containers.remove(thread);
                model.retain(|&(_, other)| other != thread);
                if random.below(3) > 0 {
                    containers.insert(0, thread, key);
                    let at = match discipline {
                        Discipline::SortedBehind => {
                            model.partition_point(|&(other, _)| other <= key)
                        }
                        _ => model.partition_point(|&(other, _)| other < key),
                    };
                    model.insert(at, (key, thread));
                }
                let expected: Vec<u32> = model.iter().map(|&(_, thread)| thread).collect();
                assert_eq!(containers.threads(0).collect::<Vec<_>>(), expected);
                let mut walked = Vec::new();
                in_order(&containers, containers.heads[0].root, &mut walked);
                assert_eq!(walked, expected);
                assert_eq!(containers.size(0) as usize, expected.len());
            }
        }
    }

    #[test]
    fn a_sorted_container_stays_balanced_under_ordered_insertions() {
        let mut containers = sorted(Discipline::SortedBehind, 4096);
        (0..4096).for_each(|thread| containers.insert(0, thread, thread.into()));
        let height = height(&containers, containers.heads[0].root);
        assert!(height < 48, "height {height} for 4096 threads");
    }

    #[test]
    fn a_foreach_visits_what_was_inside_and_stayed() {
        let mut containers = sorted(Discipline::SortedBehind, 6);
        (0..4).for_each(|thread| containers.insert(0, thread, 10));
        let cursor = containers.open(0);
        assert_eq!(containers.advance(cursor), 0);
        containers.remove(1); // the one that the cursor points to
        containers.insert(0, 4, 10); // came in since
        containers.remove(3); // left and came back
        containers.insert(0, 3, 10);
        assert_eq!(containers.advance(cursor), 2);
        assert_eq!(containers.advance(cursor), NONE);
        containers.close(cursor);
    }
}
