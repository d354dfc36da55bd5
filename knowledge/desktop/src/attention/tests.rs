//! What typing, starting, ending and fading do to ratings.

use proptest::prelude::*;

use super::*;
use crate::observation::{Handed, SECOND, Wakes};

const X: u32 = 1000;
const XTERM: u32 = 1001;
const VIM: u32 = 1002;
const CC: u32 = 1003;

fn process(pid: u32) -> Process {
    Process { pid, start: 1 }
}

fn client(pid: u32, changed: f64, focused: bool) -> Client {
    Client { changed, visible: 0.5, focused, ..Client::unseen(process(pid)) }
}

fn key(pid: u32, at: Time) -> Observation {
    Observation::Input(Input { process: process(pid), interaction: Interaction::Key, at })
}

/// A second in which somebody typed, or not.
fn second(number: u64, typed: bool) -> Second {
    let wakes = |from, to, count| Wakes { from: process(from), to: process(to), count };
    Second {
        at: number * SECOND,
        clients: vec![client(XTERM, if typed { 0.001 } else { 0.0 }, true)],
        servers: vec![process(X)],
        wakes: match typed {
            true => vec![
                wakes(X, XTERM, 16),
                wakes(XTERM, VIM, 8),
                wakes(VIM, XTERM, 8),
                wakes(XTERM, X, 8),
                wakes(X, CC, 1),
            ],
            false => Vec::new(),
        },
        ..Second::default()
    }
}

fn value(attention: &Attention, pid: u32) -> f64 {
    attention.rated().get(&process(pid)).map_or(0.0, |rated| rated.input.value)
}

#[test]
fn typing_rates_server_terminal_and_editor_and_no_other_process() {
    let mut attention = Attention::new(Settings::default());
    for number in 1..7 {
        attention.observe(&key(XTERM, number * SECOND - SECOND / 2));
        attention.observe(&Observation::Second(second(number, true)));
    }
    for pid in [X, XTERM, VIM] {
        assert!(value(&attention, pid) > 9.0, "{pid}: {}", value(&attention, pid));
        assert_eq!(attention.rated()[&process(pid)].class, Class::Focused);
    }
    assert_eq!(value(&attention, CC), 0.0);
    let cause = attention.rated()[&process(VIM)].input.cause.clone();
    assert_eq!(cause, Some(Cause::Path(vec![process(XTERM), process(VIM)])));
}

#[test]
fn a_first_key_lifts_the_whole_chain_at_once() {
    let mut attention = Attention::new(Settings::default());
    attention.observe(&Observation::Second(second(1, true)));
    assert!(value(&attention, VIM) < 3.0);
    assert!(attention.observe(&key(XTERM, SECOND + 1)));
    assert!(value(&attention, VIM) > 9.9 && value(&attention, X) > 9.9);
    assert!(!attention.observe(&key(XTERM, SECOND + 2)), "a second key changes nothing at once");
}

#[test]
fn the_way_of_a_key_stays_rated_while_nobody_types() {
    let mut attention = Attention::new(Settings::default());
    attention.observe(&key(XTERM, SECOND / 2));
    attention.observe(&Observation::Second(second(1, true)));
    for number in 2..30 {
        attention.observe(&Observation::Second(second(number, false)));
    }
    for pid in [X, XTERM] {
        let level = value(&attention, pid);
        assert!((2.9..3.1).contains(&level), "{pid}: {level}");
    }
    // Another client takes the focus.
    for number in 30..45 {
        let clients = vec![client(XTERM, 0.0, false), client(CC, 0.0, true)];
        let other = Second { clients, ..second(number, false) };
        attention.observe(&Observation::Second(other));
    }
    assert_eq!(value(&attention, XTERM), 0.0);
    assert!(value(&attention, CC) > 2.9);
}

#[test]
fn a_process_that_nothing_reaches_any_more_fades_and_is_forgotten() {
    let mut attention = Attention::new(Settings::default());
    attention.observe(&key(XTERM, SECOND / 2));
    attention.observe(&Observation::Second(second(1, true)));
    // The edge is as light as it may be after five seconds.
    for number in 2..7 {
        attention.observe(&Observation::Second(second(number, false)));
    }
    let mut before = value(&attention, VIM);
    assert!(before > 4.0, "{before}");
    for number in 7..20 {
        attention.observe(&Observation::Second(second(number, false)));
        let now = value(&attention, VIM);
        assert!(now == before / 2.0 || now == 0.0, "{before}, then {now}");
        before = now;
    }
    assert!(!attention.rated().contains_key(&process(VIM)));
}

#[test]
fn a_child_inherits_and_loses_it_by_half_a_second() {
    let mut attention = Attention::new(Settings::default());
    attention.observe(&key(XTERM, SECOND / 2));
    let handover = Handover {
        from: process(XTERM),
        to: process(CC),
        how: Handed::Fork,
        input: 8.0,
        output: 0.0,
        at: SECOND,
    };
    let mut forked = second(1, false);
    forked.handovers.push(handover);
    attention.observe(&Observation::Second(forked));
    assert_eq!(value(&attention, CC), 4.0);
    attention.observe(&Observation::Second(second(2, false)));
    assert_eq!(value(&attention, CC), 2.0);
}

#[test]
fn a_process_that_ended_is_not_rated_even_if_its_number_comes_back() {
    let mut attention = Attention::new(Settings::default());
    attention.observe(&key(XTERM, SECOND / 2));
    attention.observe(&Observation::Second(second(1, true)));
    let mut ended = second(2, false);
    ended.ended.push(process(VIM));
    attention.observe(&Observation::Second(ended));
    assert!(!attention.rated().contains_key(&process(VIM)));
    let mut again = second(3, false);
    let wakes = Wakes { from: process(XTERM), to: Process { pid: VIM, start: 9 }, count: 1 };
    again.wakes.push(wakes);
    attention.observe(&Observation::Second(again));
    assert!(!attention.rated().contains_key(&process(VIM)));
    assert!(attention.rated().contains_key(&Process { pid: VIM, start: 9 }));
}

#[test]
fn without_the_graph_clients_and_their_server_are_rated_still() {
    let mut attention = Attention::new(Settings::default());
    attention.observe(&key(XTERM, SECOND / 2));
    let clients = vec![client(XTERM, 0.0, true), client(VIM, 0.4, false)];
    attention.observe(&Observation::Second(Second {
        at: SECOND,
        clients,
        servers: vec![process(X)],
        ..Second::default()
    }));
    assert!(value(&attention, XTERM) > 9.0);
    let film = &attention.rated()[&process(VIM)];
    assert_eq!((film.output.value, film.class), (5.0, Class::Visible));
    assert_eq!(attention.rated()[&process(X)].output.cause, Some(Cause::Serves(process(VIM))));
}

#[test]
fn a_player_that_nobody_sees_is_rated_for_its_sound_and_its_server_with_it() {
    let mut attention = Attention::new(Settings::default());
    let (player, server) = (process(CC), process(VIM));
    let heard = |at, audible| {
        let client = Client { audible, ..Client::unseen(player) };
        Observation::Second(Second {
            at,
            clients: vec![client],
            servers: vec![process(X)],
            sound_servers: vec![server],
            ..Second::default()
        })
    };
    attention.observe(&heard(SECOND, true));
    attention.observe(&heard(2 * SECOND, true));
    let rated = |attention: &Attention, process| {
        let rated = attention.rated().get(&process);
        rated.map(|rated| (rated.output.value, rated.class))
    };
    assert_eq!(rated(&attention, player), Some((3.75, Class::Audible)));
    assert_eq!(rated(&attention, server), Some((3.75, Class::Audible)));
    assert_eq!(attention.rated()[&server].output.cause, Some(Cause::Plays(player)));
    assert!(attention.is_hub(server), "nothing goes on from a sound server");
    assert_eq!(rated(&attention, process(X)), None, "it is no display's client");
    attention.observe(&heard(3 * SECOND, false));
    assert_eq!(rated(&attention, player), Some((1.875, Class::Hidden)));
}

#[test]
fn where_the_display_tells_nothing_the_focused_client_and_what_it_wakes_are_rated() {
    let mut attention = Attention::new(Settings::default());
    for number in 1..5 {
        let mut blind = second(number, true);
        blind.clients[0] = Client { told: false, ..blind.clients[0] };
        blind.clients.push(Client { told: false, ..client(CC, 0.0, false) });
        attention.observe(&Observation::Second(blind));
    }
    assert!(value(&attention, XTERM) > 5.0 && value(&attention, VIM) > 5.0);
    assert_eq!(value(&attention, CC), 0.0);
    // Eight wake-ups of the server in a second, where 25 are all that the eye sees, and half of the
    // screen shows the terminal.
    assert!((attention.clients[&process(XTERM)].changed - 0.16).abs() < 1e-9);
    // Nobody types any more: the chain stays rated, if less, for the next key.
    for number in 5..20 {
        let mut blind = second(number, false);
        blind.clients[0] = Client { told: false, ..blind.clients[0] };
        attention.observe(&Observation::Second(blind));
    }
    let level = value(&attention, XTERM);
    assert!((2.9..3.1).contains(&level), "{level}");
}

#[test]
fn what_policies_read_is_a_thousandth_of_the_ceiling() {
    let settings = Settings { ceiling: 4.0, ..Settings::default() };
    let mut attention = Attention::new(settings);
    attention.observe(&key(XTERM, 0));
    assert_eq!(attention.values(&attention.rated()[&process(XTERM)]), [1000, 0]);
}

proptest! {
    /// Whatever a hostile desktop does: ratings stay within bounds, and a hub is never more
    /// than the end of a path.
    #[test]
    fn ratings_stay_within_the_ceiling(
        steps in proptest::collection::vec(
            (0u32..6, 0u32..6, 0u64..9, 0.0..2.0f64, proptest::bool::ANY), 0..60),
    ) {
        let settings = Settings::default();
        let mut attention = Attention::new(settings.clone());
        for (number, (a, b, count, changed, typed)) in steps.into_iter().enumerate() {
            let at = number as u64 * SECOND;
            if typed {
                attention.observe(&key(2000 + a, at));
            }
            let wakes = Wakes { from: process(2000 + a), to: process(2000 + b), count };
            let handover = Handover {
                from: process(2000 + b), to: process(2000 + a), how: Handed::Wake,
                input: changed * 100.0, output: changed, at,
            };
            attention.observe(&Observation::Second(Second {
                at,
                clients: vec![client(2000 + b, changed, typed)],
                servers: vec![process(2000)],
                wakes: vec![wakes],
                handovers: vec![handover],
                ..Second::default()
            }));
            for (process, rated) in attention.rated() {
                for rating in [&rated.input, &rated.output] {
                    prop_assert!((0.0..=settings.ceiling).contains(&rating.value));
                    if let Some(Cause::Path(path)) = &rating.cause {
                        prop_assert_eq!(path.last(), Some(process));
                    }
                }
            }
        }
    }
}
