//! What is given to whom: pages to processes, words to names, rows to threads. No waiting and no sockets here.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use attune_values::page::{Page, ROWS, WORDS};
use attune_values::wire::{NAME, Refusal, Reply};

use crate::control::Control;
use crate::process::{self, Process};
use crate::store::Store;

/// What is refused, and why.
pub struct Refused(Refusal, String);

pub type Answer<T> = Result<T, Refused>;

impl Refused {
    pub fn new(why: Refusal, message: impl Into<String>) -> Refused {
        Refused(why, message.into())
    }
}

impl From<Refused> for Reply {
    fn from(Refused(why, message): Refused) -> Reply {
        Reply::Refused { why, message }
    }
}

/// The page of one process.
struct Account {
    slot: u32,
    user: u32,
    process: Process,
    memory: OwnedFd,
    page: Page,
    /// Import to word.
    words: BTreeMap<usize, u8>,
    /// Row to thread.
    rows: BTreeMap<u16, i32>,
    /// What the process itself named: words and rows. The others hold hints.
    own_words: BTreeSet<u8>,
    own_rows: BTreeSet<u16>,
    /// The process itself supplies values.
    own: bool,
    /// Somebody gave hints.
    hinted: bool,
}

pub struct Desk<S: Store> {
    store: S,
    accounts: BTreeMap<i32, Account>,
}

impl<S: Store> Desk<S> {
    pub fn new(store: S) -> Desk<S> {
        Desk { store, accounts: BTreeMap::new() }
    }

    pub fn store(&self) -> &S {
        &self.store
    }

    /// Who answers for the engine, if `caller` (a user) may ask.
    pub fn control(&mut self, caller: u32) -> Answer<&mut dyn Control> {
        let scheduler = self.store.scheduler().to_owned();
        let control = self.store.control();
        let control = control.ok_or_else(|| {
            Refused::new(
                Refusal::Unable,
                format!("{scheduler} runs in an engine that cannot be set or looked at"),
            )
        })?;
        match caller == 0 || caller == control.owner() {
            true => Ok(control),
            false => Err(Refused::new(
                Refusal::Forbidden,
                format!(
                    "this run of {scheduler} is another user's: only they and root may look at it and set it"
                ),
            )),
        }
    }

    /// Processes with a page, for whoever waits for their ends.
    pub fn processes(&self) -> impl Iterator<Item = (i32, &Process)> {
        self.accounts.iter().map(|(number, account)| (*number, &account.process))
    }

    /// The process has a page of its own from now on.
    pub fn welcome(&mut self, number: i32, user: u32, process: Process) -> Answer<BorrowedFd<'_>> {
        if !process.lives() {
            return Err(Refused::new(Refusal::NoSuchThread, "the process that connected has ended"));
        }
        // A second hello starts afresh, as after an exec.
        self.farewell(number);
        self.ensure(number, user, process)?;
        let account = self.accounts.get_mut(&number);
        let account = account.ok_or_else(|| Refused::new(Refusal::Full, "no page is left"))?;
        account.own = true;
        Ok(account.memory.as_fd())
    }

    /// The process supplies nothing any more; hints for it stay.
    pub fn farewell(&mut self, number: i32) {
        let Some(account) = self.accounts.get_mut(&number) else { return };
        if !account.hinted {
            return self.forget(number);
        }
        account.own = false;
        for row in std::mem::take(&mut account.own_rows) {
            account.unbind(&mut self.store, number, row);
        }
        for word in std::mem::take(&mut account.own_words) {
            account.withdraw(&mut self.store, word);
        }
    }

    /// The process has ended.
    pub fn forget(&mut self, number: i32) {
        if let Some(account) = self.accounts.remove(&number) {
            self.store.close(account.slot, number);
        }
    }

    pub fn declare(&mut self, number: i32, word: u8, name: &str) -> Answer<()> {
        let import = self.import(name)?;
        if !(1..WORDS).contains(&word.into()) {
            return Err(Refused::new(
                Refusal::Garbled,
                format!("there is no word {word}: 1 to {}", WORDS - 1),
            ));
        }
        let account = own(&mut self.accounts, number)?;
        account.declare(&mut self.store, import, word)?;
        account.own_words.insert(word);
        Ok(())
    }

    pub fn bind(&mut self, number: i32, row: u16, thread: i32) -> Answer<()> {
        if !(1..ROWS).contains(&row.into()) {
            return Err(Refused::new(Refusal::Garbled, format!("there is no row {row}: 1 to {}", ROWS - 1)));
        }
        let account = own(&mut self.accounts, number)?;
        account.bind(&mut self.store, number, row, thread)?;
        account.own_rows.insert(row);
        Ok(())
    }

    pub fn unbind(&mut self, number: i32, row: u16) -> Answer<()> {
        let account = own(&mut self.accounts, number)?;
        account.own_rows.remove(&row);
        account.unbind(&mut self.store, number, row);
        Ok(())
    }

    /// Values that `caller` (a user) gives for a process or one of its threads.
    pub fn hint(
        &mut self,
        caller: u32,
        number: i32,
        thread: Option<i32>,
        values: &[(String, Option<i64>)],
    ) -> Answer<()> {
        let none = || Refused::new(Refusal::NoSuchThread, format!("there is no process {number}"));
        let process = Process::open(number).map_err(|_| none())?;
        let user = process::user(number).map_err(|_| none())?;
        if caller != 0 && caller != user {
            return Err(Refused::new(
                Refusal::Forbidden,
                format!("process {number} belongs to another user"),
            ));
        }
        if !process.lives() {
            return Err(none());
        }
        let imports = values.iter().map(|(name, _)| self.import(name)).collect::<Answer<Vec<_>>>()?;
        self.ensure(number, user, process)?;
        let account = self.accounts.get_mut(&number).ok_or_else(none)?;
        account.hinted = true;
        let row = match thread {
            Some(thread) => account.row_for(&mut self.store, number, thread)?,
            None => 0,
        };
        for (import, (_, value)) in imports.into_iter().zip(values) {
            let word = account.word_for(&mut self.store, import)?;
            account.page.set(row.into(), word.into(), *value);
        }
        Ok(())
    }

    fn import(&self, name: &str) -> Answer<usize> {
        self.store.imports().iter().position(|import| import.name == name).ok_or_else(|| {
            let name: String = name.chars().take(NAME).collect();
            let message = format!("{} has no thread import named {name}", self.store.scheduler());
            Refused::new(Refusal::UnknownImport, message)
        })
    }

    /// There is an account of the process, which lives.
    fn ensure(&mut self, number: i32, user: u32, process: Process) -> Answer<()> {
        if self.accounts.get(&number).is_some_and(|account| !account.process.lives()) {
            self.forget(number);
        }
        if !self.accounts.contains_key(&number) {
            let account = self.opened(number, user, process)?;
            self.accounts.insert(number, account);
        }
        Ok(())
    }

    fn opened(&mut self, number: i32, user: u32, process: Process) -> Answer<Account> {
        let slots = self.store.slots();
        let theirs = self.accounts.values().filter(|account| account.user == user).count();
        if user != 0 && theirs >= (slots as usize / 4).max(1) {
            return Err(Refused::new(Refusal::Full, "this user's processes have a quarter of all pages"));
        }
        let taken: Vec<u32> = self.accounts.values().map(|account| account.slot).collect();
        let slot = (0..slots).find(|slot| !taken.contains(slot));
        let slot = slot.ok_or_else(|| match slots {
            0 => {
                let message = format!("{} has no thread imports", self.store.scheduler());
                Refused::new(Refusal::UnknownImport, message)
            }
            _ => Refused::new(Refusal::Full, format!("all {slots} pages are taken")),
        })?;
        let memory = self.store.open(slot, number).map_err(unable)?;
        let page =
            Page::of(memory.as_fd()).inspect_err(|_| self.store.close(slot, number)).map_err(unable)?;
        Ok(Account {
            slot,
            user,
            process,
            memory,
            page,
            words: BTreeMap::new(),
            rows: BTreeMap::new(),
            own_words: BTreeSet::new(),
            own_rows: BTreeSet::new(),
            own: false,
            hinted: false,
        })
    }
}

fn own(accounts: &mut BTreeMap<i32, Account>, number: i32) -> Answer<&mut Account> {
    match accounts.get_mut(&number) {
        Some(account) if account.own && account.process.lives() => Ok(account),
        _ => Err(Refused::new(Refusal::Garbled, "hello comes first")),
    }
}

fn unable(error: io::Error) -> Refused {
    Refused::new(Refusal::Full, format!("no page can be had: {error}"))
}

impl Account {
    fn declare(&mut self, store: &mut impl Store, import: usize, word: u8) -> Answer<()> {
        // What the word stood for so far is supplied no more.
        if self.words.get(&import) != Some(&word) {
            self.withdraw(store, word);
        }
        store.declare(self.slot, import, Some(word)).map_err(unable)?;
        self.words.insert(import, word);
        Ok(())
    }

    /// Nothing stands in the word any more.
    fn withdraw(&mut self, store: &mut impl Store, word: u8) {
        let imports: Vec<usize> =
            self.words.iter().filter(|(_, taken)| **taken == word).map(|(import, _)| *import).collect();
        for import in imports {
            self.words.remove(&import);
            // Should it fail, the word's values are gone all the same.
            let _ = store.declare(self.slot, import, None);
        }
        (0..ROWS).for_each(|row| self.page.set(row, word.into(), None));
    }

    fn unbind(&mut self, store: &mut impl Store, process: i32, row: u16) {
        if let Some(thread) = self.rows.remove(&row) {
            store.unbind(self.slot, process, thread);
            self.page.clear(row.into());
        }
    }

    fn bind(&mut self, store: &mut impl Store, process: i32, row: u16, thread: i32) -> Answer<()> {
        store.bind(self.slot, row, process, thread).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                Refused::new(Refusal::NoSuchThread, format!("process {process} has no thread {thread}"))
            }
            _ => unable(error),
        })?;
        let earlier = self.rows.iter().find(|(other, bound)| **bound == thread && **other != row);
        if let Some(earlier) = earlier.map(|(row, _)| *row) {
            self.rows.remove(&earlier);
        }
        if let Some(before) = self.rows.insert(row, thread).filter(|before| *before != thread) {
            store.unbind(self.slot, process, before);
        }
        Ok(())
    }

    /// The import's word; a new one from the end, where the process's own come last.
    fn word_for(&mut self, store: &mut impl Store, import: usize) -> Answer<u8> {
        if let Some(word) = self.words.get(&import) {
            return Ok(*word);
        }
        let free = (1..WORDS as u8).rev().find(|word| !self.words.values().any(|taken| taken == word));
        let word = free.ok_or_else(|| Refused::new(Refusal::Full, "all words of its page are taken"))?;
        self.declare(store, import, word)?;
        Ok(word)
    }

    /// The thread's row; a new one from the end.
    fn row_for(&mut self, store: &mut impl Store, process: i32, thread: i32) -> Answer<u16> {
        if let Some((row, _)) = self.rows.iter().find(|(_, bound)| **bound == thread) {
            return Ok(*row);
        }
        let gone = |thread: i32| !std::path::Path::new(&format!("/proc/{process}/task/{thread}")).exists();
        let free = (1..ROWS as u16).rev().find(|row| self.rows.get(row).is_none_or(|thread| gone(*thread)));
        let row = free.ok_or_else(|| Refused::new(Refusal::Full, "all rows of its page are taken"))?;
        self.page.clear(row.into());
        self.bind(store, process, row, thread)?;
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    /// A process that waits until it is told to end.
    struct Sleeper(std::process::Child);

    impl Sleeper {
        fn new() -> Sleeper {
            let mut command = std::process::Command::new("cat");
            let piped = std::process::Stdio::piped;
            Sleeper(command.stdin(piped()).stdout(piped()).spawn().unwrap())
        }

        fn number(&self) -> i32 {
            self.0.id() as i32
        }

        fn process(&self) -> Process {
            Process::open(self.number()).unwrap()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn why(answer: Answer<()>) -> Option<Refusal> {
        answer.err().map(|Refused(why, _)| why)
    }

    fn desk(slots: u32) -> (Desk<Memory>, Memory) {
        let memory = Memory::new(&[("urgent", 0), ("deadline", 7)], slots);
        (Desk::new(memory.clone()), memory)
    }

    #[test]
    fn hints_are_for_the_owner_and_for_root() {
        let (mut desk, memory) = desk(8);
        let sleeper = Sleeper::new();
        let number = sleeper.number();
        let values = [("urgent".to_owned(), Some(3))];
        let owner = process::user(number).unwrap();
        assert_eq!(why(desk.hint(owner + 12345, number, None, &values)), Some(Refusal::Forbidden));
        assert_eq!(memory.value(number, number, "urgent"), Some(0));
        assert_eq!(why(desk.hint(owner, number, None, &values)), None);
        assert_eq!(memory.value(number, number, "urgent"), Some(3));
        assert_eq!(memory.value(number, number, "deadline"), Some(7));
        assert_eq!(why(desk.hint(0, number, Some(number), &[("urgent".to_owned(), Some(4))])), None);
        assert_eq!(memory.value(number, number, "urgent"), Some(4));
        assert_eq!(why(desk.hint(0, number, Some(number), &[("urgent".to_owned(), None)])), None);
        assert_eq!(memory.value(number, number, "urgent"), Some(3));
        let unknown = [("urgant".to_owned(), Some(3))];
        assert_eq!(why(desk.hint(0, number, None, &unknown)), Some(Refusal::UnknownImport));
        assert_eq!(why(desk.hint(0, number, Some(1), &values)), Some(Refusal::NoSuchThread));
        assert_eq!(why(desk.hint(0, i32::MAX, None, &values)), Some(Refusal::NoSuchThread));
    }

    #[test]
    fn a_process_that_leaves_takes_its_values_along_but_not_the_hints() {
        let (mut desk, memory) = desk(8);
        let sleeper = Sleeper::new();
        let number = sleeper.number();
        assert_eq!(why(desk.hint(0, number, None, &[("urgent".to_owned(), Some(3))])), None);
        let page = desk.welcome(number, 1000, sleeper.process()).map(|fd| Page::of(fd).unwrap());
        let page = page.ok().unwrap();
        assert_eq!(why(desk.declare(number, 1, "deadline")), None);
        assert_eq!(why(desk.bind(number, 1, number)), None);
        page.set(1, 1, Some(99));
        assert_eq!(memory.value(number, number, "deadline"), Some(99));
        desk.farewell(number);
        assert_eq!(memory.value(number, number, "deadline"), Some(7));
        assert_eq!(memory.value(number, number, "urgent"), Some(3));
        assert!(memory.threads(number).is_empty());
    }

    #[test]
    fn nobody_binds_threads_of_others() {
        let (mut desk, memory) = desk(8);
        let (mine, victim) = (Sleeper::new(), Sleeper::new());
        assert!(desk.welcome(mine.number(), 1000, mine.process()).is_ok());
        assert_eq!(why(desk.bind(mine.number(), 1, victim.number())), Some(Refusal::NoSuchThread));
        assert_eq!(why(desk.bind(mine.number(), 0, mine.number())), Some(Refusal::Garbled));
        assert_eq!(why(desk.bind(mine.number(), 512, mine.number())), Some(Refusal::Garbled));
        assert_eq!(why(desk.declare(mine.number(), 16, "urgent")), Some(Refusal::Garbled));
        assert_eq!(why(desk.declare(victim.number(), 1, "urgent")), Some(Refusal::Garbled));
        assert_eq!(memory.processes(), [mine.number()]);
    }

    #[test]
    fn one_user_cannot_take_all_pages() {
        let (mut desk, memory) = desk(8);
        let sleepers: Vec<Sleeper> = (0..4).map(|_| Sleeper::new()).collect();
        let full = |answer: Answer<BorrowedFd>| answer.err().map(|Refused(why, _)| why);
        for sleeper in &sleepers[..2] {
            assert_eq!(full(desk.welcome(sleeper.number(), 1000, sleeper.process())), None);
        }
        let third = &sleepers[2];
        assert_eq!(full(desk.welcome(third.number(), 1000, third.process())), Some(Refusal::Full));
        assert_eq!(full(desk.welcome(third.number(), 1001, third.process())), None);
        assert_eq!(memory.processes().len(), 3);
    }

    #[test]
    fn a_process_that_has_ended_gets_nothing() {
        let (mut desk, memory) = desk(8);
        let sleeper = Sleeper::new();
        let (number, process) = (sleeper.number(), sleeper.process());
        drop(sleeper);
        assert!(desk.welcome(number, 1000, process).is_err());
        assert!(memory.processes().is_empty());
    }

    #[test]
    fn a_word_stands_for_one_import_at_a_time() {
        let (mut desk, memory) = desk(8);
        let sleeper = Sleeper::new();
        let number = sleeper.number();
        let page = desk.welcome(number, 1000, sleeper.process()).map(|fd| Page::of(fd).unwrap());
        let page = page.ok().unwrap();
        assert_eq!(why(desk.declare(number, 1, "urgent")), None);
        page.set(0, 1, Some(5));
        assert_eq!(why(desk.declare(number, 1, "deadline")), None);
        assert_eq!(memory.value(number, number, "urgent"), Some(0));
        assert_eq!(memory.value(number, number, "deadline"), Some(7));
        page.set(0, 1, Some(6));
        assert_eq!(memory.value(number, number, "deadline"), Some(6));
    }

    #[test]
    fn only_the_owner_and_root_look_and_set() {
        let (mut plain, _) = desk(8);
        assert_eq!(why(plain.control(0).map(|_| ())), Some(Refusal::Unable));
        let mut desk = Desk::new(crate::memory::Memory::new(&[], 0).owned_by(1000));
        assert_eq!(why(desk.control(1001).map(|_| ())), Some(Refusal::Forbidden));
        for user in [0, 1000] {
            let tunables = desk.control(user).map(|control| control.tunables()).ok().unwrap();
            assert_eq!(tunables[0].value, 7);
        }
    }
}
