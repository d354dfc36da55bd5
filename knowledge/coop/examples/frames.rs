//! A program that cooperates: a frame every 40 ms, and work of descending importance between them.
//! Five frames, for the tests.

use attune_coop::{EventLoop, Wanted, When};

fn main() -> std::io::Result<()> {
    let mut events = EventLoop::new(Wanted::Auto, 0)?;
    let (mut next, mut shown, mut ahead) = (events.now(), 0, 0);
    let show = events.event("show", move |events, show| {
        (next, shown) = (next + 40_000_000, shown + 1);
        println!("frame {shown}");
        match shown {
            5 => events.stop(),
            _ => assert!(events.submit(show, When::At(next))),
        }
    });
    let decode = events.event("decode", move |events, decode| {
        // half a millisecond of work, or less
        ahead += (0..100_000u64).fold(1, |sum, n| std::hint::black_box(sum ^ n) % 2);
        events.submit(decode, When::best_effort(ahead as i64));
    });
    events.submit(show, When::At(next));
    events.submit(decode, When::best_effort(0));
    events.run()
}
