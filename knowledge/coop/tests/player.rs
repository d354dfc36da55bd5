//! The example player (examples/player) on generated films: which frames it shows, in which order and whether they are right; what it leaves
//! out when the CPU is not enough; broken films; an X server and a sound server. Needs FFmpeg, Xvfb, PulseAudio and the libraries that
//! tools/setup.sh test installs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The player, or why it cannot be had here.
fn player() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let libraries = "libavformat libavcodec libswscale libswresample libavutil xcb xcb-shm xcb-sync libpulse";
    let works = |program: &str, arguments: &str| {
        let mut command = Command::new(program);
        command.args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !(works("pkg-config", &format!("--exists {libraries}"))
        && works("ffmpeg", "-version")
        && Command::new("Xvfb").arg("-version").output().is_ok())
    {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "the player's libraries, ffmpeg and Xvfb must be there"
        );
        eprintln!(
            "not tested: needs ffmpeg, Xvfb and the libraries {libraries}; tools/setup.sh test installs them"
        );
        return None;
    }
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let out = scratch().join("bin");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/player");
    let mut make = Command::new("make");
    make.arg("-C").arg(directory).arg(format!("OUT={}", out.display())).arg("CFLAGS=-O2 -g -Werror");
    make.arg(format!("LIBRARY_DIR={}", libraries.display())).env_remove("MAKEFLAGS");
    run(&mut make);
    Some(out.join("player"))
}

/// For what is made once and used by all tests here.
fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<PathBuf> = OnceLock::new();
    SCRATCH.get_or_init(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("player");
        fs::create_dir_all(&scratch).unwrap();
        scratch
    })
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    text
}

#[track_caller]
fn ffmpeg(arguments: &str) -> String {
    run(Command::new("ffmpeg").args(["-v", "error", "-y"]).args(arguments.split(' ')).current_dir(scratch()))
}

/// films.sh's first film of so many seconds.
fn film(name: &str, seconds: u32, size: &str, rate: u32, kind: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/player/films.sh");
    let directory = scratch().join(name);
    run(Command::new(script)
        .arg(&directory)
        .arg("1")
        .arg(seconds.to_string())
        .arg(size)
        .arg(rate.to_string())
        .arg(kind));
    directory.join("film-1.mkv")
}

/// What the player did with these words: its summary, once it has ended well.
#[track_caller]
fn play(player: &Path, arguments: &[&str]) -> Value {
    let done = Command::new(player).args(["--display", "null", "--json"]).args(arguments).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    summary(&done)
}

fn summary(done: &Output) -> Value {
    serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Every frame that was read ended once. How many were read and how many shown, of a kind or of all.
#[track_caller]
fn ended(film: &Value, kind: Option<&str>) -> (u64, u64) {
    let (mut read, mut shown) = (0, 0);
    for row in film["kinds"].as_array().unwrap() {
        let count = |what: &str| number(&row[what]);
        assert_eq!(
            count("read"),
            count("shown") + count("expired") + count("dropped") + count("broken"),
            "{film}"
        );
        if kind.is_none_or(|kind| row["kind"] == kind) {
            (read, shown) = (read + count("read"), shown + count("shown"));
        }
    }
    (read, shown)
}

/// Time in the film (ms) and checksum of each frame that was shown.
fn log(path: &Path) -> Vec<(f64, String)> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines.map(|words| (words[0].parse().unwrap(), words[2].to_owned())).collect()
}

/// What FFmpeg itself makes of the film, in the same form.
fn reference(film: &Path) -> Vec<(f64, String)> {
    let text = ffmpeg(&format!(
        "-i {} -map 0:v -copyts -fps_mode passthrough -enc_time_base -1 -f framecrc -",
        film.display()
    ));
    let time_base = text.lines().find_map(|line| line.strip_prefix("#tb 0: ")).unwrap();
    let (up, down) = time_base.split_once('/').unwrap();
    let ms = 1000.0 * up.parse::<f64>().unwrap() / down.parse::<f64>().unwrap();
    let frame = |line: &str| {
        let words: Vec<_> = line.split(',').map(str::trim).collect();
        (words[2].parse::<f64>().unwrap() * ms, words[5].trim_start_matches("0x").to_owned())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(frame).collect()
}

/// Shown in order, each with the picture that belongs there, so many at least.
#[track_caller]
fn pictures_are_right(shown: &[(f64, String)], reference: &[(f64, String)], least: usize) {
    assert!(shown.len() >= least, "{} of {} shown", shown.len(), reference.len());
    assert!(shown.is_sorted_by(|a, b| a.0 < b.0), "{shown:?}");
    for (time, sum) in shown {
        let right = reference.iter().find(|(at, _)| (at - time).abs() < 2.0);
        assert_eq!(right.map(|(_, right)| right), Some(sum), "at {time} ms");
    }
}

#[test]
fn frames_are_shown_in_order_and_are_right() {
    let Some(player) = player() else { return };
    for (kind, kinds) in [
        ("pyramid", "key reference reference B disposable"),
        ("independent", "every 8th every 4th every 2nd other"),
    ] {
        let film = film(&format!("right-{kind}"), 3, "320x180", 25, kind);
        let list = scratch().join(format!("{kind}.log"));
        let summary =
            play(player, &["--sound", "null", "--log", list.to_str().unwrap(), film.to_str().unwrap()]);
        let reference = reference(&film);
        let (read, shown) = ended(&summary["films"][0], None);
        assert_eq!((read as usize, shown as usize), (reference.len(), log(&list).len()));
        // Other work on the machine may cost many.
        pictures_are_right(&log(&list), &reference, reference.len() / 4);
        let names: Vec<_> = summary["films"][0]["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["kind"].as_str().unwrap())
            .collect();
        assert_eq!(names.join(" "), kinds);
        let sound = |what: &str| summary["sound"][what].as_f64().unwrap();
        assert!((2.5..3.2).contains(&(sound("played_s") + sound("missing_s"))), "{}", summary["sound"]);
        assert_eq!(sound("broken"), 0.0);
    }
}

/// Shows the film so often at the same time, on the first CPU. Of a machine whose other work leaves next to nothing for that, nothing
/// can be learned: it is tried again.
fn play_on_one_cpu(player: &Path, film: &Path, films: usize, list: &Path) -> Value {
    const ALL: &[&str] =
        &["key", "reference", "reference B", "disposable", "every 8th", "every 4th", "every 2nd", "other"];
    for _ in 0..5 {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(player);
        command.args(["--display", "null", "--json", "--sound", "none", "--log"]).arg(list);
        let done = command.args(vec![film; films]).output().unwrap();
        let summary = summary(&done);
        if share(&summary, ALL) > 0.1 {
            assert!(done.status.success(), "{done:?}");
            for film in summary["films"].as_array().unwrap() {
                ended(film, None);
            }
            return summary;
        }
    }
    panic!("not a tenth of {films} films in five runs: other programs have CPU 0");
}

/// Frames of these kinds, over all films.
fn sum(summary: &Value, kinds: &[&str], what: &str) -> u64 {
    let films = summary["films"].as_array().unwrap();
    let rows = films.iter().flat_map(|film| film["kinds"].as_array().unwrap());
    rows.filter(|row| kinds.contains(&row["kind"].as_str().unwrap())).map(|row| number(&row[what])).sum()
}

/// How many of them were shown.
fn share(summary: &Value, kinds: &[&str]) -> f64 {
    sum(summary, kinds, "shown") as f64 / sum(summary, kinds, "read") as f64
}

/// Many heavy films on one CPU, which it is not enough for.
#[test]
fn what_matters_least_is_left_out_when_the_cpu_is_not_enough() {
    let Some(player) = player() else { return };
    let pyramid = "b-pyramid=strict:bframes=3:b-adapt=0:keyint=25:scenecut=0:open-gop=0";
    let kinds = [
        ("pyramid", pyramid, ["key", "reference"], "disposable"),
        ("independent", "keyint=1", ["every 8th", "every 4th"], "other"),
    ];
    for (kind, coding, important, least) in kinds {
        let film = scratch().join(format!("heavy-{kind}.mkv"));
        let noise =
            "-f lavfi -i testsrc2=s=640x360:r=50:d=2,noise=alls=25:allf=t -pix_fmt yuv420p -c:v libx264";
        ffmpeg(&format!("{noise} -preset veryfast -x264-params {coding} {}", film.display()));
        let list = scratch().join(format!("heavy-{kind}.log"));
        // However fast the machine is, so many films are too many.
        let summary = [4, 8, 16, 32, 64]
            .into_iter()
            .map(|films| play_on_one_cpu(player, &film, films, &list))
            .find(|summary| share(summary, &[least]) < 1.0)
            .expect("64 films are too much for one CPU");
        assert!(share(&summary, &important) >= share(&summary, &[least]), "{summary}");
        assert_eq!(sum(&summary, &important, "dropped"), 0, "only what nobody needs makes way: {summary}");
        // Whatever was left out, what is shown is right. The films' lines are mixed: the order is not asked.
        let reference = reference(&film);
        let mut shown = log(&list);
        shown.sort_by(|a, b| a.0.total_cmp(&b.0));
        shown.dedup();
        pictures_are_right(&shown, &reference, 1);
    }
}

#[test]
fn players_of_a_group_cooperate() {
    let Some(player) = player() else { return };
    let film = film("group", 2, "320x180", 25, "pyramid");
    let domain = scratch().join("domain");
    let start = || {
        let mut command = Command::new(player);
        command.args(["--display", "null", "--json", "--group", "1"]).arg(&film);
        command
            .env("ATTUNE_COOP", format!("shared:{}", domain.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for child in [start(), start(), start()] {
        let done = child.wait_with_output().unwrap();
        let (read, shown) = ended(&summary(&done)["films"][0], None);
        assert!(read == 50 && shown > 5, "{shown} of {read}");
    }
}

/// Waits until the process catches (or blocks) SIGTERM, as /proc says.
#[track_caller]
fn until_it_has(child: &Child, mask: &str) {
    let patience = Instant::now() + Duration::from_secs(40);
    let has = |line: &str| {
        let bits = line.strip_prefix(mask).and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        bits.is_some_and(|bits| bits & 1 << (libc::SIGTERM - 1) != 0)
    };
    while !fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap().lines().any(has) {
        assert!(Instant::now() < patience, "{mask} lacks SIGTERM");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends it by SIGTERM. No film is so long that it has ended by itself.
fn told_to_end(child: Child) -> Output {
    // SAFETY: our own child, not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    child.wait_with_output().unwrap()
}

#[test]
fn whoever_ends_it_has_its_summary() {
    let Some(player) = player() else { return };
    let noise = "testsrc2=s=640x360:r=25:d=10,noise=alls=25:allf=t";
    ffmpeg(&format!("-f lavfi -i {noise} -pix_fmt yuv420p -c:v libx264 -preset ultrafast long.mkv"));
    let pipe = scratch().join("pipe.mkv");
    let _ = fs::remove_file(&pipe);
    run(Command::new("mkfifo").arg(&pipe));
    let start = |film: &Path| {
        let mut command = Command::new(player);
        command.args(["--display", "null", "--sound", "none", "--json"]).arg(film);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // Nobody writes into the pipe, so opening it takes for ever.
    let opening = start(&pipe);
    until_it_has(&opening, "SigCgt:");
    let done = told_to_end(opening);
    assert_eq!(done.status.code(), Some(1), "nothing was played: {done:?}");
    assert_eq!(summary(&done)["films"], Value::Array(vec![]));

    // It decodes nearly all of the time at first.
    for round in 0..10 {
        let playing = start(&scratch().join("long.mkv"));
        until_it_has(&playing, "SigBlk:");
        std::thread::sleep(Duration::from_millis(20 + 20 * round));
        let done = told_to_end(playing);
        assert!(matches!(done.status.code(), Some(0 | 1)), "{done:?}");
        assert_eq!(summary(&done)["films"].as_array().map(Vec::len), Some(1), "{done:?}");
    }
}

/// A sound server of a test's own, with a sink that nobody hears, and what comes there. Both are killed when dropped.
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
        command.args(["--exit-idle-time=-1", "--disable-shm=yes", "--realtime=no", "--high-priority=no"]);
        command
            .arg(format!("--load=module-native-protocol-unix socket={} auth-anonymous=1", socket.display()));
        command.arg("--load=module-null-sink sink_name=film format=s16le rate=48000 channels=2");
        let server = command.stdout(Stdio::null()).spawn().unwrap();
        let patience = Instant::now() + Duration::from_secs(40);
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

/// How much of the sound was heard as it is and in one piece: its largest part that lies in `heard` with nothing between.
fn in_one_piece(sound: &[i16], heard: &[i16]) -> f64 {
    const WORD: usize = 64;
    let near = |(a, b): (&i16, &i16)| a.abs_diff(*b) <= 2;
    // Noise: so many samples are nowhere twice.
    let is_at = |at: usize, word: &[i16]| word.iter().zip(&heard[at..]).all(near);
    let pieces =
        sound.chunks_exact(WORD).step_by(sound.len() / WORD / 8).enumerate().map(|(number, word)| {
            let in_sound = number * (sound.len() / WORD / 8) * WORD;
            let found = (0..heard.len().saturating_sub(WORD)).find(|at| is_at(*at, word));
            let Some(at) = found else { return 0 };
            let after = sound[in_sound..].iter().zip(&heard[at..]).take_while(|pair| near(*pair)).count();
            let before =
                sound[..in_sound].iter().rev().zip(heard[..at].iter().rev()).take_while(|pair| near(*pair));
            after + before.count()
        });
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
        "-f lavfi -i color=red:s=64x64:r=25:d=2 -f lavfi -i anoisesrc=a=0.5:d=2:r=48000:seed=7 -c:v libx264 -preset ultrafast \
         -c:a pcm_s16le -ac 2 noise.mkv",
    );
    ffmpeg("-i noise.mkv -map 0:a -f s16le noise.raw");
    let sound = left(&fs::read(scratch().join("noise.raw")).unwrap());
    assert_eq!(sound.len(), 96_000);
    let plays = || {
        let server = SoundServer::start();
        let mut command = Command::new(player);
        command.args(["--display", "null", "--sound", "pulse", "--json"]).arg(scratch().join("noise.mkv"));
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
    assert!((0..5).any(|_| plays()));
}

#[track_caller]
fn refuses(command: &mut Command, sentence: &str) {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.starts_with("player: ") && said.contains(sentence), "{said}");
}

#[test]
fn errors_are_sentences() {
    let Some(player) = player() else { return };
    let film = film("broken", 3, "320x180", 25, "pyramid");
    let whole = fs::read(&film).unwrap();
    let with = |name: &str, bytes: &[u8]| {
        let path = scratch().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let null = |path: &Path| {
        let mut command = Command::new(player);
        command.args(["--display", "null", "--sound", "none", "--json"]).arg(path);
        command
    };
    refuses(&mut null(Path::new("/no/such.mkv")), "/no/such.mkv: No such file or directory");
    refuses(&mut null(&with("text.mkv", b"this is no film\n")), "text.mkv: Invalid data");
    refuses(&mut null(&with("empty.mkv", b"")), "empty.mkv: ");
    let name = whole.windows(15).position(|word| word == b"V_MPEG4/ISO/AVC").unwrap();
    let mut unknown = whole.clone();
    unknown[name..name + 15].copy_from_slice(b"V_MPEG9/ISO/AVC");
    refuses(
        &mut null(&with("unknown.mkv", &unknown)),
        "unknown.mkv: this FFmpeg has no decoder for its pictures",
    );
    ffmpeg("-f lavfi -i sine=d=1 tone.wav");
    refuses(&mut null(&scratch().join("tone.wav")), "tone.wav: there are no pictures in it");
    let mut displayless = Command::new(player);
    refuses(
        displayless.arg(&film).env("DISPLAY", ":987"),
        "display :987: no X server answers there; --display null",
    );
    assert_eq!(null(&film).arg("--sound=loud").output().unwrap().status.code(), Some(2));

    // Cut off, and with bytes that are not the encoder's: it plays what can be played.
    let cut = with("cut.mkv", &whole[..whole.len() / 2]);
    let plays = || {
        let (read, shown) = ended(&summary(&null(&cut).output().unwrap())["films"][0], None);
        assert!(read < 75, "{read}");
        shown > 0
    };
    // A busy machine may be late for all of a short film.
    assert!((0..5).any(|_| plays()), "nothing shown");
    let mut random = 1u64;
    for round in 0..3 {
        let mut scribbled = whole.clone();
        for _ in 0..200 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = 2000 + (random >> 33) as usize % (scribbled.len() - 2000);
            scribbled[at] = random as u8;
        }
        let path = with(&format!("scribbled-{round}.mkv"), &scribbled);
        let done = null(&path).output().unwrap();
        // 1: nothing in it could be shown.
        assert!(matches!(done.status.code(), Some(0 | 1)), "{:?}", done.status);
        ended(&summary(&done)["films"][0], None);
    }
}

/// An X server of a test's own; killed when dropped.
struct Server {
    child: Child,
    display: String,
}

impl Server {
    fn start() -> Server {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "640x180x24", "-nolisten", "tcp"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut number = String::new();
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut said, &mut number).unwrap();
        Server { child, display: format!(":{}", number.trim()) }
    }

    /// Red, green and blue in the middle of the left and of the right half of the screen.
    fn looks(&self) -> [[u8; 3]; 2] {
        let grab = format!(
            "-f x11grab -video_size 640x180 -draw_mouse 0 -i {} -frames:v 1 -f rawvideo -pix_fmt rgb24 -",
            self.display
        );
        let done = Command::new("ffmpeg").args(["-v", "error"]).args(grab.split(' ')).output().unwrap();
        assert_eq!(done.stdout.len(), 640 * 180 * 3, "{}", String::from_utf8_lossy(&done.stderr));
        [160, 480].map(|x| {
            let at = (90 * 640 + x) * 3;
            [done.stdout[at], done.stdout[at + 1], done.stdout[at + 2]]
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_near(colour: [u8; 3], wanted: [u8; 3]) -> bool {
    colour.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) < 24)
}

#[test]
fn windows_show_the_films() {
    let Some(player) = player() else { return };
    let colours = [("red", [255, 0, 0]), ("lime", [0, 255, 0]), ("blue", [0, 0, 255])];
    let inputs: Vec<_> =
        colours.iter().map(|(name, _)| format!("-f lavfi -i color={name}:s=320x180:r=25:d=4")).collect();
    let coding = "-c:v libx264 -preset veryfast -pix_fmt yuv420p";
    ffmpeg(&format!("{} -filter_complex [0][1][2]concat=n=3:v=1 {coding} forth.mkv", inputs.join(" ")));
    ffmpeg(&format!("{} -filter_complex [2][1][0]concat=n=3:v=1 {coding} back.mkv", inputs.join(" ")));
    let mut server = Server::start();
    let mut command = Command::new(player);
    command.args(["--json", "forth.mkv", "back.mkv"]).current_dir(scratch()).env("DISPLAY", &server.display);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = Vec::new();
    for _ in 0..400 {
        let halves = server.looks();
        let both = halves.map(|half| colours.iter().position(|(_, colour)| is_near(half, *colour)));
        if let [Some(left), Some(right)] = both
            && seen.last() != Some(&(left, right))
        {
            seen.push((left, right));
        }
        if seen.len() >= 3 && seen.contains(&(2, 0)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // While one film changes the other may not have yet.
    seen.retain(|(left, right)| left + right == 2);
    assert_eq!(seen, [(0, 2), (1, 1), (2, 0)]);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    for film in summary(&done)["films"].as_array().unwrap() {
        let (read, shown) = ended(film, None);
        assert!(read == 300 && shown > 15, "{film}");
        assert!(number(&film["drawn_after_us"]["count"]) > 15, "the server says what it has drawn: {film}");
    }

    let mut command = Command::new(player);
    command.args(["--json", "forth.mkv"]).current_dir(scratch()).env("DISPLAY", &server.display);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !is_near(server.looks()[0], colours[0].1) {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.child.kill().unwrap();
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && said.contains("the X server has gone"), "{said}");
}
