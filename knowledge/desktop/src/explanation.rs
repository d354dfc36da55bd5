//! Explains to a person why a process has the ratings that it has.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::attention::{Attention, Cause, Past, Rated, Rating};
use crate::observation::{Handed, Interaction, SECOND};
use crate::process::Process;
use crate::rating::Class;

/// Neighbours in the graph that are told of.
const NEIGHBOURS: usize = 4;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    pub pid: u32,
    pub name: String,
    pub hub: bool,
    /// None: it is not rated.
    pub class: Option<Class>,
    /// Seconds for which it has been rated.
    pub rated_for: f64,
    pub ceiling: f64,
    pub input: Side,
    pub output: Side,
    /// If it is not rated now: how it was rated before.
    pub before: Option<Before>,
    /// What policies read: `input_rating` and `output_rating`.
    pub values: [i64; 2],
    /// The processes that wake it most, and those that it wakes most.
    pub woken_by: Vec<Neighbour>,
    pub wakes: Vec<Neighbour>,
}

/// Ratings that have faded away, at their highest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Before {
    /// Seconds since then.
    pub ago: f64,
    /// Seconds for which it was rated.
    pub rated_for: f64,
    pub input: Side,
    pub output: Side,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    pub rating: f64,
    pub fades: bool,
    pub reason: Option<String>,
    /// The display server where it is known, the client that it came from, and each process on the
    /// way, this one last.
    pub path: Vec<Neighbour>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    pub pid: u32,
    pub name: String,
    /// The weight of the edge to it; None where there is no edge to speak of.
    pub weight: Option<f64>,
}

impl Attention {
    pub fn explain(&self, process: Process) -> Explanation {
        let nothing = Rating::default();
        let rated = self.rated.get(&process);
        let neighbours = |mut found: Vec<(f64, Process)>| -> Vec<Neighbour> {
            found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            // A process without a name has ended.
            found.retain(|(_, other)| !self.name(*other).is_empty());
            found
                .into_iter()
                .take(NEIGHBOURS)
                .map(|(weight, other)| self.neighbour(other, Some(weight)))
                .collect()
        };
        let (mut woken_by, mut wakes) = (Vec::new(), Vec::new());
        for (from, to, edge) in self.graph.edges() {
            if to == process {
                woken_by.push((edge.weight, from));
            } else if from == process {
                wakes.push((edge.weight, to));
            }
        }
        Explanation {
            pid: process.pid,
            name: self.name(process),
            hub: self.hubs.contains(&process),
            class: rated.map(|rated| rated.class),
            rated_for: rated.map_or(0.0, |rated| self.seconds_since(rated.since)),
            ceiling: self.settings().ceiling,
            input: self.side(rated.map_or(&nothing, |rated: &Rated| &rated.input), true),
            output: self.side(rated.map_or(&nothing, |rated| &rated.output), false),
            before: self.past.get(&process).map(|past| self.before(past)),
            values: rated.map_or([0, 0], |rated| self.values(rated)),
            woken_by: neighbours(woken_by),
            wakes: neighbours(wakes),
        }
    }

    fn before(&self, past: &Past) -> Before {
        let least = self.settings().least;
        let highest = |rating: &Rating| {
            let value = if rating.highest < least { 0.0 } else { rating.highest };
            Rating { value, new: value, ..rating.clone() }
        };
        let Past { rated, until } = past;
        Before {
            ago: self.seconds_since(*until),
            rated_for: until.saturating_sub(rated.since) as f64 / SECOND as f64,
            input: self.side(&highest(&rated.input), true),
            output: self.side(&highest(&rated.output), false),
        }
    }

    fn neighbour(&self, process: Process, weight: Option<f64>) -> Neighbour {
        Neighbour { pid: process.pid, name: self.name(process), weight }
    }

    fn seconds_since(&self, then: u64) -> f64 {
        self.now.saturating_sub(then) as f64 / SECOND as f64
    }

    fn side(&self, rating: &Rating, input: bool) -> Side {
        let mut side = Side {
            rating: rating.value,
            fades: rating.new == 0.0 && rating.value > 0.0,
            ..Side::default()
        };
        let Some(cause) = rating.cause.as_ref().filter(|_| rating.value > 0.0) else { return side };
        let called = |process: Process| format!("{} ({process})", self.name(process));
        let origin = |client: Process| match input {
            true => self.input_of(client),
            false => self.output_of(client),
        };
        match cause {
            Cause::Path(path) => {
                side.reason = path.first().map(|&client| origin(client));
                side.path = self.way(path, input);
            }
            Cause::Serves(client) => {
                side.reason = Some(format!(
                    "it is the display server of {}: {}",
                    called(*client),
                    origin(*client)
                ));
            }
            Cause::Plays(client) => {
                side.reason =
                    Some(format!("it is the sound server that {} plays on", called(*client)));
            }
            Cause::Handed { from, how } => {
                let how = match how {
                    Handed::Wake => "woke it, and had that rating",
                    Handed::Fork => "started it, and had that rating",
                };
                side.reason = Some(format!("{} {how}", called(*from)));
            }
        }
        side
    }

    /// Each step with the weight of the edge that leads to it, from the display server on, which is
    /// where input comes from and output goes to. Output travels against the edges.
    fn way(&self, path: &[Process], input: bool) -> Vec<Neighbour> {
        let serves = |server: &&Process| {
            path.first().is_some_and(|&client| {
                let (from, to) = if input { (**server, client) } else { (client, **server) };
                from != to && self.graph.edge(from, to).is_some()
            })
        };
        let server = self.servers.iter().find(serves);
        let path: Vec<Process> = server.into_iter().chain(path).copied().collect();
        let weight = |at: usize| {
            let (before, here) = (*path.get(at.checked_sub(1)?)?, path[at]);
            let (from, to) = if input { (before, here) } else { (here, before) };
            self.graph.edge(from, to).map(|edge| edge.weight)
        };
        path.iter().enumerate().map(|(at, &step)| self.neighbour(step, weight(at))).collect()
    }

    fn input_of(&self, client: Process) -> String {
        let Some(level) = self.levels.get(&client) else {
            return "input that has been forgotten since".to_owned();
        };
        let did = match level.interaction {
            Interaction::Key => "got a key",
            Interaction::Click => "got a click",
            Interaction::Scroll => "got scrolling",
            Interaction::Motion => "got the pointer",
            Interaction::Focus => "had the focus",
            Interaction::Woken => "got the focus, and a wake-up of the display server",
        };
        let ago = self.seconds_since(level.at());
        format!("{} ({client}) {did} {ago:.1} s ago", self.name(client))
    }

    fn output_of(&self, client: Process) -> String {
        let Some(seen) = self.clients.get(&client) else {
            return "output that has ended since".to_owned();
        };
        let mut does = Vec::new();
        if seen.audible {
            does.push("plays sound".to_owned());
        }
        if seen.changed > 0.0 || !seen.audible {
            let guess = match seen.told {
                true => "",
                false => ", to judge by how often it wakes the display server",
            };
            does.push(format!(
                "changes {:.2} % of the screen{guess}, and {:.0} % of the screen shows it",
                seen.changed * 100.0,
                seen.visible * 100.0
            ));
        }
        format!("{} ({client}) {}", self.name(client), does.join(", "))
    }
}

impl Side {
    fn write(
        &self,
        out: &mut fmt::Formatter,
        word: &str,
        arrow: &str,
        ceiling: f64,
    ) -> fmt::Result {
        if self.rating <= 0.0 {
            return writeln!(out, "  {word:<7} none");
        }
        let fades = if self.fades { ", fading" } else { "" };
        write!(out, "  {word:<7} {:.1} of {ceiling:.0}{fades}", self.rating)?;
        match &self.reason {
            Some(reason) => writeln!(out, ": {reason}")?,
            None => writeln!(out)?,
        }
        if self.path.len() < 2 {
            return Ok(());
        }
        let mut way = String::new();
        for step in &self.path {
            if !way.is_empty() {
                way.push_str(arrow);
            }
            write!(way, "{} ({})", step.name, step.pid)?;
        }
        let weights: Vec<String> =
            self.path.iter().filter_map(|step| step.weight.map(|it| format!("{it:.0}"))).collect();
        match weights.is_empty() {
            true => writeln!(out, "          path {way}"),
            false => {
                writeln!(out, "          path {way}; wake-ups, decayed: {}", weights.join(", "))
            }
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let name = if self.name.is_empty() { "process" } else { &self.name };
        let (input, output) = match (self.class, &self.before) {
            (Some(class), _) => {
                writeln!(out, "{name} ({}): {class}, rated for {:.0} s", self.pid, self.rated_for)?;
                (&self.input, &self.output)
            }
            (None, Some(before)) => {
                writeln!(
                    out,
                    "{name} ({}): not rated now; it was for {:.0} s, until {:.0} s ago, and at its \
                     highest",
                    self.pid, before.rated_for, before.ago
                )?;
                (&before.input, &before.output)
            }
            (None, None) => {
                writeln!(
                    out,
                    "{name} ({}): not rated; no input reaches it, and no output comes from it",
                    self.pid
                )?;
                (&self.input, &self.output)
            }
        };
        input.write(out, "input", " -> ", self.ceiling)?;
        output.write(out, "output", " <- ", self.ceiling)?;
        if self.hub {
            writeln!(
                out,
                "  hub     it serves many processes: ratings reach it and go no further"
            )?;
        }
        let list = |neighbours: &[Neighbour]| {
            let one = |one: &Neighbour| {
                format!("{} ({}) {:.0}", one.name, one.pid, one.weight.unwrap_or(0.0))
            };
            neighbours.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        if !self.woken_by.is_empty() {
            writeln!(out, "  woken by {}", list(&self.woken_by))?;
        }
        if !self.wakes.is_empty() {
            writeln!(out, "  wakes   {}", list(&self.wakes))?;
        }
        let [input, output] = self.values;
        writeln!(
            out,
            "  gets    input_rating {input}, output_rating {output}, for policies that import them"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Client, Input, Observation, Program, Second, Wakes};
    use crate::settings::Settings;

    #[test]
    fn an_editor_in_a_terminal_is_explained_by_the_key_and_the_path() {
        let process = |pid| Process { pid, start: 1 };
        let (x, xterm, vim) = (process(900), process(910), process(920));
        let program = |process, name: &str| Program { process, name: name.into(), parent: None };
        let wakes = |from, to| Wakes { from, to, count: 8 };
        let client = Client { changed: 0.01, visible: 0.5, focused: true, ..Client::unseen(xterm) };
        let mut attention = Attention::new(Settings::default());
        let key = Input { process: xterm, interaction: Interaction::Key, at: SECOND / 2 };
        attention.observe(&Observation::Input(key));
        attention.observe(&Observation::Second(Second {
            at: SECOND,
            clients: vec![client],
            servers: vec![x],
            wakes: vec![wakes(x, xterm), wakes(xterm, vim), wakes(vim, xterm), wakes(xterm, x)],
            programs: vec![program(x, "Xvfb"), program(xterm, "xterm"), program(vim, "vim")],
            ..Second::default()
        }));
        assert_eq!(
            attention.explain(vim).to_string(),
            "vim (920): focused, rated for 0 s\n\
             \x20 input   4.8 of 10: xterm (910) got a key 0.5 s ago\n\
             \x20         path Xvfb (900) -> xterm (910) -> vim (920); \
             wake-ups, decayed: 8, 8\n\
             \x20 output  1.0 of 10: xterm (910) changes 1.00 % of the screen, \
             and 50 % of the screen shows it\n\
             \x20         path Xvfb (900) <- xterm (910) <- vim (920); \
             wake-ups, decayed: 8, 8\n\
             \x20 woken by xterm (910) 8\n\
             \x20 wakes   xterm (910) 8\n\
             \x20 gets    input_rating 475, output_rating 100, for policies that import them\n"
        );
        let server = attention.explain(x).to_string();
        assert!(
            server.contains("display server of xterm (910): xterm (910) got a key"),
            "{server}"
        );
        assert!(server.contains("go no further"), "{server}");
        let other = attention.explain(process(5)).to_string();
        assert!(other.starts_with("process (5): not rated;"), "{other}");

        // A person needs longer to ask than the rating lasts.
        for second in 2..=20 {
            attention.observe(&Observation::Second(Second {
                at: second * SECOND,
                servers: vec![x],
                ..Second::default()
            }));
        }
        let vims = attention.explain(vim);
        assert_eq!((vims.class, vims.values, vims.input.rating), (None, [0, 0], 0.0));
        let said = vims.to_string();
        assert!(said.starts_with("vim (920): not rated now; it was for "), "{said}");
        assert!(
            said.contains("  input   7.1 of 10: input that has been forgotten since"),
            "{said}"
        );
        assert!(said.contains("          path xterm (910) -> vim (920)\n"), "{said}");
        assert!(said.contains("gets    input_rating 0, output_rating 0"), "{said}");
        attention.observe(&Observation::Second(Second {
            at: 21 * SECOND,
            ended: vec![vim],
            ..Second::default()
        }));
        assert_eq!(attention.explain(vim).before, None);
    }
}
