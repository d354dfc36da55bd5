//! The sound, as a sound server of the test's own hears it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::playing::{ffmpeg, player, scratch, summary};

/// A sound server of a test's own, with a sink that nobody hears, and what comes there. Both are
/// killed when dropped.
struct SoundServer {
    server: Child,
    recorder: Child,
    address: String,
    heard: PathBuf,
}

impl SoundServer {
    fn start() -> SoundServer {
        let folder = scratch().join("sound");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let (socket, heard) = (folder.join("socket"), folder.join("heard"));
        let address = format!("unix:{}", socket.display());
        let own = |program: &str| {
            let mut command = Command::new(program);
            let variables = ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "PULSE_RUNTIME_PATH"];
            command.envs(variables.map(|name| (name, &folder))).env("PULSE_SERVER", &address);
            command.stdin(Stdio::null()).stderr(Stdio::null());
            command
        };
        let mut command = own("pulseaudio");
        command.env_remove("PULSE_SERVER").args(["-n", "--daemonize=no", "--use-pid-file=no"]);
        command.args([
            "--exit-idle-time=-1",
            "--disable-shm=yes",
            "--realtime=no",
            "--high-priority=no",
        ]);
        command.arg(format!(
            "--load=module-native-protocol-unix socket={} auth-anonymous=1",
            socket.display()
        ));
        command.arg("--load=module-null-sink sink_name=film format=s16le rate=48000 channels=2");
        let server = command.stdout(Stdio::null()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(90);
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < patience, "the sound server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut command = own("parec");
        command.args([
            "--device=film.monitor",
            "--raw",
            "--format=s16le",
            "--rate=48000",
            "--channels=2",
            "--latency-msec=50",
        ]);
        let recorder = command.stdout(fs::File::create(&heard).unwrap()).spawn().unwrap();
        let server = SoundServer { server, recorder, address, heard };
        // A recorder that comes makes the sink anew, after seconds of silence that it had in store.
        while server.heard().len() < 24_000 {
            assert!(Instant::now() < patience, "nothing is recorded");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Samples of the left side, so far.
    fn heard(&self) -> Vec<i16> {
        left(&fs::read(&self.heard).unwrap())
    }
}

impl Drop for SoundServer {
    fn drop(&mut self) {
        for child in [&mut self.recorder, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn left(samples: &[u8]) -> Vec<i16> {
    samples.chunks_exact(4).map(|both| i16::from_le_bytes([both[0], both[1]])).collect()
}

/// How much of the sound was heard as it is and in one piece: its largest part that lies in `heard`
/// with nothing between.
fn in_one_piece(sound: &[i16], heard: &[i16]) -> f64 {
    const WORD: usize = 64;
    let near = |(a, b): (&i16, &i16)| a.abs_diff(*b) <= 2;
    // Noise: so many samples are nowhere twice.
    let is_at = |at: usize, word: &[i16]| word.iter().zip(&heard[at..]).all(near);
    let pieces = sound.chunks_exact(WORD).step_by(sound.len() / WORD / 8).enumerate().map(
        |(number, word)| {
            let in_sound = number * (sound.len() / WORD / 8) * WORD;
            let found = (0..heard.len().saturating_sub(WORD)).find(|at| is_at(*at, word));
            let Some(at) = found else { return 0 };
            let after =
                sound[in_sound..].iter().zip(&heard[at..]).take_while(|pair| near(*pair)).count();
            let before = sound[..in_sound]
                .iter()
                .rev()
                .zip(heard[..at].iter().rev())
                .take_while(|pair| near(*pair));
            after + before.count()
        },
    );
    pieces.max().unwrap_or(0) as f64 / sound.len() as f64
}

#[test]
fn a_sound_server_gets_the_films_sound_whole() {
    let Some(player) = player() else { return };
    if Command::new("pulseaudio").arg("--version").output().is_err()
        || Command::new("parec").arg("--version").output().is_err()
    {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "pulseaudio and parec must be there");
        eprintln!("not tested: needs pulseaudio and parec; tools/setup.sh test installs them");
        return;
    }
    ffmpeg(
        "-f lavfi -i color=red:s=64x64:r=25:d=2 -f lavfi -i anoisesrc=a=0.5:d=2:r=48000:seed=7 \
            -c:v libx264 -preset ultrafast \
         -c:a pcm_s16le -ac 2 noise.mkv",
    );
    ffmpeg("-i noise.mkv -map 0:a -f s16le noise.raw");
    let sound = left(&fs::read(scratch().join("noise.raw")).unwrap());
    assert_eq!(sound.len(), 96_000);
    let plays = || {
        let server = SoundServer::start();
        let mut command = Command::new(player);
        command
            .args(["--display", "null", "--sound", "pulse", "--json"])
            .arg(scratch().join("noise.mkv"));
        let done = command.env("PULSE_SERVER", &server.address).output().unwrap();
        let told = summary(&done)["sound"].clone();
        assert_eq!((&told["output"], &told["broken"]), (&"pulse".into(), &0.into()), "{done:?}");
        // What the recorder has got is not in its file at once.
        std::thread::sleep(Duration::from_millis(500));
        let whole = in_one_piece(&sound, &server.heard());
        eprintln!("{whole} of the sound in one piece; {told}");
        whole > 0.97 && told["missing_s"] == 0.0
    };
    // On a busy machine the server itself may run dry.
    let patience = Instant::now() + Duration::from_secs(180);
    while !plays() {
        assert!(Instant::now() < patience, "the sound is never whole");
    }
}
