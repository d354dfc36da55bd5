//! Output ratings of clients, from the parts of the screen that they change and from the sound that
//! they play.

use std::collections::BTreeMap;

use crate::observation::Client;
use crate::process::Process;
use crate::settings::Settings;

/// Each client's part of all that changes on the screen, times the ceiling. While little changes at
/// all, `full_output` of the screen stands for all: a clock that blinks alone is no film.
pub fn screen_ratings(clients: &[Client], settings: &Settings) -> BTreeMap<Process, f64> {
    let share = |client: &Client| match client.changed.is_finite() {
        true => client.changed.clamp(0.0, 1.0),
        false => 0.0,
    };
    let total: f64 = clients.iter().map(share).sum();
    let whole = total.max(settings.full_output);
    let mut ratings = BTreeMap::new();
    for client in clients.iter().filter(|client| share(client) > 0.0) {
        *ratings.entry(client.process).or_insert(0.0) += settings.ceiling * share(client) / whole;
    }
    ratings
}

/// What a client has for being heard: a part of the ceiling, less if so many can be heard that all
/// together would have more than the ceiling. Nobody can tell silence from music, so a client that
/// plays silence gets this too, and never more.
pub fn sound_ratings(clients: &[Client], settings: &Settings) -> BTreeMap<Process, f64> {
    let heard: Vec<Process> =
        clients.iter().filter(|client| client.audible).map(|client| client.process).collect();
    let part = settings.sound.min(1.0 / heard.len().max(1) as f64);
    let rating = settings.ceiling * part;
    heard.into_iter().map(|process| (process, rating)).filter(|_| rating > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(pid: u32, changed: f64) -> Client {
        Client { changed, visible: 1.0, ..Client::unseen(Process { pid, start: 1 }) }
    }

    #[test]
    fn two_films_share_by_what_is_seen_of_them_and_a_clock_is_no_film() {
        let settings = Settings::default();
        let both = screen_ratings(&[client(1, 0.4), client(2, 0.2)], &settings);
        let ratings: Vec<f64> = both.values().copied().collect();
        assert!((ratings[0] - 20.0 / 3.0).abs() < 1e-9 && (ratings[1] - 10.0 / 3.0).abs() < 1e-9);
        let clock = screen_ratings(&[client(3, 0.0005), client(4, 0.0)], &settings);
        assert_eq!(clock.len(), 1);
        assert!((clock.values().sum::<f64>() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn two_clients_of_one_process_are_one() {
        let ratings =
            screen_ratings(&[client(1, 0.1), client(1, 0.1), client(2, 0.2)], &Settings::default());
        assert_eq!(ratings.len(), 2);
        assert_eq!(ratings[&Process { pid: 1, start: 1 }], 5.0);
    }

    #[test]
    fn who_plays_gets_a_part_of_the_ceiling_and_a_crowd_of_silent_ones_no_more_than_all_of_it() {
        let settings = Settings::default();
        let crowd = |size: u32| -> Vec<Client> {
            let one = |pid| Client { audible: true, ..client(pid, 0.0) };
            (0..size).map(one).chain([client(900, 0.2)]).collect()
        };
        let two = sound_ratings(&crowd(2), &settings);
        assert_eq!(two.into_values().collect::<Vec<_>>(), [5.0, 5.0]);
        let many = sound_ratings(&crowd(100), &settings);
        assert_eq!(many.len(), 100);
        assert!((many.values().sum::<f64>() - settings.ceiling).abs() < 1e-9);
        assert!(sound_ratings(&crowd(2), &Settings { sound: 0.0, ..settings }).is_empty());
    }

    proptest! {
        #[test]
        fn ratings_sum_to_at_most_the_ceiling(
            changed in proptest::collection::vec(
                prop_oneof![0.0..1.0f64, Just(f64::NAN), Just(9.0)], 0..40),
        ) {
            let settings = Settings::default();
            let clients: Vec<Client> = changed
                .iter()
                .enumerate()
                .map(|(pid, &changed)| client(pid as u32, changed))
                .collect();
            let ratings = screen_ratings(&clients, &settings);
            prop_assert!(ratings.values().all(|&rating| rating > 0.0));
            prop_assert!(ratings.values().sum::<f64>() <= settings.ceiling * (1.0 + 1e-9));
        }
    }
}
