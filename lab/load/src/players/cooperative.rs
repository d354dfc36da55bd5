//! A player in an event loop, which cooperates if its transport does.

use std::rc::Rc;

use anyhow::Result;
use attune_coop::{EventLoop, When};

use super::player::{Player, Shown, Timer};
use super::{Options, TRANSPORTS};

/// Player number `index`.
pub fn play(player: Player, options: &Options, index: usize) -> Result<()> {
    let group = options.group + if options.apart { index as u32 } else { 0 };
    let mut events = EventLoop::new(options.transport.clone(), group)?;
    let transport = TRANSPORTS.iter().position(|name| *name == events.transport().name());
    player.show(Shown::Transport, transport.unwrap_or(0) as u64);
    let player = Rc::new(player);
    player.timers().into_iter().for_each(|timer| periodic(&mut events, &player, timer));

    let decoder = player.clone();
    let decode = events.event("decode", move |events, decode| {
        events.submit(decode, When::best_effort(decoder.decode() as i64));
    });
    events.submit(decode, When::best_effort(0));

    let (begin, end) = (player.begin, player.end);
    let (first, last) = (player.clone(), player);
    let begins =
        events.event("begin", move |events, _| first.count(events.transport().statistics(), false));
    let ends = events.event("end", move |events, _| {
        last.count(events.transport().statistics(), true);
        events.stop();
    });
    events.submit(begins, When::At(begin));
    events.submit(ends, When::At(end));
    Ok(events.run()?)
}

/// Makes a timer an event, again and again.
fn periodic(events: &mut EventLoop, player: &Rc<Player>, mut timer: Timer) {
    let (player, first) = (player.clone(), timer.release);
    let event = events.event(timer.name, move |events, event| {
        player.serve(&mut timer);
        events.submit(event, When::At(timer.release));
    });
    events.submit(event, When::At(first));
}
