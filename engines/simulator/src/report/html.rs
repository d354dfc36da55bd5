//! Shows the outcome as one page that needs nothing from anywhere else: figures, drawings, tables.

use std::fmt::Write;

use super::plot::{self, Bar, escaped};
use super::{table, timeline};
use crate::duration::duration;
use crate::metrics::{Summary, Tally};
use crate::outcome::Outcome;

/// Rows of bars that one can still read.
const MOST_BARS: usize = 48;

pub fn render(outcome: &Outcome) -> String {
    let title = escaped(&format!("{} under {}", outcome.workload(), outcome.policy()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title>\n<style>{STYLE}</style></head>\n\
         <body><main>\n<h1>{} <small>under</small> {}</h1>\n",
        escaped(outcome.workload()),
        escaped(outcome.policy())
    );
    tiles(outcome, &mut page);
    for warning in outcome.warnings() {
        let _ = writeln!(page, "<pre class=\"warning\">{}</pre>", escaped(&warning.to_string()));
    }
    shares(outcome, &mut page);
    type Pick = fn(&Tally) -> &Summary;
    let distributions: [(&str, &str, Pick); 3] = [
        (
            "Dispatch latency",
            "From ready to running, each time that a thread got a CPU.",
            |tally| &tally.latency,
        ),
        ("Response time", "From a job's release to its end.", |tally| &tally.response),
        ("Tardiness", "How long after its deadline a job ended; 0 in time.", |tally| {
            &tally.tardiness
        }),
    ];
    for (heading, meaning, pick) in distributions {
        percentiles(outcome, heading, meaning, pick, &mut page);
    }
    if let Some((drawing, end)) = timeline::render(outcome) {
        let _ = writeln!(
            page,
            "<section><h2>The first {}</h2><p>Above the CPUs, below the threads: coloured where \
                they run, grey where \
             they are ready and have to wait.</p><div class=\"wide\">{drawing}</div></section>",
            duration(end)
        );
    }
    let _ = write!(
        page,
        "<section><h2>Figures</h2><pre class=\"wide\">{}</pre></section>\n</main></body></html>\n",
        escaped(&table::render(outcome))
    );
    page
}

fn tiles(outcome: &Outcome, page: &mut String) {
    let capacity = (outcome.elapsed() * outcome.cpus().len() as i64).max(1) as f64;
    let percent = |time: i64| format!("{:.1} %", time as f64 * 100.0 / capacity);
    let overhead: i64 = outcome.cpus().iter().map(|cpu| cpu.overhead).sum();
    let total = outcome.total();
    let mut tiles = vec![
        ("virtual time", duration(outcome.elapsed())),
        ("CPUs", outcome.cpus().len().to_string()),
        ("threads", total.threads.to_string()),
        ("busy", percent(total.cpu)),
        ("switching", percent(overhead)),
        ("context switches", total.switches.to_string()),
    ];
    if let Some(jain) = outcome.jain_threads() {
        tiles.push(("Jain over threads", format!("{jain:.4}")));
    }
    if total.jobs > 0 {
        tiles.push(("jobs", total.jobs.to_string()));
    }
    if total.unfinished > 0 {
        tiles.push(("jobs not done", total.unfinished.to_string()));
    }
    if total.has_deadlines() {
        tiles.push(("deadlines missed", total.missed.to_string()));
    }
    if total.never_dispatched > 0 {
        tiles.push(("threads that never ran", total.never_dispatched.to_string()));
    }
    page.push_str("<div class=\"tiles\">");
    for (name, value) in tiles {
        let _ = write!(page, "<div><b>{value}</b><span>{name}</span></div>");
    }
    page.push_str("</div>\n");
}

fn shares(outcome: &Outcome, page: &mut String) {
    let threads: Vec<&Tally> = outcome.threads().iter().filter(|thread| !thread.outside).collect();
    // Threads that do not fit are shown by their groups.
    let rows = if threads.len() <= MOST_BARS && outcome.total().threads == threads.len() as u64 {
        threads
    } else {
        outcome.groups().iter().filter(|group| !group.outside).take(MOST_BARS).collect()
    };
    let bars: Vec<Bar> = rows
        .iter()
        .map(|tally| Bar {
            label: tally.name.clone(),
            share: outcome.share(tally),
            text: format!("{:.1} %, {}", outcome.share(tally) * 100.0, duration(tally.cpu)),
            colour: tally.group as usize,
        })
        .collect();
    let _ = writeln!(
        page,
        "<section><h2>CPU shares</h2><p>Of all progress made on CPUs.</p>{}</section>",
        plot::bars(&bars)
    );
}

fn percentiles(
    outcome: &Outcome,
    heading: &str,
    meaning: &str,
    pick: fn(&Tally) -> &Summary,
    page: &mut String,
) {
    let curves: Vec<(String, usize, &Summary)> = outcome
        .groups()
        .iter()
        .filter(|group| pick(group).count() > 0)
        .map(|group| (group.name.clone(), group.group as usize, pick(group)))
        .collect();
    if !curves.is_empty() {
        let _ = writeln!(
            page,
            "<section><h2>{heading}</h2><p>{meaning} To the right the share of cases that took no \
                longer.</p>{}</section>",
            plot::percentiles(&curves)
        );
    }
}

const STYLE: &str = "
:root{--ink:#1c2330;--dim:#687083;--paper:#fbfbfc;--card:#fff;--line:#e3e6ec;--ready:#c9ced8;
--k0:#3b6fd4;--k1:#e0803a;--k2:#3f9d6b;--k3:#b9489b;--k4:#8a6fd1;--k5:#c9a227;--k6:#2a9db0;
--k7:#c94f4f}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--dim:#939cb0;--paper:#14171d;--card:#1b1f27;
--line:#2c323d;--ready:#454d5b;
--k0:#6f9bf0;--k1:#f0a064;--k2:#65c592;--k3:#dc78c0;--k4:#ac96ee;--k5:#e3c154;--k6:#56c2d4;
--k7:#ea7c7c}}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:2rem 1.2rem 4rem}
h1{font-size:1.7rem;margin:0 0 1rem}h1 small{font-weight:400;color:var(--dim);font-size:1.1rem}
h2{font-size:1.1rem;margin:0}section{background:var(--card);border:1px solid var(--line);
border-radius:10px;padding:1rem 1.2rem;margin:1rem 0}
section p{color:var(--dim);margin:.1rem 0 .8rem}
.tiles{display:flex;flex-wrap:wrap;gap:.6rem}
.tiles div{background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:.5rem .9rem;display:flex;flex-direction:column}
.tiles b{font-size:1.15rem;font-variant-numeric:tabular-nums}.tiles span{color:var(--dim);
font-size:.85rem}
svg{width:100%;height:auto;display:block}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
svg .dim{fill:var(--dim)}svg .small{font-size:11px}.end{text-anchor:end}.middle{text-anchor:middle}
.grid{stroke:var(--line);stroke-width:1}.ready{fill:var(--ready)}.suspended{fill:none;
stroke:var(--ready)}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;font-size:.9rem}
.legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}
pre{font:12.5px/1.5 ui-monospace,monospace;margin:.6rem 0 0}.wide{overflow-x:auto}
.warning{background:var(--card);border-left:4px solid var(--k1);padding:.6rem 1rem;
white-space:pre-wrap}
.c0{fill:var(--k0)}.c1{fill:var(--k1)}.c2{fill:var(--k2)}.c3{fill:var(--k3)}.c4{fill:var(--k4)}
.c5{fill:var(--k5)}.c6{fill:var(--k6)}.c7{fill:var(--k7)}
.s0{stroke:var(--k0)}.s1{stroke:var(--k1)}.s2{stroke:var(--k2)}.s3{stroke:var(--k3)}
.s4{stroke:var(--k4)}.s5{stroke:var(--k5)}.s6{stroke:var(--k6)}.s7{stroke:var(--k7)}
.b0{background:var(--k0)}.b1{background:var(--k1)}.b2{background:var(--k2)}
.b3{background:var(--k3)}.b4{background:var(--k4)}.b5{background:var(--k5)}
.b6{background:var(--k6)}.b7{background:var(--k7)}
";
