//! What can be heard: the streams that play on a sound server, and the processes behind them.
//!
//! PulseAudio answers, and so does PipeWire by its pipewire-pulse, which also tells of clients that
//! speak PipeWire's own protocol. The server says when a stream, a client or a sink has changed;
//! only then the monitor asks again.
//!
//! Whose process it is: of a client of PipeWire itself the server knows the kernel's word
//! (`pipewire.sec.pid`). A client that speaks PulseAudio's protocol says its process number
//! itself. It counts if that process runs on this machine, belongs to the server's user, and runs
//! the program that the client claims; so a number out of a container, or of another user's
//! process, counts for nobody.

use std::ffi::CStr;
use std::io::{BufReader, Cursor, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attune_linux::poll;
use attune_linux::process::user_of;
use pulseaudio::protocol::{
    AuthParams, AuthReply, ClientInfo, ClientInfoList, Command, CommandTag, DESCRIPTOR_SIZE, Prop,
    Props, ProtocolError, ServerInfo, SetClientNameReply, SinkInfo, SinkInfoList, SinkInputInfo,
    SinkInputInfoList, SubscriptionMask, TagStructReader, read_ack_message, read_descriptor,
    read_reply_message, write_command_message,
};

use crate::process::{Process, named};

/// A server that does not answer for so long counts as gone.
const PATIENCE: Duration = Duration::from_millis(250);
/// Bytes of an answer.
const LONGEST: u32 = 4 << 20;
const COOKIE_BYTES: usize = 256;
/// The version of the protocol that is spoken at most: that of PulseAudio 12.
const VERSION: u16 = 32;
/// Processes that serve sound, by name.
const SERVERS: [&str; 3] = ["pulseaudio", "pipewire", "pipewire-pulse"];

#[derive(Debug, thiserror::Error)]
pub enum SoundError {
    #[error(
        "no sound server is found: neither PULSE_SERVER nor XDG_RUNTIME_DIR leads to its socket"
    )]
    Nowhere,
    #[error("the sound server at {place} does not answer: {what}")]
    Gone { place: String, what: String },
}

pub struct Sound {
    place: String,
    stream: BufReader<UnixStream>,
    version: u16,
    /// The number of the next question.
    number: u32,
    trust: Trust,
    servers: Vec<Process>,
    changed: bool,
    playing: Vec<Process>,
}

/// What a client's properties are worth.
struct Trust {
    /// PipeWire keeps clients from writing what it says about them.
    is_pipewire: bool,
    /// The user whose server it is.
    user: u32,
    host: Vec<u8>,
}

impl Sound {
    /// `socket`: the server's; None: where the environment says that it is.
    pub fn connect(socket: Option<&Path>) -> Result<Sound, SoundError> {
        let found = || socket.map(Path::to_owned).or_else(pulseaudio::socket_path_from_env);
        let path = found().ok_or(SoundError::Nowhere)?;
        Sound::start(&path).map_err(|what| gone(&path.display().to_string(), &what))
    }

    fn start(path: &PathBuf) -> Result<Sound, ProtocolError> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        // Whose socket it is: its listener may be the service manager's.
        let user = path.metadata()?.uid();
        let names = SERVERS.map(String::from);
        let servers = named(&names).into_iter().map(|facts| facts.process);
        let host = std::fs::read("/proc/sys/kernel/hostname")?.trim_ascii_end().to_owned();
        let mut sound = Sound {
            place: path.display().to_string(),
            stream: BufReader::new(stream),
            version: VERSION,
            number: 0,
            trust: Trust { is_pipewire: false, user, host },
            servers: servers.filter(|server| user_of(server.pid).ok() == Some(user)).collect(),
            changed: true,
            playing: Vec::new(),
        };
        let cookie = pulseaudio::cookie_path_from_env().and_then(|path| std::fs::read(path).ok());
        // Where the server knows the user anyway, any of the right length does.
        let cookie = cookie.unwrap_or_else(|| vec![0; COOKIE_BYTES]);
        let auth =
            AuthParams { version: VERSION, supports_shm: false, supports_memfd: false, cookie };
        let welcome: AuthReply = sound.ask(&Command::Auth(auth), read_reply_message)?;
        sound.version = welcome.version.min(VERSION);
        let mut properties = Props::new();
        properties.set(Prop::ApplicationName, c"attune focus");
        let name = Command::SetClientName(properties);
        let _: SetClientNameReply = sound.ask(&name, read_reply_message)?;
        let info: ServerInfo = sound.ask(&Command::GetServerInfo, read_reply_message)?;
        let is_pipewire = |name: &CStr| name.to_string_lossy().contains("PipeWire");
        sound.trust.is_pipewire = info.server_name.as_deref().is_some_and(is_pipewire);
        let mask = SubscriptionMask::SINK | SubscriptionMask::SINK_INPUT | SubscriptionMask::CLIENT;
        sound.ask(&Command::Subscribe(mask), |message, _| {
            read_ack_message(message).map(|number| (number, ()))
        })?;
        Ok(sound)
    }

    /// The processes that serve it, as far as they run on this machine.
    pub fn servers(&self) -> &[Process] {
        &self.servers
    }

    /// The processes that can be heard now.
    pub fn playing(&mut self) -> Result<&[Process], SoundError> {
        self.follow().map_err(|what| gone(&self.place, &what))?;
        Ok(&self.playing)
    }

    fn follow(&mut self) -> Result<(), ProtocolError> {
        while !self.stream.buffer().is_empty() || poll::is_readable(self.stream.get_ref())? {
            // All that comes unasked says that something has changed.
            self.message()?;
            self.changed = true;
        }
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        let sinks: SinkInfoList = self.ask(&Command::GetSinkInfoList, read_reply_message)?;
        let streams: SinkInputInfoList =
            self.ask(&Command::GetSinkInputInfoList, read_reply_message)?;
        let clients: ClientInfoList = self.ask(&Command::GetClientInfoList, read_reply_message)?;
        let client = |stream: &SinkInputInfo| {
            clients.iter().find(|client| Some(client.index) == stream.client_index)
        };
        let heard = streams.iter().filter(|stream| is_heard(stream, &sinks)).filter_map(client);
        self.playing = heard.filter_map(|client| self.trust.process(client)).collect();
        self.playing.sort();
        self.playing.dedup();
        Ok(())
    }

    fn ask<T>(
        &mut self,
        command: &Command,
        read: impl Fn(&mut Cursor<Vec<u8>>, u16) -> Result<(u32, T), ProtocolError>,
    ) -> Result<T, ProtocolError> {
        let number = self.number;
        self.number = number.wrapping_add(1);
        write_command_message(self.stream.get_mut(), number, command, self.version)?;
        loop {
            let message = self.message()?;
            let mut body = &message[DESCRIPTOR_SIZE..];
            let tag: CommandTag = TagStructReader::new(&mut body, self.version).read_enum()?;
            if matches!(tag, CommandTag::Reply | CommandTag::Error) {
                let (answered, answer) = read(&mut Cursor::new(message), self.version)?;
                if answered == number {
                    return Ok(answer);
                }
            }
            self.changed = true;
        }
    }

    /// One whole message.
    fn message(&mut self) -> Result<Vec<u8>, ProtocolError> {
        let mut bytes = vec![0; DESCRIPTOR_SIZE];
        self.stream.read_exact(&mut bytes)?;
        let length = read_descriptor(&mut bytes.as_slice())?.length;
        if length > LONGEST {
            return Err(ProtocolError::Invalid(format!("an answer of {length} bytes")));
        }
        bytes.resize(DESCRIPTOR_SIZE + length as usize, 0);
        self.stream.read_exact(&mut bytes[DESCRIPTOR_SIZE..])?;
        Ok(bytes)
    }
}

fn gone(place: &str, what: &ProtocolError) -> SoundError {
    SoundError::Gone { place: place.to_owned(), what: what.to_string() }
}

/// Neither paused, nor muted, nor turned down, nor played into a sink that is.
fn is_heard(stream: &SinkInputInfo, sinks: &[SinkInfo]) -> bool {
    let is_loud = |volume: &pulseaudio::protocol::ChannelVolume| {
        volume.channels().iter().any(|volume| volume.as_u32() > 0)
    };
    let sink = sinks.iter().find(|sink| sink.index == stream.sink_index);
    let is_on = |sink: &SinkInfo| !sink.muted && is_loud(&sink.cvolume);
    let is_loud = !stream.has_volume || is_loud(&stream.cvolume);
    !stream.corked && !stream.muted && is_loud && sink.is_some_and(is_on)
}

impl Trust {
    fn process(&self, client: &ClientInfo) -> Option<Process> {
        let property = |name: &CStr| {
            let value = client.props.get_bytes(name)?;
            Some(value.strip_suffix(&[0]).unwrap_or(value))
        };
        let number = |name| str::from_utf8(property(name)?).ok()?.parse().ok();
        let speaks_pulse = property(c"client.api") == Some(b"pipewire-pulse");
        if self.is_pipewire && !speaks_pulse {
            return number(c"pipewire.sec.pid").and_then(Process::now);
        }
        let pid: u32 = number(c"application.process.id")?;
        let program = property(c"application.process.binary")?;
        let here = property(c"application.process.host") == Some(&self.host);
        let process = Process::now(pid)?;
        let is_so = here && user_of(pid).ok() == Some(self.user) && runs(pid, program);
        is_so.then_some(process)
    }
}

/// Whether the process runs the program of this file name. False if the kernel does not tell.
fn runs(pid: u32, program: &[u8]) -> bool {
    let link = std::fs::read_link(format!("/proc/{pid}/exe"));
    let name = |path: &PathBuf| path.file_name().map(|name| name.as_encoded_bytes().to_owned());
    link.ok().as_ref().and_then(name).is_some_and(|name| name == program)
}

#[cfg(test)]
mod tests {
    use pulseaudio::protocol::{ChannelVolume, Volume};

    use super::*;

    fn trust(is_pipewire: bool) -> Trust {
        let user = user_of(std::process::id()).unwrap();
        Trust { is_pipewire, user, host: b"here".to_vec() }
    }

    fn client(properties: &[(&CStr, &str)]) -> ClientInfo {
        let mut client = ClientInfo::default();
        for (name, value) in properties {
            client.props.set_bytes(name, format!("{value}\0"));
        }
        client
    }

    /// What this test would say of itself, with a change.
    fn claim(name: &CStr, value: &str) -> ClientInfo {
        let exe = std::env::current_exe().unwrap();
        let pid = std::process::id().to_string();
        let mut said = client(&[
            (c"application.process.id", &pid),
            (c"application.process.binary", exe.file_name().unwrap().to_str().unwrap()),
            (c"application.process.host", "here"),
        ]);
        said.props.set_bytes(name, value);
        said
    }

    #[test]
    fn a_claim_counts_if_the_process_exists_and_is_what_the_client_says() {
        let own = Process::now(std::process::id());
        let trust = trust(false);
        assert_eq!(trust.process(&claim(c"media.name", "a song")), own);
        for (name, value) in [
            // A container's own number, and one that nobody has.
            (c"application.process.id", "1"),
            (c"application.process.id", "4194305"),
            (c"application.process.id", "-1"),
            (c"application.process.binary", "firefox"),
            (c"application.process.host", "elsewhere"),
        ] {
            assert_eq!(trust.process(&claim(name, value)), None, "{name:?} {value}");
        }
        let other = Trust { user: trust.user + 1, ..trust };
        assert_eq!(other.process(&claim(c"media.name", "a song")), None, "another user's process");
    }

    #[test]
    fn of_pipewires_own_clients_the_kernels_word_counts_and_no_other() {
        let own = std::process::id();
        let kernels = (c"pipewire.sec.pid", own.to_string());
        let lying = client(&[(kernels.0, &kernels.1), (c"application.process.id", "1")]);
        assert_eq!(trust(true).process(&lying), Process::now(own));
        // What the same client would get from PulseAudio, which lets it write anything.
        assert_eq!(trust(false).process(&lying), None);
        let mut pulse = claim(kernels.0, "1");
        pulse.props.set_bytes(c"client.api", "pipewire-pulse");
        assert_eq!(trust(true).process(&pulse), Process::now(own));
    }

    #[test]
    fn a_stream_that_is_paused_muted_or_turned_down_is_not_heard() {
        let loud = |raw| {
            let mut volume = ChannelVolume::empty();
            volume.push(Volume::from_u32_clamped(raw));
            volume
        };
        let sink = SinkInfo { index: 3, cvolume: loud(50), ..SinkInfo::default() };
        let stream = SinkInputInfo {
            sink_index: 3,
            has_volume: true,
            cvolume: loud(50),
            ..SinkInputInfo::default()
        };
        let is_heard = |stream: &SinkInputInfo, sink: &SinkInfo| {
            super::is_heard(stream, std::slice::from_ref(sink))
        };
        assert!(is_heard(&stream, &sink));
        assert!(!is_heard(&SinkInputInfo { corked: true, ..stream.clone() }, &sink));
        assert!(!is_heard(&SinkInputInfo { muted: true, ..stream.clone() }, &sink));
        assert!(!is_heard(&SinkInputInfo { cvolume: loud(0), ..stream.clone() }, &sink));
        assert!(!is_heard(&SinkInputInfo { sink_index: 4, ..stream.clone() }, &sink));
        assert!(!is_heard(&stream, &SinkInfo { muted: true, ..sink.clone() }));
        assert!(!is_heard(&stream, &SinkInfo { cvolume: loud(0), ..sink.clone() }));
    }
}
