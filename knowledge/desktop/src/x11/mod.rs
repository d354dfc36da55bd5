//! An X server, unmodified: input by RECORD (or, without it, raw events and the focus), output by
//! Damage, windows by the window tree, processes by X-Resource.
//!
//! One connection asks and listens; RECORD has two of its own. All three are left out of what is
//! observed.

mod clients;
mod damage;
mod input;
mod tree;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use attune_linux::{poll, socket, time};
use x11rb::connection::{Connection, RequestConnection};
use x11rb::errors::{ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::protocol::xinput::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, Window,
};
use x11rb::protocol::{Event, damage as damage_protocol, res, shape, xfixes};
use x11rb::rust_connection::RustConnection;

use self::clients::Clients;
use self::damage::DamageWatch;
use self::input::{Recording, What};
use self::tree::{Content, Owners, Tree};
use crate::display::{Display, DisplayError};
use crate::observation::{Client, INTERVAL, Input, Interaction, SECOND, Time};
use crate::process::Process;
use crate::region::Rect;

/// Windows are looked at anew at most so often, however often they change. A walk asks the server
/// for all of them, at least so often, since a window's shape changes without a word.
const LOOK_AT_MOST: Time = SECOND / 5;
const WALK_AT_LEAST: Time = 5 * SECOND;
/// Input events that are kept between two calls; a flood says no more than its first ones.
const MOST_INPUT: usize = 4096;

/// Where it is known from which client gets an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// RECORD where the server has it, raw events otherwise.
    Best,
    /// Raw events and the focus: nothing is recorded, and grabs and input methods mislead.
    Raw,
}

pub struct X11 {
    name: String,
    connection: RustConnection,
    recording: Option<Recording>,
    bell: UnixStream,
    server: Option<Process>,
    has_shape: bool,
    is_xwayland: bool,
    active_window: u32,
    owners: Owners,
    clients: Clients,
    damage: DamageWatch,
    tree: Tree,
    /// Those of the tree, as they were when somebody looked.
    contents: Vec<Content>,
    /// The client that has the focus.
    focused: Option<u32>,
    /// The tree is not what the server has any more.
    tree_changed: bool,
    /// The tree has followed a window that moved.
    moved: bool,
    looked: Time,
    walked: Time,
    walks: u64,
    fetched: Time,
    told: Time,
    pending: Vec<(u32, Interaction, Time)>,
}

impl X11 {
    /// `display`: such as `:0`; None: what DISPLAY says.
    pub fn connect(display: Option<&str>, source: InputSource) -> Result<X11, DisplayError> {
        let name = match display {
            Some(display) => display.to_owned(),
            None => std::env::var("DISPLAY").map_err(|_| DisplayError::Connect {
                display: "that DISPLAY names".to_owned(),
                what: "DISPLAY is not set; set it, or name a display such as :0".to_owned(),
            })?,
        };
        let (connection, _) = x11rb::connect(Some(&name)).map_err(|error| {
            DisplayError::Connect { display: name.clone(), what: error.to_string() }
        })?;
        X11::start(name.clone(), connection, source).map_err(|problem| match problem {
            Problem::Lacks(what) => DisplayError::Lacks { display: name, what },
            Problem::Gone(what) => DisplayError::Gone { display: name, what },
        })
    }

    fn start(
        name: String,
        connection: RustConnection,
        source: InputSource,
    ) -> Result<X11, Problem> {
        let has =
            |extension| connection.extension_information(extension).map(|found| found.is_some());
        if !has(damage_protocol::X11_EXTENSION_NAME)? || !has(xfixes::X11_EXTENSION_NAME)? {
            return Err(Problem::Lacks("the DAMAGE extension"));
        }
        if !has(res::X11_EXTENSION_NAME)? {
            return Err(Problem::Lacks("the X-Resource extension"));
        }
        let has_shape = has(shape::X11_EXTENSION_NAME)?;
        let is_xwayland = has("XWAYLAND")?;
        damage::agree(&connection)?;
        res::ConnectionExt::res_query_version(&connection, 1, 2)?.reply()?;
        let (bell, ring) = UnixStream::pair().map_err(|error| Problem::Gone(error.to_string()))?;
        for end in [&bell, &ring] {
            end.set_nonblocking(true).map_err(|error| Problem::Gone(error.to_string()))?;
        }
        let recording = match source {
            InputSource::Best => Recording::start(&name, ring)?,
            InputSource::Raw => None,
        };
        let roots: Vec<Window> =
            connection.setup().roots.iter().map(|screen| screen.root).collect();
        let listen = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
        for &root in &roots {
            connection.change_window_attributes(root, &listen)?.check()?;
        }
        if recording.is_none() {
            if !has(xinput::X11_EXTENSION_NAME)? {
                return Err(Problem::Lacks("RECORD and the X Input extension"));
            }
            connection.xinput_xi_query_version(2, 2)?.reply()?;
            let raw = xinput::XIEventMask::RAW_KEY_PRESS
                | xinput::XIEventMask::RAW_BUTTON_PRESS
                | xinput::XIEventMask::RAW_MOTION;
            let all_masters = 1;
            let mask = xinput::EventMask { deviceid: all_masters, mask: vec![raw] };
            for &root in &roots {
                connection.xinput_xi_select_events(root, std::slice::from_ref(&mask))?.check()?;
            }
        }
        let active_window = connection.intern_atom(false, b"_NET_ACTIVE_WINDOW")?.reply()?.atom;
        let owners = Owners { mask: connection.setup().resource_id_mask };
        let own = recording.as_ref().map_or(Vec::new(), |recording| recording.bases.to_vec());
        let own = own.into_iter().chain([connection.setup().resource_id_base]);
        let damage = DamageWatch::start(&connection)?;
        let now = time::now();
        let mut x11 = X11 {
            name,
            server: server_of(&connection),
            clients: Clients::new(owners, own),
            recording,
            bell,
            has_shape,
            is_xwayland,
            active_window,
            owners,
            damage,
            tree: Tree::default(),
            contents: Vec::new(),
            focused: None,
            tree_changed: true,
            moved: false,
            looked: 0,
            walked: 0,
            walks: 0,
            fetched: now,
            told: now,
            pending: Vec::new(),
            connection,
        };
        x11.walk(now)?;
        Ok(x11)
    }

    /// How often it has asked the server for all windows, which costs both of them time.
    pub fn walks(&self) -> u64 {
        self.walks
    }

    fn gone(&self, what: impl ToString) -> DisplayError {
        DisplayError::Gone { display: self.name.clone(), what: what.to_string() }
    }

    /// Takes what has come, without waiting.
    fn listen(&mut self) -> Result<(), Problem> {
        while let Some(event) = self.connection.poll_for_event()? {
            match event {
                Event::DamageNotify(event) => self.damage.drawn(event.damage),
                Event::ConfigureNotify(event) if !self.tree_changed => {
                    self.moved = true;
                    self.tree_changed = !self.tree.moved(&event);
                }
                Event::CreateNotify(_)
                | Event::MapNotify(_)
                | Event::UnmapNotify(_)
                | Event::ReparentNotify(_)
                | Event::CirculateNotify(_)
                | Event::GravityNotify(_) => self.tree_changed = true,
                Event::DestroyNotify(event) => {
                    self.tree_changed = true;
                    self.clients.forget(self.owners.of(event.window));
                }
                Event::XinputRawKeyPress(_) => self.raw(Interaction::Key)?,
                Event::XinputRawButtonPress(event) => self.raw(input::button(event.detail))?,
                Event::XinputRawMotion(_) => self.raw(Interaction::Motion)?,
                _ => {}
            }
        }
        let Some(recording) = &self.recording else { return Ok(()) };
        let delivered = recording
            .take()
            .ok_or_else(|| Problem::Gone("the server ended the recording of input".to_owned()))?;
        for one in delivered {
            match one.what {
                What::Changed => self.clients.forget(one.client),
                What::Input(interaction) => self.came(one.client, interaction, one.at),
            }
        }
        Ok(())
    }

    fn came(&mut self, client: u32, interaction: Interaction, at: Time) {
        if self.pending.len() < MOST_INPUT && client != 0 && !self.clients.is_own(client) {
            self.pending.push((client, interaction, at));
        }
    }

    /// A raw event says what was pressed, not for which client: keys are the focused client's, and
    /// the pointer's are those of the client below it.
    fn raw(&mut self, interaction: Interaction) -> Result<(), Problem> {
        let client = match interaction {
            Interaction::Key => self.focus()?,
            _ => self.below_pointer()?,
        };
        if let Some(client) = client {
            self.came(client, interaction, time::now());
        }
        Ok(())
    }

    fn below_pointer(&self) -> Result<Option<u32>, Problem> {
        for screen in &self.connection.setup().roots {
            let Some(pointer) = there(self.connection.query_pointer(screen.root)?.reply())? else {
                continue;
            };
            let (x, y) = (i32::from(pointer.root_x), i32::from(pointer.root_y));
            let pixel = Rect::new(x, y, 1, 1);
            let here = self.contents.iter().filter(|content| content.root == screen.root);
            let below = here.filter(|content| content.visible.area_of([pixel]) > 0);
            if pointer.same_screen {
                return Ok(below.max_by_key(|content| content.order).map(|content| content.client));
            }
        }
        Ok(None)
    }

    /// The client that keys go to; where that is a window manager's business, the one that it says
    /// is active.
    fn focus(&self) -> Result<Option<u32>, Problem> {
        let draws = |client: u32| self.contents.iter().any(|content| content.client == client);
        let focus = self.connection.get_input_focus()?.reply()?.focus;
        // 0 and 1 stand for no window, and for the one below the pointer.
        let client = Some(self.owners.of(focus)).filter(|&client| focus > 1 && draws(client));
        if client.is_some() {
            return Ok(client);
        }
        for screen in &self.connection.setup().roots {
            let property = self.connection.get_property(
                false,
                screen.root,
                self.active_window,
                AtomEnum::WINDOW,
                0,
                1,
            )?;
            let window = there(property.reply())?
                .and_then(|property| property.value32().and_then(|mut values| values.next()));
            if let Some(window) = window.filter(|&window| window != 0) {
                return Ok(Some(self.owners.of(window)));
            }
        }
        Ok(None)
    }

    /// Follows windows that came, changed or went.
    fn walk(&mut self, now: Time) -> Result<(), Problem> {
        self.tree_changed = false;
        self.walked = now;
        self.walks += 1;
        self.tree = Tree::walk(&self.connection, self.owners, self.has_shape)?;
        self.look(now)
    }

    fn look(&mut self, now: Time) -> Result<(), Problem> {
        self.moved = false;
        self.looked = now;
        let mut contents = self.tree.contents();
        contents.retain(|content| !self.clients.is_own(content.client));
        self.damage.follow(&self.connection, &contents)?;
        self.contents = contents;
        self.connection.flush()?;
        Ok(())
    }

    /// Does what is due, and says when something is due next.
    fn step(&mut self, now: Time) -> Result<Time, Problem> {
        let may_look = now >= self.looked + LOOK_AT_MOST;
        if self.tree_changed && may_look || now >= self.walked + WALK_AT_LEAST {
            self.walk(now)?;
        } else if self.moved && may_look {
            self.look(now)?;
        }
        if self.damage.has_drawn() && now >= self.fetched + INTERVAL {
            self.damage.fetch(&self.connection)?;
            self.fetched = now;
        }
        let mut next = self.walked + WALK_AT_LEAST;
        if self.tree_changed || self.moved {
            next = next.min(self.looked + LOOK_AT_MOST);
        }
        if self.damage.has_drawn() {
            next = next.min(self.fetched + INTERVAL);
        }
        Ok(next)
    }

    fn rest(&self, until: Time) -> Result<(), Problem> {
        self.connection.flush()?;
        let left = until.saturating_sub(time::now());
        let mut ends =
            [self.connection.stream().as_raw_fd(), self.bell.as_raw_fd()].map(poll::readable);
        match poll::wait(&mut ends, left) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                return Err(Problem::Gone(error.to_string()));
            }
            _ => {}
        }
        let mut bytes = [0; 256];
        while matches!((&self.bell).read(&mut bytes), Ok(1..)) {}
        Ok(())
    }

    fn observe(&mut self, until: Time) -> Result<Vec<Input>, Problem> {
        loop {
            self.listen()?;
            let now = time::now();
            let next = self.step(now)?;
            let deliberate = self.pending.iter().any(|(_, what, _)| what.is_deliberate());
            if deliberate || now >= until {
                return self.inputs();
            }
            self.rest(next.min(until))?;
        }
    }

    fn inputs(&mut self) -> Result<Vec<Input>, Problem> {
        let mut inputs = Vec::new();
        for (client, interaction, at) in std::mem::take(&mut self.pending) {
            if let Some(process) = self.clients.process(&self.connection, client)? {
                inputs.push(Input { process, interaction, at });
            }
        }
        Ok(inputs)
    }

    fn stand(&mut self) -> Result<Vec<Client>, Problem> {
        self.listen()?;
        let now = time::now();
        if self.damage.has_drawn() {
            self.damage.fetch(&self.connection)?;
            self.fetched = now;
        }
        self.focused = self.focus()?;
        self.clients.refresh(&self.connection)?;
        let changed = self.damage.take();
        let intervals = (now.saturating_sub(self.told) as f64 / INTERVAL as f64).max(1.0);
        self.told = now;
        let pixels: u64 = self
            .connection
            .setup()
            .roots
            .iter()
            .map(|screen| u64::from(screen.width_in_pixels) * u64::from(screen.height_in_pixels))
            .sum();
        let pixels = pixels.max(1) as f64;
        // Two connections of one process are one client.
        let mut found: BTreeMap<Process, Client> = BTreeMap::new();
        let mut add = |process: Process, changed: u64, visible: u64, focused: bool| {
            let client = found.entry(process).or_insert(Client::unseen(process));
            client.changed = (client.changed + changed as f64 / pixels / intervals).min(1.0);
            client.visible = (client.visible + visible as f64 / pixels).min(1.0);
            client.focused |= focused;
        };
        for content in &self.contents {
            if let Some(process) = self.clients.process(&self.connection, content.client)? {
                let focused = self.focused == Some(content.client);
                add(process, 0, content.visible.area(), focused);
            }
        }
        for (client, changed) in changed {
            if let Some(process) = self.clients.process(&self.connection, client)? {
                add(process, changed, 0, false);
            }
        }
        Ok(found.into_values().collect())
    }
}

impl Display for X11 {
    fn name(&self) -> &str {
        &self.name
    }

    fn servers(&self) -> Vec<Process> {
        self.server.into_iter().collect()
    }

    fn limits(&self) -> Vec<String> {
        let mut limits = Vec::new();
        if self.recording.is_none() {
            limits.push(format!(
                "input on {} is not recorded: keys count for the focused client, the pointer for \
                 the client below it",
                self.name
            ));
        }
        if self.is_xwayland {
            limits.push(format!(
                "{} is Xwayland: only X clients are seen, and not what other windows cover",
                self.name
            ));
        }
        if self.server.is_none() {
            limits.push(format!(
                "the server of {} runs elsewhere: its clients on this machine are rated, it is not",
                self.name
            ));
        }
        limits
    }

    fn wait(&mut self, until: Time) -> Result<Vec<Input>, DisplayError> {
        self.observe(until).map_err(|problem| self.gone(problem))
    }

    fn clients(&mut self) -> Result<Vec<Client>, DisplayError> {
        self.stand().map_err(|problem| self.gone(problem))
    }
}

/// None: the window has gone.
fn there<T>(reply: Result<T, ReplyError>) -> Result<Option<T>, ConnectionError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(ReplyError::ConnectionError(error)) => Err(error),
    }
}

/// The process that listens at the server's socket, by the kernel's word.
fn server_of(connection: &RustConnection) -> Option<Process> {
    Process::now(socket::credentials(connection.stream()).ok()?.process)
}

enum Problem {
    Lacks(&'static str),
    Gone(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Problem::Lacks(what) => write!(out, "it lacks {what}"),
            Problem::Gone(what) => out.write_str(what),
        }
    }
}

impl From<ConnectionError> for Problem {
    fn from(error: ConnectionError) -> Problem {
        Problem::Gone(error.to_string())
    }
}

impl From<ReplyError> for Problem {
    fn from(error: ReplyError) -> Problem {
        match error {
            ReplyError::ConnectionError(error) => error.into(),
            ReplyError::X11Error(error) => {
                Problem::Gone(format!("it refused a request: {:?}", error.error_kind))
            }
        }
    }
}

impl From<ReplyOrIdError> for Problem {
    fn from(error: ReplyOrIdError) -> Problem {
        match error {
            ReplyOrIdError::IdsExhausted => Problem::Gone("no resource number is left".to_owned()),
            ReplyOrIdError::ConnectionError(error) => error.into(),
            ReplyOrIdError::X11Error(error) => ReplyError::X11Error(error).into(),
        }
    }
}
