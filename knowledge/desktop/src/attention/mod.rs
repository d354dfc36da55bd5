//! Rates all processes: what the observations of a desktop say about the programs that the person
//! deals with. It is pure: the same observations give the same ratings.
//!
//! A client's own ratings come from its input level and its output. Once a second they travel over
//! the graph, and each process's rating moves half of the way to what reached it. A first input
//! event travels at once. A process that stopped being reached fades by half a second.

mod rated;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Direction, Graph, Look, Reached, dot, propagate};
use crate::observation::{
    Client, Handover, Input, Interaction, Observation, Program, Second, Time,
};
use crate::process::Process;
use crate::rating::{Class, InputLevel, guess, screen_ratings, sound_ratings};
use crate::settings::Settings;
pub use rated::{Cause, Past, Rated, Rating};

/// At most so many processes are rated, those with the greatest ratings.
pub const MOST_RATED: usize = 4096;
/// Processes that are not rated any more are remembered up to this number, the last ones.
const MOST_PAST: usize = 1024;
/// What a policy reads of a rating at the ceiling.
pub const FULL_VALUE: i64 = 1000;

pub struct Attention {
    settings: Settings,
    pub(crate) graph: Graph,
    pub(crate) levels: BTreeMap<Process, InputLevel>,
    pub(crate) clients: BTreeMap<Process, Client>,
    pub(crate) programs: BTreeMap<Process, Program>,
    pub(crate) hubs: BTreeSet<Process>,
    pub(crate) servers: BTreeSet<Process>,
    pub(crate) rated: BTreeMap<Process, Rated>,
    /// Processes whose ratings have faded away: a person who asks why one is rated may need longer
    /// to ask than its rating lasts.
    pub(crate) past: BTreeMap<Process, Past>,
    pub(crate) now: Time,
}

impl Attention {
    pub fn new(settings: Settings) -> Attention {
        Attention {
            settings,
            graph: Graph::default(),
            levels: BTreeMap::new(),
            clients: BTreeMap::new(),
            programs: BTreeMap::new(),
            hubs: BTreeSet::new(),
            servers: BTreeSet::new(),
            rated: BTreeMap::new(),
            past: BTreeMap::new(),
            now: 0,
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// True when ratings changed that others should know of at once.
    pub fn observe(&mut self, observation: &Observation) -> bool {
        match observation {
            Observation::Input(input) => self.input(input),
            Observation::Second(second) => {
                self.second(second);
                true
            }
        }
    }

    /// A first event, or one that lifts a client by more than a second has taken from it, travels
    /// over the graph at once; further ones wait for the second's end.
    fn input(&mut self, input: &Input) -> bool {
        self.now = self.now.max(input.at);
        let before = self.levels.get(&input.process).copied();
        let level = InputLevel::after(before, input, &self.settings);
        self.levels.insert(input.process, level);
        let own = level.now(self.now);
        let rated = self.rated.get(&input.process).map_or(0.0, |rated| rated.input.value);
        if !input.interaction.is_deliberate() || own - rated <= 1.0 {
            return false;
        }
        let source = BTreeMap::from([(input.process, own)]);
        for (process, reached) in self.spread(&source, Direction::Along) {
            let rated = self.rated.entry(process).or_insert_with(|| Rated::fresh(input.at));
            rated.input.lift(reached.rating, Cause::Path(reached.path));
            rated.class = Class::Focused;
        }
        for &server in &self.servers {
            let rated = self.rated.entry(server).or_insert_with(|| Rated::fresh(input.at));
            rated.input.lift(own, Cause::Serves(input.process));
            rated.class = Class::Focused;
        }
        true
    }

    fn second(&mut self, second: &Second) {
        self.now = self.now.max(second.at);
        self.forget(&second.ended);
        for program in &second.programs {
            self.programs.insert(program.process, program.clone());
        }
        let clients = guess::with_changes(second);
        for client in clients.iter().filter(|client| client.focused) {
            self.reach(client.process, Interaction::Focus);
        }
        for process in guess::woken(second) {
            self.reach(process, Interaction::Woken);
        }
        self.clients = clients.iter().map(|client| (client.process, *client)).collect();
        self.servers = second.servers.iter().copied().collect();
        let servers = &self.servers | &second.sound_servers.iter().copied().collect();
        let wakes = second.wakes.iter().map(|wakes| (wakes.from, wakes.to, wakes.count));
        self.graph.count(wakes, self.now, &self.settings);
        self.hubs = self.graph.hubs(&servers, &self.programs, &self.settings);
        for handover in &second.handovers {
            self.hand_over(handover);
        }
        self.levels.retain(|_, level| level.now(self.now) > 0.0);
        self.follow(&clients, &second.sound_servers);
        self.bound();
    }

    fn forget(&mut self, ended: &[Process]) {
        let ended: BTreeSet<Process> = ended.iter().copied().collect();
        self.graph.remove(&ended);
        for process in &ended {
            self.levels.remove(process);
            self.clients.remove(process);
            self.rated.remove(process);
            self.past.remove(process);
            self.programs.remove(process);
        }
    }

    /// Input that no event told of.
    fn reach(&mut self, process: Process, interaction: Interaction) {
        let input = Input { process, interaction, at: self.now };
        let before = self.levels.get(&process).copied();
        self.levels.insert(process, InputLevel::after(before, &input, &self.settings));
    }

    /// What the kernel handed on counts for processes that were not rated.
    fn hand_over(&mut self, handover: &Handover) {
        let ceiling = self.settings.ceiling;
        let Handover { from, to, how, input, output, at } = *handover;
        let class = self.rated.get(&from).map_or(Class::Hidden, |rated| rated.class);
        let rated = self.rated.entry(to).or_insert_with(|| Rated { class, ..Rated::fresh(at) });
        let cause = Cause::Handed { from, how };
        rated.input.lift(input.clamp(0.0, ceiling), cause.clone());
        rated.output.lift(output.clamp(0.0, ceiling), cause);
    }

    fn spread(
        &self,
        sources: &BTreeMap<Process, f64>,
        direction: Direction,
    ) -> BTreeMap<Process, Reached> {
        propagate(&self.graph, sources, direction, &self.hubs, &self.settings)
    }

    fn follow(&mut self, clients: &[Client], sound_servers: &[Process]) {
        let input_sources: BTreeMap<Process, f64> =
            self.levels.iter().map(|(&process, level)| (process, level.now(self.now))).collect();
        let screen = screen_ratings(clients, &self.settings);
        let sound = sound_ratings(clients, &self.settings);
        let mut output_sources = screen.clone();
        for (&process, rating) in &sound {
            let output = output_sources.entry(process).or_default();
            *output = (*output + rating).min(self.settings.ceiling);
        }
        let inputs = self.spread(&input_sources, Direction::Along);
        let outputs = self.spread(&output_sources, Direction::Against);
        let mut news: BTreeMap<Process, [Option<(f64, Cause)>; 2]> = BTreeMap::new();
        for (kind, reached) in [inputs, outputs].into_iter().enumerate() {
            for (process, reached) in reached {
                let new = (reached.rating, Cause::Path(reached.path));
                news.entry(process).or_default()[kind] = Some(new);
            }
        }
        let greatest = |sources: &BTreeMap<Process, f64>, server: Process| {
            let others = sources.iter().filter(|(process, _)| **process != server);
            others.max_by(|a, b| a.1.total_cmp(b.1)).map(|(&client, &rating)| (client, rating))
        };
        for &server in &self.servers {
            for (kind, sources) in [&input_sources, &screen].into_iter().enumerate() {
                if let Some((client, rating)) = greatest(sources, server) {
                    news.entry(server).or_default()[kind] = Some((rating, Cause::Serves(client)));
                }
            }
        }
        for &server in sound_servers {
            if let Some((client, rating)) = greatest(&sound, server) {
                news.entry(server).or_default()[1] = Some((rating, Cause::Plays(client)));
            }
        }
        for process in news.keys() {
            self.rated.entry(*process).or_insert_with(|| Rated::fresh(self.now));
        }
        for (&process, rated) in &mut self.rated {
            let [input, output] = news.remove(&process).unwrap_or_default();
            let parts = |new: Option<(f64, Cause)>| {
                new.map_or((0.0, None), |(new, cause)| (new, Some(cause)))
            };
            let ((input, input_cause), (output, output_cause)) = (parts(input), parts(output));
            rated.input.follow(input, input_cause);
            rated.output.follow(output, output_cause);
        }
        self.let_go();
        self.classify();
    }

    /// Processes whose ratings have faded are rated no more, and remembered.
    fn let_go(&mut self) {
        let (least, until) = (self.settings.least, self.now);
        let faded = |_: &Process, rated: &mut Rated| {
            rated.input.value < least && rated.output.value < least
        };
        let faded = self.rated.extract_if(.., faded);
        self.past.extend(faded.map(|(process, rated)| (process, Past { rated, until })));
        self.past.retain(|process, _| !self.rated.contains_key(process));
        while self.past.len() > MOST_PAST {
            let oldest = self.past.iter().min_by_key(|(_, past)| past.until);
            let Some(oldest) = oldest.map(|(&process, _)| process) else { break };
            self.past.remove(&oldest);
        }
    }

    /// A client has a class of its own; another process has that of the best client whose rating
    /// reaches it, and keeps it while it fades.
    fn classify(&mut self) {
        let own = |process: &Process| {
            let level = self.levels.get(process).map_or(0.0, |level| level.now(self.now));
            self.clients
                .get(process)
                .map(|client| Class::of(client, level))
                .or_else(|| (level > 0.0).then_some(Class::Focused))
        };
        for (process, rated) in &mut self.rated {
            let origin = |rating: &Rating| match &rating.cause {
                Some(Cause::Path(path)) => path.first().and_then(own),
                Some(Cause::Serves(client) | Cause::Plays(client)) => own(client),
                Some(Cause::Handed { .. }) | None => None,
            };
            let live = |rating: &Rating| if rating.new > 0.0 { origin(rating) } else { None };
            let reached = [live(&rated.input), live(&rated.output)];
            if let Some(class) = own(process).into_iter().chain(reached.into_iter().flatten()).min()
            {
                rated.class = class;
            }
        }
    }

    fn bound(&mut self) {
        if self.rated.len() > MOST_RATED {
            let sum = |rated: &Rated| rated.input.value + rated.output.value;
            let mut order: Vec<_> =
                self.rated.iter().map(|(&process, rated)| (sum(rated), process)).collect();
            order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            for (_, process) in &order[MOST_RATED..] {
                self.rated.remove(process);
            }
        }
        // Facts about a process that no edge, rating or client speaks of are not needed, unless it
        // is a hub by its name; those of its elders are.
        let mut needed: BTreeSet<Process> = self.rated.keys().copied().collect();
        needed.extend(self.clients.keys());
        for (&process, past) in &self.past {
            needed.insert(process);
            needed.extend(past.rated.input.through().iter().chain(past.rated.output.through()));
        }
        needed.extend(self.graph.edges().flat_map(|(from, to, _)| [from, to]));
        let mut open: Vec<Process> = needed.iter().copied().collect();
        while let Some(process) = open.pop() {
            let parent = self.programs.get(&process).and_then(|program| program.parent);
            open.extend(parent.filter(|&parent| needed.insert(parent)));
        }
        let named = |program: &Program| self.settings.hubs.contains(&program.name);
        self.programs.retain(|process, program| needed.contains(process) || named(program));
    }

    pub fn rated(&self) -> &BTreeMap<Process, Rated> {
        &self.rated
    }

    /// Whether facts about this process are known.
    pub fn knows(&self, process: Process) -> bool {
        self.programs.contains_key(&process)
    }

    pub fn is_hub(&self, process: Process) -> bool {
        self.hubs.contains(&process)
    }

    pub fn hubs(&self) -> impl Iterator<Item = Process> {
        self.hubs.iter().copied()
    }

    pub fn name(&self, process: Process) -> String {
        self.programs.get(&process).map_or_else(String::new, |program| program.name.clone())
    }

    /// `input_rating` and `output_rating` as policies read them: 0 to 1000.
    pub fn values(&self, rated: &Rated) -> [i64; 2] {
        let value = |rating: &Rating| {
            (rating.value / self.settings.ceiling * FULL_VALUE as f64).round() as i64
        };
        [value(&rated.input), value(&rated.output)]
    }

    /// A picture of the rated processes, the hubs and what lies between them.
    pub fn dot(&self) -> String {
        let part = |process: &Process, rating: fn(&Rated) -> &Rating| {
            self.rated.get(process).map_or(0.0, |rated| rating(rated).value / self.settings.ceiling)
        };
        let look = |process: &Process| Look {
            name: self.name(*process),
            input: part(process, |rated| &rated.input),
            output: part(process, |rated| &rated.output),
            hub: self.hubs.contains(process),
        };
        let near = |process: &Process| {
            self.graph.edges().any(|(from, to, _)| from == *process || to == *process)
        };
        let hubs = self.hubs.iter().filter(|hub| near(hub));
        let shown = self.rated.keys().chain(hubs);
        dot(&self.graph, &shown.map(|process| (*process, look(process))).collect())
    }
}
