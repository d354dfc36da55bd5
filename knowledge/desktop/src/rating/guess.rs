//! What a display does not tell of its clients, guessed from the wake-ups between them and the
//! display's servers: a client that draws wakes the server, and input makes the server wake the
//! client. Without the wake-up graph nothing is guessed.

use crate::observation::{Client, INTERVAL, SECOND, Second};
use crate::process::Process;

/// Wake-ups in this second from one to another, where one of them is a display server.
fn wakes(second: &Second, from: impl Fn(Process) -> bool, to: impl Fn(Process) -> bool) -> u64 {
    let between = second.wakes.iter().filter(|wakes| from(wakes.from) && to(wakes.to));
    between.map(|wakes| wakes.count).sum()
}

/// The clients, with the most that each can have changed of what the screen shows of it: all of
/// that whenever it woke the server.
pub fn with_changes(second: &Second) -> Vec<Client> {
    let is_server = |process| second.servers.contains(&process);
    let most = (SECOND / INTERVAL) as f64;
    let guessed = |client: &Client| {
        if client.told {
            return *client;
        }
        let drawn = wakes(second, |from| from == client.process, is_server) as f64;
        Client { changed: client.visible * (drawn / most).min(1.0), ..*client }
    };
    second.clients.iter().map(guessed).collect()
}

/// Clients with the focus that may have got input: the display server woke them.
pub fn woken(second: &Second) -> impl Iterator<Item = Process> {
    let is_server = |process| second.servers.contains(&process);
    let focused = second.clients.iter().filter(|client| !client.told && client.focused);
    let processes = focused.map(|client| client.process);
    processes.filter(move |process| wakes(second, is_server, |to| to == *process) > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Wakes;

    const SWAY: u32 = 1;

    fn process(pid: u32) -> Process {
        Process { pid, start: 1 }
    }

    fn second(wakes: &[(u32, u32, u64)]) -> Second {
        let client = |pid, told, focused| Client {
            told,
            focused,
            visible: 0.5,
            changed: if told { 0.1 } else { 0.0 },
            ..Client::unseen(process(pid))
        };
        let count = |&(from, to, count)| Wakes { from: process(from), to: process(to), count };
        Second {
            clients: vec![client(7, false, true), client(8, false, false), client(9, true, true)],
            servers: vec![process(SWAY)],
            wakes: wakes.iter().map(count).collect(),
            ..Second::default()
        }
    }

    #[test]
    fn a_film_changes_what_is_seen_of_it_as_often_as_it_wakes_the_server() {
        let changed = |wakes: &[(u32, u32, u64)]| -> Vec<f64> {
            with_changes(&second(wakes)).iter().map(|client| client.changed).collect()
        };
        assert_eq!(changed(&[]), [0.0, 0.0, 0.1]);
        // What wakes another client, and what a display tells itself, counts for nothing here.
        assert_eq!(
            changed(&[(7, SWAY, 5), (8, SWAY, 90), (8, 7, 50), (9, SWAY, 9)]),
            [0.1, 0.5, 0.1]
        );
    }

    #[test]
    fn a_focused_client_that_the_server_wakes_may_have_got_input() {
        let of = |wakes| woken(&second(wakes)).collect::<Vec<_>>();
        assert_eq!(of(&[(8, 7, 9)]), []);
        assert_eq!(of(&[(SWAY, 8, 9), (SWAY, 9, 9)]), []);
        assert_eq!(of(&[(SWAY, 7, 1)]), [process(7)]);
    }
}
