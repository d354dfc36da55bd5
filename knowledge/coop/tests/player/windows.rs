//! Windows on an X server of the test's own.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::playing::{ended, ffmpeg, log, number, player, run, scratch, summary};

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
            "-f x11grab -video_size 640x180 -draw_mouse 0 -i {} -frames:v 1 -f rawvideo -pix_fmt \
                rgb24 -",
            self.display
        );
        let done =
            Command::new("ffmpeg").args(["-v", "error"]).args(grab.split(' ')).output().unwrap();
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

/// Tries until something comes of it, on however busy a machine.
fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_secs(180);
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < patience, "never seen: {what}");
    }
}

fn is_near(colour: [u8; 3], wanted: [u8; 3]) -> bool {
    colour.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) < 24)
}

#[test]
fn windows_show_the_films() {
    let Some(player) = player() else { return };
    let colours = [("red", [255, 0, 0]), ("lime", [0, 255, 0]), ("blue", [0, 0, 255])];
    let inputs: Vec<_> = colours
        .iter()
        .map(|(name, _)| format!("-f lavfi -i color={name}:s=320x180:r=25:d=4"))
        .collect();
    let coding = "-c:v libx264 -preset veryfast -pix_fmt yuv420p";
    ffmpeg(&format!(
        "{} -filter_complex [0][1][2]concat=n=3:v=1 {coding} forth.mkv",
        inputs.join(" ")
    ));
    ffmpeg(&format!(
        "{} -filter_complex [2][1][0]concat=n=3:v=1 {coding} back.mkv",
        inputs.join(" ")
    ));
    let mut server = Server::start();
    let play = |films: &[&str]| {
        let mut command = Command::new(player);
        command.arg("--json").args(films).current_dir(scratch()).env("DISPLAY", &server.display);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // What the halves showed, one after the other, until the films have ended.
    let plays = || {
        let mut child = play(&["forth.mkv", "back.mkv"]);
        let mut seen = Vec::new();
        while child.try_wait().unwrap().is_none() {
            let colour = |half| colours.iter().position(|(_, colour)| is_near(half, *colour));
            if let [Some(left), Some(right)] = server.looks().map(colour)
                && seen.last() != Some(&(left, right))
            {
                seen.push((left, right));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // While one film changes the other may not have yet.
        seen.retain(|(left, right)| left + right == 2);
        let order = [(0, 2), (1, 1), (2, 0)];
        assert!(
            seen.iter().is_sorted() && seen.iter().all(|both| order.contains(both)),
            "{seen:?}"
        );
        (seen == order).then(|| child.wait_with_output().unwrap())
    };
    // On a busy machine a look may come when the colours it was to see are over.
    let done = until("all colours", plays);
    assert!(done.status.success(), "{done:?}");
    for film in summary(&done)["films"].as_array().unwrap() {
        let (read, shown) = ended(film, None);
        assert!(read == 300 && shown > 15, "{film}");
        assert!(
            number(&film["drawn_after_us"]["count"]) > 15,
            "the server says what it has drawn: {film}"
        );
    }

    let child = until("a picture", || {
        let mut child = play(&["forth.mkv"]);
        while child.try_wait().unwrap().is_none() {
            let left = server.looks()[0];
            if colours[..2].iter().any(|(_, colour)| is_near(left, *colour)) {
                return Some(child);
            }
        }
        None
    });
    server.child.kill().unwrap();
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && said.contains("the X server has gone"), "{said}");
}

/// The server's clock has no parts of milliseconds: between two it would draw one picture a
/// millisecond sooner than another.
#[test]
fn pictures_that_the_server_holds_back_are_due_at_whole_milliseconds() {
    let Some(player) = player() else { return };
    // A picture each 41.667 ms, to the microsecond.
    ffmpeg(
        "-f lavfi -i testsrc=s=320x180:r=24:d=2 -c:v libx264 -preset veryfast -pix_fmt yuv420p \
            each_24th.mp4",
    );
    let server = Server::start();
    let parts_of_milliseconds = |ahead: &str| {
        let list = scratch().join(format!("ahead-{ahead}.log"));
        let mut command = Command::new(player);
        command.args(["--json", "--sync-ahead", ahead, "--log"]).arg(&list).arg("each_24th.mp4");
        run(command.current_dir(scratch()).env("DISPLAY", &server.display));
        let shown = log(&list);
        assert!(shown.len() > 10, "{shown:?}");
        let part = |time: f64| (time * 1000.0).round() as i64 % 1000;
        let from_first = |(time, _): &(f64, String)| part(time - shown[0].0);
        shown.iter().map(from_first).collect::<Vec<_>>()
    };
    let whole = |part: &i64| matches!(part, 0 | 1 | 999);
    let (held_back, sent) = (parts_of_milliseconds("20"), parts_of_milliseconds("0"));
    assert!(held_back.iter().all(whole), "{held_back:?}");
    assert!(!sent.iter().all(whole), "they are at their own time: {sent:?}");
}
