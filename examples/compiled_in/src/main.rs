//! Three threads under the scheduler that is part of the program: the one with the least left goes
//! first, whatever the order in which they started.

use std::io;

use attune_threads::{Options, compiled_scheduler, current, imports, init, spawn, yield_now};

fn main() -> io::Result<()> {
    let scheduler = Some(compiled_scheduler!("shortest"));
    init(&Options { scheduler_in_program: scheduler, ..Options::default() })?;
    let tasks = [("long", 3), ("short", 1), ("middle", 2)];
    let threads = tasks.map(|(name, left)| spawn(move || work(name, left)));
    for thread in threads {
        thread?.join().expect("a task does not panic")?;
    }
    Ok(())
}

fn work(name: &str, mut left: i64) -> io::Result<()> {
    while left > 0 {
        // The policy looks at it when it next chooses.
        imports::set_thread_int(current()?, "left", left)?;
        yield_now()?;
        println!("{name}: {left} left");
        left -= 1;
    }
    Ok(())
}
