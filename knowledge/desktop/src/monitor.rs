//! The loop that joins a display, a sound server and the wake-up graph: it makes observations,
//! feeds them to the ratings and keeps the kernel's table up to date.
//!
//! Without the privilege to count wake-ups the clients of the display and its server are rated all
//! the same. When the display goes, ratings fade, and the monitor tries to connect again. A sound
//! server may come and go as it likes.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use attune_linux::time;

use crate::attention::Attention;
use crate::display::{Display, DisplayError};
use crate::meter::Meter;
use crate::observation::{Client, Observation, Program, SECOND, Second, Time};
use crate::process::{Facts, Process, named};
use crate::settings::Settings;
use crate::sound::{Sound, SoundError};
use crate::wakes::{Change, Row, Wakes};

/// Processes about which /proc is asked in one second; a storm of short ones is not followed.
const MOST_FACTS: usize = 512;
/// And in one go.
const FACTS_AT_ONCE: usize = 16;
/// The monitor goes before ordinary threads, and its second is work for milliseconds on a slow
/// machine. After each part of it the others have the processor for so long, or sound would wait.
const BREATH: Duration = Duration::from_micros(100);
/// A sound server that is not there is looked for so often.
const SOUND_AGAIN: Time = 5 * SECOND;

/// What happened in a step.
#[derive(Debug)]
pub enum News {
    /// Input travelled at once.
    Lifted,
    /// A second is over.
    Second,
    /// The display has gone; ratings fade until it is back.
    Gone(DisplayError),
    Back,
}

type Connect = Box<dyn FnMut() -> Result<Box<dyn Display>, DisplayError>>;
type Listen = Box<dyn FnMut() -> Result<Sound, SoundError>>;

/// A sound server, or why there is none, and when that was found.
struct Ear {
    listen: Listen,
    sound: Result<Sound, (SoundError, Time)>,
}

pub struct Monitor {
    connect: Connect,
    display: Option<Box<dyn Display>>,
    ear: Option<Ear>,
    wakes: Option<Wakes>,
    meter: Option<Meter>,
    attention: Attention,
    next: Time,
}

impl Monitor {
    /// `connect` is called again when the display has gone. `wakes`: None where they cannot be
    /// counted. `seen` gets each observation before it counts.
    pub fn start(
        mut connect: Connect,
        wakes: Option<Wakes>,
        settings: Settings,
        seen: &mut dyn FnMut(&Observation),
    ) -> Result<Monitor, DisplayError> {
        let display = connect()?;
        let hubs = named(&settings.hubs);
        let mut monitor = Monitor {
            connect,
            display: Some(display),
            ear: None,
            wakes,
            meter: None,
            attention: Attention::new(settings),
            next: time::now() + SECOND,
        };
        // The kernel must know the hubs before it hands the first rating on.
        let known = |facts: Facts| {
            let parent = Process::now(facts.parent);
            Program { process: facts.process, name: facts.name, parent }
        };
        monitor.second(hubs.into_iter().map(known).collect(), seen)?;
        Ok(monitor)
    }

    /// Observes sound from now on. `listen` connects to the sound server, and is called again while
    /// there is none.
    pub fn hear(&mut self, mut listen: Listen) {
        let sound = listen().map_err(|error| (error, time::now()));
        self.ear = Some(Ear { listen, sound });
    }

    /// Observes from now on what processes compute, which ratings do not need.
    pub fn measure(&mut self) {
        self.meter = Some(Meter::default());
    }

    /// Why no sound is observed now.
    pub fn unheard(&self) -> Option<&SoundError> {
        self.ear.as_ref()?.sound.as_ref().err().map(|(error, _)| error)
    }

    pub fn attention(&self) -> &Attention {
        &self.attention
    }

    pub fn display(&self) -> Option<&dyn Display> {
        self.display.as_deref()
    }

    pub fn wakes(&self) -> Option<&Wakes> {
        self.wakes.as_ref()
    }

    /// Hands the ratings to the engine that runs, if none has them; to be called now and then.
    /// Returns what has changed about their reader.
    pub fn offer(&mut self) -> Option<Change> {
        // An error means that the program in the kernel has no table; it was loaded with one.
        self.wakes.as_mut().and_then(|wakes| wakes.offer().ok().flatten())
    }

    /// Waits for something to happen, `until` at most, and follows it. `seen` gets each observation
    /// before it counts.
    pub fn step(&mut self, until: Time, seen: &mut dyn FnMut(&Observation)) -> Option<News> {
        let until = until.min(self.next);
        match &mut self.display {
            Some(display) => match display.wait(until) {
                Ok(inputs) => {
                    let mut lifted = false;
                    for input in inputs {
                        lifted |= self.follow(Observation::Input(input), seen);
                    }
                    if lifted {
                        self.publish_lifted();
                        return Some(News::Lifted);
                    }
                }
                Err(error) => {
                    self.display = None;
                    return Some(News::Gone(error));
                }
            },
            None => {
                let left = until.saturating_sub(time::now());
                thread::sleep(Duration::from_nanos(left));
            }
        }
        if time::now() < self.next {
            return None;
        }
        // A machine that stood still has one long second.
        self.next = (self.next + SECOND).max(time::now());
        let back = self.display.is_none() && self.reconnect();
        match self.second(Vec::new(), seen) {
            Ok(()) if back => Some(News::Back),
            Ok(()) => Some(News::Second),
            Err(error) => {
                self.display = None;
                Some(News::Gone(error))
            }
        }
    }

    fn reconnect(&mut self) -> bool {
        self.display = (self.connect)().ok();
        self.display.is_some()
    }

    fn follow(&mut self, observation: Observation, seen: &mut dyn FnMut(&Observation)) -> bool {
        seen(&observation);
        self.attention.observe(&observation)
    }

    fn second(
        &mut self,
        programs: Vec<Program>,
        seen: &mut dyn FnMut(&Observation),
    ) -> Result<(), DisplayError> {
        let mut second = Second { at: time::now(), programs, ..Second::default() };
        let mut gone = None;
        if let Some(display) = &mut self.display {
            match display.clients() {
                Ok(clients) => second.clients = clients,
                Err(error) => gone = Some(error),
            }
            second.servers = display.servers();
            thread::sleep(BREATH);
        }
        if let Some(ear) = &mut self.ear {
            ear.hear(&mut second);
            thread::sleep(BREATH);
        }
        if let Some(wakes) = &self.wakes {
            let ceiling = self.attention.settings().ceiling;
            // What the kernel does not tell this time it tells the next.
            second.wakes = wakes.take().unwrap_or_default();
            thread::sleep(BREATH);
            second.handovers = wakes.handovers(ceiling).unwrap_or_default();
            thread::sleep(BREATH);
        }
        if let Some(meter) = &mut self.meter {
            second.used = meter.take();
        }
        self.inquire(&mut second);
        thread::sleep(BREATH);
        self.follow(Observation::Second(second), seen);
        thread::sleep(BREATH);
        self.publish();
        gone.map_or(Ok(()), Err)
    }

    /// Asks /proc about processes that are new, and about those that are rated: they may have ended
    /// or run another program by now.
    fn inquire(&self, second: &mut Second) {
        let mut asked: BTreeSet<Process> = self.attention.rated().keys().copied().collect();
        let ends = second.wakes.iter().flat_map(|wakes| [wakes.from, wakes.to]);
        let clients = second.clients.iter().map(|client| client.process);
        let handed = second.handovers.iter().flat_map(|handover| [handover.from, handover.to]);
        let new = ends.chain(clients).chain(handed).chain(second.servers.iter().copied());
        let new = new.chain(second.sound_servers.iter().copied());
        let new = new.chain(second.used.iter().map(|used| used.process));
        asked.extend(new.filter(|&process| !self.attention.knows(process)));
        // Their ancestors tell which process started which.
        let mut open: Vec<Process> = asked.into_iter().take(MOST_FACTS).collect();
        let mut done: BTreeSet<Process> = open.iter().copied().collect();
        let mut read = 0;
        while let Some(process) = open.pop() {
            read += 1;
            if read % FACTS_AT_ONCE == 0 {
                thread::sleep(BREATH);
            }
            let facts = Facts::read(process.pid).filter(|facts| facts.process == process);
            let Some(facts) = facts else {
                second.ended.push(process);
                continue;
            };
            let parent = Process::now(facts.parent);
            let unknown = |parent: &Process| !self.attention.knows(*parent);
            if let Some(parent) = parent.filter(unknown)
                && done.len() < 2 * MOST_FACTS
                && done.insert(parent)
            {
                open.push(parent);
            }
            second.programs.push(Program { process, name: facts.name, parent });
        }
    }

    fn rows(&self) -> Vec<Row> {
        let row = |(&process, rated)| {
            let [input, output] = self.attention.values(rated);
            Row { process, input, output, hub: self.attention.is_hub(process) }
        };
        let rated = self.attention.rated().iter().map(row);
        // A hub has a row in any case, so that nothing is handed to it, or by it.
        let unrated = self.attention.hubs().filter(|hub| !self.attention.rated().contains_key(hub));
        let hubs = unrated.map(|process| Row { process, input: 0, output: 0, hub: true });
        rated.chain(hubs).collect()
    }

    fn publish(&self) {
        if let Some(wakes) = &self.wakes {
            // A kernel that takes no row now is asked again in a second.
            let _ = wakes.publish(&self.rows());
        }
    }

    /// Between two seconds rows are added and lifted only: what the kernel has handed on meanwhile
    /// must stay.
    fn publish_lifted(&self) {
        if let Some(wakes) = &self.wakes {
            let _ = wakes.put(&self.rows());
        }
    }
}

impl Ear {
    fn hear(&mut self, second: &mut Second) {
        if let Err((_, since)) = self.sound
            && second.at >= since + SOUND_AGAIN
        {
            self.sound = (self.listen)().map_err(|error| (error, second.at));
        }
        let Ok(sound) = &mut self.sound else { return };
        let playing = match sound.playing() {
            Ok(playing) => playing,
            Err(error) => {
                self.sound = Err((error, second.at));
                return;
            }
        };
        for &process in playing {
            match second.clients.iter_mut().find(|client| client.process == process) {
                Some(client) => client.audible = true,
                None => second.clients.push(Client { audible: true, ..Client::unseen(process) }),
            }
        }
        second.sound_servers = sound.servers().to_vec();
    }
}
