//! What the broker's thread waits for, as the number that comes with an event of
//! [`attune_linux::epoll`].

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ready {
    Stop,
    Listener,
    /// A user's door, by the user.
    Door(u32),
    /// A process has ended, by its number.
    Process(i32),
    /// By its number, which no other client ever has.
    Client(u64),
}

impl Ready {
    const KIND: u32 = 62;

    pub fn key(self) -> u64 {
        match self {
            Ready::Stop => 0,
            Ready::Listener => 1,
            Ready::Door(user) => 3 << Ready::KIND | u64::from(user),
            Ready::Process(number) => 1 << Ready::KIND | u64::from(number as u32),
            Ready::Client(number) => 2 << Ready::KIND | number,
        }
    }

    pub fn of(key: u64) -> Ready {
        let number = key & ((1 << Ready::KIND) - 1);
        match (key >> Ready::KIND, number) {
            (0, 0) => Ready::Stop,
            (0, _) => Ready::Listener,
            (1, _) => Ready::Process(number as u32 as i32),
            (2, _) => Ready::Client(number),
            _ => Ready::Door(number as u32),
        }
    }
}
