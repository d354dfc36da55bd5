//! A program's own threads as lines of text: its tunables, then every thread by number.

use attune_lab::columns;
use attune_values::program::{Program, UserThread};

use super::table::{Line, heading, plain, printable, settings};

/// `before`: for rates.
pub fn lines(program: &Program, before: Option<&Program>) -> Vec<Line> {
    let mut lines = Vec::new();
    let (scheduler, process) = (&program.scheduler, program.process);
    let ready = program.threads.iter().filter(|thread| thread.state == "ready").count();
    let many = program.threads.len();
    let title = format!("{scheduler}: {many} threads of process {process}, {ready} ready");
    heading(&mut lines, title);
    let why = program.io_why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    plain(&mut lines, format!("descriptors by {}{}", program.io, printable(&why)));
    settings(&program.tunables, &mut lines);
    plain(&mut lines, String::new());
    let mut head: Vec<String> =
        ["THREAD", "WORKER", "NAME", "STATE", "CONTAINER"].map(str::to_owned).to_vec();
    let mut right = vec![true, true, false, false, false];
    let figures: &[&str] = match before {
        Some(_) => &["RUN/%", "READY/%", "RUN/s", "READY/s", "CHOSEN"],
        None => &["RUN/s", "READY/s", "CHOSEN"],
    };
    let values = program.threads.first().map(|thread| thread.values.keys().cloned());
    head.extend(figures.iter().map(|figure| (*figure).to_owned()));
    head.extend(values.into_iter().flatten());
    right.resize(head.len(), true);
    let rows = program.threads.iter().map(|thread| row(thread, program, before));
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let texts = columns::lines(&rows, &right).into_iter().enumerate();
    lines.extend(texts.map(|(row, text)| Line { text, heading: row == 0 }));
    lines
}

fn row(thread: &UserThread, program: &Program, before: Option<&Program>) -> Vec<String> {
    let mut row = vec![
        thread.thread.to_string(),
        thread.worker.to_string(),
        printable(&thread.name),
        thread.state.clone(),
        thread.container.clone(),
    ];
    if let Some(before) = before {
        let elapsed = (program.at - before.at).max(1) as f64;
        let then = before.threads.iter().find(|other| other.thread == thread.thread);
        let rate = |of: fn(&UserThread) -> i64| {
            then.map_or("-".to_owned(), |then| {
                format!("{:.1}", 100.0 * (of(thread) - of(then)) as f64 / elapsed)
            })
        };
        row.extend([rate(|it| it.run_ns), rate(|it| it.ready_ns)]);
    }
    let seconds = |time: i64| format!("{:.3}", time as f64 / 1e9);
    row.extend([seconds(thread.run_ns), seconds(thread.ready_ns), thread.chosen.to_string()]);
    row.extend(thread.values.values().map(i64::to_string));
    row
}
