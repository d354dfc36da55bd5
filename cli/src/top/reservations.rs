//! Shows what tuners have reserved for which thread, as lines of text. Units stand in the headings.

use attune_daemon::{ProgramStatus, Status, TaskStatus};

use super::table::{Line, heading, plain, printable, table};

pub fn lines(tuners: &[Status]) -> Vec<Line> {
    let mut lines = Vec::new();
    for status in tuners {
        if !lines.is_empty() {
            plain(&mut lines, String::new());
        }
        let Status { given, bound, .. } = status;
        heading(&mut lines, format!("reservations: {given:.3} of {bound:.2} CPUs given"));
        if status.programs.is_empty() {
            plain(&mut lines, "no program is tuned now".to_owned());
            continue;
        }
        let rows = status.programs.iter().flat_map(rows).collect();
        let head = [
            "THREAD",
            "NAME",
            "BEAT/Hz",
            "PERIOD/ms",
            "BUDGET/ms",
            "CPU/%",
            "USED/ms",
            "GIVEN/USED",
            "",
        ];
        let right = [true, false, true, true, true, true, true, true, false];
        table(head.map(str::to_owned).to_vec(), rows, &right, &mut lines);
    }
    lines
}

/// The program, and below it its threads.
fn rows(program: &ProgramStatus) -> Vec<Vec<String>> {
    let state = match (program.listening, program.period_ms) {
        (true, None) => "listening",
        (true, Some(_)) => "listening again",
        (false, None) => "no beat",
        (false, Some(_)) => "",
    };
    let ratio = (program.used_ms > 0.0).then(|| program.given_ms / program.used_ms);
    let mut rows = vec![vec![
        program.process.to_string(),
        printable(&program.name),
        number(program.frequency_hz),
        number(program.period_ms),
        String::new(),
        String::new(),
        number(Some(program.used_ms)),
        ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        state.to_owned(),
    ]];
    rows.extend(program.threads.iter().map(thread));
    rows
}

/// Its use is that in its last period.
fn thread(thread: &TaskStatus) -> Vec<String> {
    let share = thread.budget_ms.zip(thread.period_ms).filter(|(_, period)| *period > 0.0);
    vec![
        thread.thread.to_string(),
        format!("  {}", printable(&thread.name)),
        String::new(),
        number(thread.period_ms),
        number(thread.budget_ms),
        share.map(|(budget, period)| format!("{:.1}", 100.0 * budget / period)).unwrap_or_default(),
        number(Some(thread.used_ms)),
        String::new(),
        thread.refused.clone().unwrap_or_default(),
    ]
}

fn number(value: Option<f64>) -> String {
    value.map(|value| format!("{value:.3}")).unwrap_or_default()
}
