//! `attune top`: how the scheduler in the kernel stands, once or again and again.
//!
//! The run itself says what is true at one moment (`attune_kernel::look`); names, states and times of threads are the kernel's, read
//! from /proc just behind it.

mod proc;
mod screen;
mod table;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use attune_kernel::Look;
use attune_values::wire::Request;
use serde_json::Value;

use crate::args::TopArgs;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::output;

use proc::Threads;
use screen::Screen;

pub fn run(args: &TopArgs) -> Result<ExitCode, Failure> {
    let engine = Engine::connect()?;
    if args.json {
        let look = ask(&engine)?;
        output::print(&(json(&look, &Threads::read(&look, None))?.to_string() + "\n"))?;
    } else if args.once {
        let look = ask(&engine)?;
        let lines = table::lines(&look, &Threads::read(&look, None));
        output::print(
            &lines.into_iter().map(|line| line.text.trim_end().to_owned() + "\n").collect::<String>(),
        )?;
    } else if io::stdout().is_terminal() && io::stdin().is_terminal() {
        live(&engine, Duration::from_secs_f64(args.interval))?;
    } else {
        return Err(Failure::usage(
            "this is no terminal: --once prints how it stands now, --json for a program",
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn ask(engine: &Engine) -> Result<Look, Failure> {
    engine.ask(&Request::Look)
}

/// Until somebody wants to leave, or the run ends.
fn live(engine: &Engine, interval: Duration) -> Result<(), Failure> {
    // The first answer comes before the screen changes: a refusal is no picture.
    let mut look = ask(engine)?;
    let mut threads = Threads::read(&look, None);
    let broken = |error: io::Error| Failure::usage(format!("the terminal: {error}"));
    let mut screen = Screen::open().map_err(broken)?;
    loop {
        screen.show(&table::lines(&look, &threads)).map_err(broken)?;
        if screen.wait(interval).map_err(broken)? {
            return Ok(());
        }
        look = ask(engine)?;
        threads = Threads::read(&look, Some(&threads));
    }
}

/// What the run says, and of each thread what /proc says.
fn json(look: &Look, threads: &Threads) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(look).map_err(|error| Failure::usage(error.to_string()))?;
    add(&mut value, threads);
    Ok(value)
}

/// Wherever a thread stands.
fn add(value: &mut Value, threads: &Threads) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| add(item, threads)),
        Value::Object(members) => {
            if let (Some(thread), true) =
                (members.get("thread").and_then(Value::as_i64), members.contains_key("process"))
            {
                let known = threads.of(thread as i32);
                let text = |text: Option<String>| text.map_or(Value::Null, Value::from);
                members.insert("name".to_owned(), text(known.map(|it| it.name.clone())));
                members.insert("kernel_state".to_owned(), text(known.map(|it| it.state.to_string())));
                members.insert("run_ns".to_owned(), known.map_or(Value::Null, |it| it.run.into()));
                members.insert("wait_ns".to_owned(), known.map_or(Value::Null, |it| it.wait.into()));
            }
            members.values_mut().for_each(|member| add(member, threads));
        }
        _ => {}
    }
}
