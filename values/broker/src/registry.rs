//! The registry: which process has which page, which word stands for which import, which row
//! belongs to which thread. It neither waits nor talks to sockets.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};

use attune_linux::process::{self, Process};
use attune_values::page::{ROWS, WORDS};
use attune_values::wire::{self, Import, NAME, Refusal};

use crate::account::Account;
use crate::control::Control;
use crate::kept::{Hint, Hints, Kept, Known};
use crate::refused::{Answer, Refused};
use crate::slots::Slots;
use crate::store::Store;
use crate::tables::Tables;

pub struct Registry<S: Store> {
    store: S,
    /// The user who runs the scheduler.
    owner: Option<u32>,
    accounts: BTreeMap<i32, Account>,
    slots: Slots,
    /// Processes that have been given a page since somebody asked.
    fresh: Vec<i32>,
    tables: Tables,
    hints: Hints,
}

impl<S: Store> Registry<S> {
    /// `most`: how many processes may have a page, even if the store has more.
    pub fn new(mut store: S, most: u32) -> Registry<S> {
        let slots = Slots::new(store.slots().min(most));
        let owner = store.control().map(|control| control.owner());
        Registry {
            store,
            owner,
            accounts: BTreeMap::new(),
            slots,
            fresh: Vec::new(),
            tables: Tables::default(),
            hints: Hints::default(),
        }
    }

    pub fn store(&self) -> &S {
        &self.store
    }

    /// The engine's control, if `caller` (a user) may ask for it.
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
                    "this run of {scheduler} is another user's: only that user and root may look \
                     at it and set it"
                ),
            )),
        }
    }

    /// A table that `caller` (a user) supplies: its number, and which of its columns are read.
    pub fn open_table(
        &mut self,
        caller: u32,
        map: OwnedFd,
        columns: &[Option<String>],
    ) -> Answer<(u32, Vec<String>)> {
        self.control(caller)?;
        self.tables.open(&mut self.store, map, columns)
    }

    pub fn close_table(&mut self, table: u32) {
        self.tables.close(&mut self.store, table);
    }

    /// Processes that have been given a page since the last call; the caller waits for their ends.
    pub fn fresh(&mut self) -> impl Iterator<Item = (i32, &Process)> {
        let fresh = std::mem::take(&mut self.fresh);
        let accounts = &self.accounts;
        fresh.into_iter().filter_map(|number| Some((number, &accounts.get(&number)?.process)))
    }

    /// The process seems to have ended. False: another one has its number by now.
    pub fn ended(&mut self, number: i32) -> bool {
        let ended = self.accounts.get(&number).is_some_and(|account| !account.process.lives());
        if ended {
            self.forget(number);
        }
        ended
    }

    /// The process has a page of its own from now on.
    pub fn welcome(&mut self, number: i32, user: u32, process: Process) -> Answer<BorrowedFd<'_>> {
        if !process.lives() {
            return Err(Refused::new(
                Refusal::NoSuchThread,
                "the process that connected has ended",
            ));
        }
        // A second hello starts afresh, as after an exec.
        self.farewell(number);
        self.ensure(number, user, process)?;
        let account = self.accounts.get_mut(&number);
        let account = account.ok_or_else(|| Refused::new(Refusal::Full, "no page is left"))?;
        account.own = true;
        Ok(account.page())
    }

    /// The process supplies nothing any more; hints for it stay.
    pub fn farewell(&mut self, number: i32) {
        let Some(account) = self.accounts.get_mut(&number) else { return };
        if !account.hinted || !self.store.reads(account.slot, number) {
            return self.forget(number);
        }
        account.forget_own(&mut self.store, number);
    }

    /// The process has ended, or the engine has given its page up.
    pub fn forget(&mut self, number: i32) {
        if let Some(account) = self.accounts.remove(&number) {
            if !account.process.lives() || !self.store.reads(account.slot, number) {
                self.hints.forget(number);
            }
            self.slots.give_back(account.slot, account.user);
            account.close(&mut self.store, number);
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
        let user = own(&mut self.accounts, &self.store, number)?.user;
        self.may_supply(user, import)?;
        let account = own(&mut self.accounts, &self.store, number)?;
        account.declare_own(&mut self.store, import, word)
    }

    pub fn bind(&mut self, number: i32, row: u16, thread: i32) -> Answer<()> {
        if !(1..ROWS).contains(&row.into()) {
            return Err(Refused::new(
                Refusal::Garbled,
                format!("there is no row {row}: 1 to {}", ROWS - 1),
            ));
        }
        let account = own(&mut self.accounts, &self.store, number)?;
        account.bind_own(&mut self.store, number, row, thread)
    }

    pub fn unbind(&mut self, number: i32, row: u16) -> Answer<()> {
        let account = own(&mut self.accounts, &self.store, number)?;
        account.unbind_own(&mut self.store, number, row);
        Ok(())
    }

    /// Values that `caller` (a user) gives for a process or one of its threads.
    pub fn hint(&mut self, caller: u32, hint: &wire::Hint) -> Answer<()> {
        let number = hint.process;
        let none = || no_process(number);
        let process = Process::open(number as u32).map_err(|_| none())?;
        let user = process::user_of(number as u32).map_err(|_| none())?;
        if caller != 0 && caller != user {
            return Err(Refused::new(
                Refusal::Forbidden,
                format!("process {number} belongs to another user"),
            ));
        }
        if !process.lives() {
            return Err(none());
        }
        let imports = self.hinted_imports(caller, hint)?;
        self.ensure(number, user, process)?;
        self.give(caller, hint, imports)
    }

    /// The same right after a hint for the same process was taken: only the rest is asked anew.
    pub fn hint_also(&mut self, caller: u32, hint: &wire::Hint) -> Answer<()> {
        let imports = self.hinted_imports(caller, hint)?;
        self.give(caller, hint, imports)
    }

    fn hinted_imports(&mut self, caller: u32, hint: &wire::Hint) -> Answer<Vec<usize>> {
        let imports: Vec<usize> =
            hint.values.iter().map(|(name, _)| self.import(name)).collect::<Answer<_>>()?;
        for import in &imports {
            self.may_supply(caller, *import)?;
        }
        Ok(imports)
    }

    fn give(&mut self, caller: u32, hint: &wire::Hint, imports: Vec<usize>) -> Answer<()> {
        let wire::Hint { process: number, thread, values } = hint;
        let (number, thread) = (*number, *thread);
        let account = self.accounts.get_mut(&number).ok_or_else(|| no_process(number))?;
        account.hinted = true;
        let row = match thread {
            Some(thread) => account.row_for(&mut self.store, number, thread)?,
            None => 0,
        };
        let numbers = values.iter().map(|(_, value)| *value);
        account.hint(&mut self.store, row, imports.into_iter().zip(numbers))?;
        for (name, value) in values {
            match value.zip(account.start) {
                Some((value, start)) => {
                    let (process, name) = ((number, start), name.clone());
                    self.hints.set(Hint { process, thread, name, value, giver: caller });
                }
                None => self.hints.unset(number, thread, name),
            }
        }
        Ok(())
    }

    /// Gives a hint again that an earlier engine was given, if the user who gave it still may. One
    /// that this scheduler has no import for is kept for the next.
    pub fn hint_again(&mut self, hint: &Hint) {
        let Hint { process: (process, _), thread, name, value, giver } = hint;
        let values = vec![(name.clone(), Some(*value))];
        let again = wire::Hint { process: *process, thread: *thread, values };
        if self.hint(*giver, &again).is_err() {
            self.hints.set(hint.clone());
        }
    }

    /// What the next engine needs to know.
    pub fn kept(&self) -> Kept {
        let own = self.accounts.iter().filter(|(_, account)| account.own);
        let known = |(number, account): (&i32, &Account)| {
            let (words, rows) = account.named();
            Some(Known { process: (*number, account.start?), words, rows })
        };
        Kept {
            clients: own.filter_map(known).collect(),
            hints: self.hints.all(|process| self.accounts.contains_key(&process)),
        }
    }

    /// Whether that process supplies again what it supplied before.
    pub fn has_come(&self, known: &Known) -> bool {
        self.accounts.get(&known.process.0).is_some_and(|account| {
            let (words, rows) = account.named();
            account.own && words >= known.words && rows >= known.rows
        })
    }

    fn import(&self, name: &str) -> Answer<usize> {
        self.store.imports().iter().position(|import| import.name == name).ok_or_else(|| {
            let name: String = name.chars().take(NAME).collect();
            let scheduler = self.store.scheduler();
            let message = format!("there is no thread import named {name} in {scheduler}");
            Refused::new(Refusal::UnknownImport, message)
        })
    }

    /// Whether programs of `user` may supply the import.
    fn may_supply(&mut self, user: u32, import: usize) -> Answer<()> {
        let Import { name, by_loader, .. } = &self.store.imports()[import];
        if !by_loader {
            return Ok(());
        }
        let message = format!(
            "only programs of root and of the user who runs {} may supply {name}",
            self.store.scheduler()
        );
        match self.is_preferred(user) {
            true => Ok(()),
            false => Err(Refused::new(Refusal::Forbidden, message)),
        }
    }

    /// There is an account of the process, which lives.
    fn ensure(&mut self, number: i32, user: u32, process: Process) -> Answer<()> {
        let stale =
            |account: &Account| !account.process.lives() || !self.store.reads(account.slot, number);
        if self.accounts.get(&number).is_some_and(stale) {
            self.forget(number);
        }
        if !self.accounts.contains_key(&number) {
            let account = self.opened(number, user, process)?;
            self.accounts.insert(number, account);
        }
        Ok(())
    }

    fn opened(&mut self, number: i32, user: u32, process: Process) -> Answer<Account> {
        if self.store.slots() == 0 {
            let message = format!("there are no thread imports in {}", self.store.scheduler());
            return Err(Refused::new(Refusal::UnknownImport, message));
        }
        let preferred = self.is_preferred(user);
        let slot = self.slots.take(user, preferred);
        let slot = slot.map_err(|why| Refused::new(Refusal::Full, why))?;
        let account = Account::open(&mut self.store, slot, number, user, process);
        match account {
            Ok(_) => self.fresh.push(number),
            Err(_) => self.slots.give_back(slot, user),
        }
        account
    }

    /// Root, or the user who runs the scheduler.
    pub fn is_preferred(&self, user: u32) -> bool {
        user == 0 || self.owner == Some(user)
    }
}

fn no_process(number: i32) -> Refused {
    Refused::new(Refusal::NoSuchThread, format!("there is no process {number}"))
}

fn own<'a>(
    accounts: &'a mut BTreeMap<i32, Account>,
    store: &impl Store,
    number: i32,
) -> Answer<&'a mut Account> {
    let counts = |account: &Account| {
        account.own && account.process.lives() && store.reads(account.slot, number)
    };
    match accounts.get_mut(&number) {
        Some(account) if counts(account) => Ok(account),
        _ => Err(Refused::new(Refusal::Garbled, "hello comes first")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use attune_values::page::Page;

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
            Process::open(self.0.id()).unwrap()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn why(answer: Answer<()>) -> Option<Refusal> {
        answer.err().map(|Refused(why, ..)| why)
    }

    fn hint(
        registry: &mut Registry<Memory>,
        caller: u32,
        process: i32,
        thread: Option<i32>,
        values: &[(String, Option<i64>)],
    ) -> Answer<()> {
        registry.hint(caller, &wire::Hint { process, thread, values: values.to_vec() })
    }

    fn registry(slots: u32) -> (Registry<Memory>, Memory) {
        let memory = Memory::new(&[("urgent", 0), ("deadline", 7)], slots);
        (Registry::new(memory.clone(), slots), memory)
    }

    #[test]
    fn hints_are_for_the_owner_and_for_root() {
        let (mut registry, memory) = registry(8);
        let sleeper = Sleeper::new();
        let number = sleeper.number();
        let values = [("urgent".to_owned(), Some(3))];
        let owner = process::user_of(number as u32).unwrap();
        assert_eq!(
            why(hint(&mut registry, owner + 12345, number, None, &values)),
            Some(Refusal::Forbidden)
        );
        assert_eq!(memory.value(number, number, "urgent"), Some(0));
        assert_eq!(why(hint(&mut registry, owner, number, None, &values)), None);
        assert_eq!(memory.value(number, number, "urgent"), Some(3));
        assert_eq!(memory.value(number, number, "deadline"), Some(7));
        assert_eq!(
            why(hint(&mut registry, 0, number, Some(number), &[("urgent".to_owned(), Some(4))])),
            None
        );
        assert_eq!(memory.value(number, number, "urgent"), Some(4));
        assert_eq!(
            why(hint(&mut registry, 0, number, Some(number), &[("urgent".to_owned(), None)])),
            None
        );
        assert_eq!(memory.value(number, number, "urgent"), Some(3));
        let unknown = [("urgant".to_owned(), Some(3))];
        assert_eq!(
            why(hint(&mut registry, 0, number, None, &unknown)),
            Some(Refusal::UnknownImport)
        );
        assert_eq!(
            why(hint(&mut registry, 0, number, Some(1), &values)),
            Some(Refusal::NoSuchThread)
        );
        assert_eq!(
            why(hint(&mut registry, 0, i32::MAX, None, &values)),
            Some(Refusal::NoSuchThread)
        );
    }

    #[test]
    fn hints_stay_when_the_process_s_own_values_go() {
        let (mut registry, memory) = registry(8);
        let sleeper = Sleeper::new();
        let number = sleeper.number();
        assert_eq!(
            why(hint(&mut registry, 0, number, None, &[("urgent".to_owned(), Some(3))])),
            None
        );
        let page =
            registry.welcome(number, 1000, sleeper.process()).map(|fd| Page::of(fd).unwrap());
        let page = page.ok().unwrap();
        assert_eq!(why(registry.declare(number, 1, "deadline")), None);
        assert_eq!(why(registry.bind(number, 1, number)), None);
        page.row(1).set(1, Some(99));
        assert_eq!(memory.value(number, number, "deadline"), Some(99));
        registry.farewell(number);
        assert_eq!(memory.value(number, number, "deadline"), Some(7));
        assert_eq!(memory.value(number, number, "urgent"), Some(3));
        assert!(memory.threads(number).is_empty());
    }

    #[test]
    fn a_process_that_gains_rights_by_an_exec_has_nothing_of_what_was_said_before() {
        let (mut registry, memory) = registry(8);
        let sleeper = Sleeper::new();
        let number = sleeper.number();
        let values = [("urgent".to_owned(), Some(3))];
        assert_eq!(why(hint(&mut registry, 0, number, None, &values)), None);
        assert!(registry.welcome(number, 1000, sleeper.process()).is_ok());
        memory.gains_rights(number);
        // Another process may hold the connection still.
        assert_eq!(why(registry.declare(number, 1, "deadline")), Some(Refusal::Garbled));
        assert_eq!(why(registry.bind(number, 1, number)), Some(Refusal::Garbled));
        registry.farewell(number);
        assert!(memory.processes().is_empty() && registry.kept().hints.is_empty());
        // What is said from now on counts.
        assert_eq!(why(hint(&mut registry, 0, number, None, &values)), None);
        assert_eq!(memory.value(number, number, "urgent"), Some(3));
    }

    #[test]
    fn a_hint_is_given_again_by_those_who_may() {
        let sleeper = Sleeper::new();
        let number = sleeper.number();
        for (giver, seen) in [(0, 3), (12345, 0)] {
            let (mut registry, memory) = registry(8);
            let mut hints = Hints::default();
            let start = attune_linux::procfs::start_time(number as u32).unwrap();
            let (process, name) = ((number, start), "urgent".to_owned());
            hints.set(Hint { process, thread: None, name, value: 3, giver });
            hints.all(|_| true).iter().for_each(|hint| registry.hint_again(hint));
            assert_eq!(memory.value(number, number, "urgent"), Some(seen));
            assert_eq!(registry.kept().hints, hints.all(|_| true));
        }
    }

    #[test]
    fn a_process_binds_its_own_threads_only() {
        let (mut registry, memory) = registry(8);
        let (mine, victim) = (Sleeper::new(), Sleeper::new());
        assert!(registry.welcome(mine.number(), 1000, mine.process()).is_ok());
        assert_eq!(
            why(registry.bind(mine.number(), 1, victim.number())),
            Some(Refusal::NoSuchThread)
        );
        assert_eq!(why(registry.bind(mine.number(), 0, mine.number())), Some(Refusal::Garbled));
        let beyond = ROWS as u16;
        assert_eq!(
            why(registry.bind(mine.number(), beyond, mine.number())),
            Some(Refusal::Garbled)
        );
        assert_eq!(why(registry.declare(mine.number(), 16, "urgent")), Some(Refusal::Garbled));
        assert_eq!(why(registry.declare(victim.number(), 1, "urgent")), Some(Refusal::Garbled));
        assert_eq!(memory.processes(), [mine.number()]);
    }

    #[test]
    fn one_user_cannot_take_all_pages() {
        let (mut registry, memory) = registry(8);
        let sleepers: Vec<Sleeper> = (0..4).map(|_| Sleeper::new()).collect();
        let full = |answer: Answer<BorrowedFd>| answer.err().map(|Refused(why, ..)| why);
        for sleeper in &sleepers[..2] {
            assert_eq!(full(registry.welcome(sleeper.number(), 1000, sleeper.process())), None);
        }
        let third = &sleepers[2];
        assert_eq!(
            full(registry.welcome(third.number(), 1000, third.process())),
            Some(Refusal::Full)
        );
        assert_eq!(full(registry.welcome(third.number(), 1001, third.process())), None);
        assert_eq!(memory.processes().len(), 3);
    }

    #[test]
    fn a_stranger_supplies_nothing_that_is_the_loader_s() {
        let memory = Memory::new(&[("urgent", 0), ("deadline", 7)], 8).by_loader("deadline");
        let mut registry = Registry::new(memory.clone().owned_by(1000), 8);
        let (mine, theirs) = (Sleeper::new(), Sleeper::new());
        assert!(registry.welcome(mine.number(), 1000, mine.process()).is_ok());
        assert!(registry.welcome(theirs.number(), 1001, theirs.process()).is_ok());
        assert_eq!(why(registry.declare(mine.number(), 1, "deadline")), None);
        assert_eq!(why(registry.declare(theirs.number(), 1, "urgent")), None);
        assert_eq!(why(registry.declare(theirs.number(), 2, "deadline")), Some(Refusal::Forbidden));
        // Root hints for everybody.
        let values = [("deadline".to_owned(), Some(1))];
        assert_eq!(why(hint(&mut registry, 0, theirs.number(), None, &values)), None);
        assert_eq!(memory.value(theirs.number(), theirs.number(), "deadline"), Some(1));
    }

    #[test]
    fn a_process_that_has_ended_gets_nothing() {
        let (mut registry, memory) = registry(8);
        let sleeper = Sleeper::new();
        let (number, process) = (sleeper.number(), sleeper.process());
        drop(sleeper);
        assert!(registry.welcome(number, 1000, process).is_err());
        assert!(memory.processes().is_empty());
    }

    #[test]
    fn a_word_stands_for_one_import_at_a_time() {
        let (mut registry, memory) = registry(8);
        let sleeper = Sleeper::new();
        let number = sleeper.number();
        let page =
            registry.welcome(number, 1000, sleeper.process()).map(|fd| Page::of(fd).unwrap());
        let page = page.ok().unwrap();
        assert_eq!(why(registry.declare(number, 1, "urgent")), None);
        page.row(0).set(1, Some(5));
        assert_eq!(why(registry.declare(number, 1, "deadline")), None);
        assert_eq!(memory.value(number, number, "urgent"), Some(0));
        assert_eq!(memory.value(number, number, "deadline"), Some(7));
        page.row(0).set(1, Some(6));
        assert_eq!(memory.value(number, number, "deadline"), Some(6));
    }

    #[test]
    fn only_the_owner_and_root_get_the_control() {
        let (mut plain, _) = registry(8);
        assert_eq!(why(plain.control(0).map(|_| ())), Some(Refusal::Unable));
        let mut registry = Registry::new(Memory::new(&[], 0).owned_by(1000), 8);
        assert_eq!(why(registry.control(1001).map(|_| ())), Some(Refusal::Forbidden));
        for user in [0, 1000] {
            let tunables = registry.control(user).map(|control| control.tunables()).ok().unwrap();
            assert_eq!(tunables[0].value, 7);
        }
    }
}
