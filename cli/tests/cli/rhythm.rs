//! `attune period` and `attune bandwidth`.

use crate::support::{Folder, err};

/// Jobs of five calls, 40 a second, backwards in time.
fn forty_hertz(seconds: u32) -> String {
    let jobs = (0..40 * seconds).rev();
    jobs.flat_map(|job| {
        (0..5).map(move |call| format!("{:.6}\n", 0.025 * f64::from(job) + 1e-5 * f64::from(call)))
    })
    .collect()
}

#[test]
fn a_recording_gets_its_period_as_text_as_json_and_as_a_picture() {
    let folder = Folder::new("whole").with("a.txt", forty_hertz(3));
    let text = folder.attune(&["period", "a.txt"]);
    assert!(String::from_utf8_lossy(&text.stdout).starts_with("40.000 Hz (25.000 ms)"), "{text:?}");

    let answers = folder.json(&["period", "a.txt", "--json", "--plot", "a.svg"]);
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(answer["periodic"], true);
    assert!((answer["frequency_hz"].as_f64().unwrap() - 40.0).abs() < 0.01);
    assert!((answer["period_ms"].as_f64().unwrap() - 25.0).abs() < 0.01);
    assert_eq!(answer["events"], 600);
    assert_eq!(answer["method"], "evidence");
    assert!(
        answer["confidence"].as_f64().unwrap() > 0.9
            && answer["analysis_ms"].as_f64().unwrap() > 0.0
    );
    assert!(
        !answer["periods"].as_array().unwrap().is_empty()
            && !answer["candidates"].as_array().unwrap().is_empty()
    );
    assert!(answer.get("start_s").is_none());
    let picture = folder.text("a.svg");
    assert!(picture.starts_with("<svg") && picture.contains("40.000 Hz"));
}

#[test]
fn windows_are_judged_one_by_one() {
    let folder = Folder::new("windows").with("a.txt", forty_hertz(5));
    for method in ["evidence", "spectrum-2010"] {
        let answers =
            folder.json(&["period", "a.txt", "--json", "--window", "1", "--method", method]);
        assert_eq!(answers.len(), 4, "four full seconds");
        for (index, answer) in answers.iter().enumerate() {
            assert!((answer["start_s"].as_f64().unwrap() - index as f64).abs() < 1e-9);
            assert!((answer["frequency_hz"].as_f64().unwrap() - 40.0).abs() < 0.5, "{answer}");
            assert_eq!(answer["method"], method);
        }
    }
}

#[test]
fn lost_events_are_said() {
    let folder = Folder::new("lost").with("a.txt", format!("# lost 12\n{}", forty_hertz(2)));
    let output = folder.attune(&["period", "a.txt"]);
    assert!(output.status.success() && err(&output).contains("lacks 12 events"), "{output:?}");
}

#[test]
fn next_to_nothing_is_not_periodic() {
    let folder = Folder::new("nothing")
        .with("empty", "")
        .with("one", "0.25\n")
        .with("comment", "# nothing\n\n");
    for file in ["empty", "one", "comment"] {
        let answers = folder.json(&["period", file, "--json"]);
        assert_eq!(answers[0]["periodic"], false);
        assert!(answers[0]["frequency_hz"].is_null() && answers[0]["period_ms"].is_null());
        assert!(folder.json(&["period", file, "--json", "--window", "1"]).is_empty());
    }
    assert!(folder.attune(&["period", "empty", "--plot", "e.svg"]).status.success());
}

#[test]
fn what_is_no_recording_is_said_with_its_line() {
    let folder = Folder::new("garbage")
        .with("nan", "0.1\nNaN\n")
        .with("words", "0.1\n0.2\nhello\n")
        .with("bytes", [0u8, 159, 146, 150, 10, 255])
        .with("far", "0\n1e11\n");
    folder.refused(&["period", "nan"], "nan: line 2: `NaN` is no time");
    folder.refused(&["period", "words"], "line 3: `hello` is no time");
    folder.refused(&["period", "bytes"], "line 1");
    folder.refused(&["period", "missing"], "cannot read missing");
    folder.refused(&["period", "far", "--window", "1"], "more than a million windows");
    assert!(folder.attune(&["period", "far"]).status.success());
    for window in ["0", "-1", "NaN", "inf"] {
        folder.refused(&["period", "far", &format!("--window={window}")], "a window lasts");
    }
    folder.refused(&["period", "far", "--f-min", "50", "--f-max", "20"], "make no range");
    folder.refused(&["period", "far", "--method", "spectrum-2010", "--df", "0"], "--df");
}

#[test]
fn a_huge_recording_is_an_answer_too() {
    let folder = Folder::new("huge").with("a.txt", forty_hertz(2_000));
    let answers = folder.json(&["period", "a.txt", "--json"]);
    assert_eq!(answers[0]["events"], 400_000);
    assert!((answers[0]["frequency_hz"].as_f64().unwrap() - 40.0).abs() < 0.001);
}

#[test]
fn bandwidth_has_the_published_values() {
    let folder = Folder::new("bandwidth");
    let curve = |words: &[&str]| folder.json(&[&["bandwidth", "--json"], words].concat()).remove(0);
    let one = curve(&["--task", "20,100", "--from", "50", "--to", "200", "--step", "50"]);
    let each = |index: usize| one["curve"][index]["one_each"].as_f64().unwrap();
    assert!(
        (each(0) - 0.2).abs() < 1e-9
            && (each(1) - 0.2).abs() < 1e-9
            && (each(3) - 0.6).abs() < 1e-9,
        "{one}"
    );
    let three = curve(&["--task", "3,15", "--task", "5,20", "--task", "5,30", "--to", "40"]);
    assert!((three["utilisation"].as_f64().unwrap() - 0.6167).abs() < 1e-4);
    let at_five = &three["curve"][4];
    assert!(
        (at_five["one_each"].as_f64().unwrap() - 0.6167).abs() < 1e-4,
        "five divides all periods: {at_five}"
    );
    assert!(at_five["all_in_one"].as_f64().unwrap() > 0.7, "fixed priorities need more: {at_five}");

    let text = folder.attune(&[
        "bandwidth",
        "--task",
        "3,15",
        "--task",
        "5,20",
        "--task",
        "5,30",
        "--plot",
        "b.svg",
    ]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("with its period: 61.67 %"));
    assert!(folder.text("b.svg").contains("all in one"));
}

#[test]
fn tasks_that_cannot_be_are_refused() {
    let folder = Folder::new("tasks");
    folder.refused(&["bandwidth", "--task", "20"], "such as 20,100");
    folder.refused(&["bandwidth", "--task", "200,100"], "at most its period");
    folder.refused(&["bandwidth", "--task", "NaN,100"], "must be positive");
    folder.refused(&["bandwidth", "--task", "20,100", "--step", "0"], "steps of 0");
    folder.refused(&["bandwidth", "--task", "20,100", "--step", "1e-9"], "not more than");
}
