//! `human`: what the person deals with runs at once, and nobody starves for it.

use attune_simulator::Outcome;

use crate::runs::{MS, US, group, run_text, text_of};

fn desktop() -> String {
    text_of("desktop.toml")
}

#[test]
fn a_key_and_a_picture_do_not_wait_for_ten_programs_that_compute() {
    let human = run_text("human", &desktop());
    for name in ["kernel", "server", "editor"] {
        let latency = group(&human, name).latency.quantile(0.99);
        assert!(latency <= 10 * US, "{name}: {latency} ns\n{}", human.table());
    }
    let player = group(&human, "player");
    assert!(player.jobs >= 499 && player.missed == 0, "{}", human.table());
    // The same under equal shares, so that the workload is one that needs it.
    let fair = run_text("fair", &desktop());
    assert!(group(&fair, "player").missed > 100, "{}", fair.table());
    assert!(group(&fair, "editor").latency.quantile(0.99) > MS, "{}", fair.table());
}

/// The one policy for a desktop: what is rated is on time as under `human`, a player's announced
/// timers as under `coop`, and the programs that compute keep their part.
#[test]
fn desktop_serves_ratings_and_releases_at_once() {
    let desktop = run_text("desktop", &desktop());
    let player = group(&desktop, "player");
    assert!(player.jobs >= 499 && player.missed == 0, "{}", desktop.table());
    for name in ["server", "editor"] {
        let latency = group(&desktop, name).latency.quantile(0.99);
        assert!(latency <= MS, "{name}: {latency} ns\n{}", desktop.table());
    }
    assert!(desktop.share(group(&desktop, "hog")) > 0.7, "{}", desktop.table());

    let text = text_of("coop_players.toml");
    // The same, and an editor that says nothing, but is rated.
    let editor = "[[thread]]\nname = \"editor\"\nperiod = \"125ms\"\nimports = { input_rating = \
         \"950\" }\ndo = [{ compute = \"uniform(0.5ms, 3ms)\" }]\n";
    let outcome = run_text("desktop", &format!("{text}\n{editor}"));
    let late = group(&outcome, "player").tardiness.quantile(0.99);
    assert!(late <= MS, "{late} ns\n{}", outcome.table());
    let latency = |outcome: &Outcome| group(outcome, "editor").latency.quantile(0.9);
    let coop = run_text("coop", &format!("{text}\n{editor}"));
    assert!(latency(&outcome) * 2 < latency(&coop), "{}\n{}", outcome.table(), coop.table());
}

/// Rated threads that want everything are favoured for 85 % of the time and share the rest; worker
/// threads of the kernel are as soon as what the person types into.
#[test]
fn desktop_leaves_the_others_their_part_and_serves_the_kernel_at_once() {
    for rated in [1, 2] {
        let text = format!(
            "duration = \"20s\"\ncontext_switch = \"3us\"\n\
             [[thread]]\nname = \"rated\"\ncount = {rated}\n\
             imports = {{ output_rating = \"1000\" }}\n\
             repeat = \"forever\"\ndo = [{{ compute = \"50ms\" }}]\n\
             [[thread]]\nname = \"other\"\ncount = 10\n\
             repeat = \"forever\"\ndo = [{{ compute = \"50ms\" }}]\n"
        );
        let outcome = run_text("desktop", &text);
        let share = outcome.share(group(&outcome, "other"));
        let promised = 0.15 * 10.0 / (10 + rated) as f64;
        assert!(share > 0.98 * promised, "{share}, {promised}\n{}", outcome.table());
        assert!(outcome.share(group(&outcome, "rated")) > 0.845, "{}", outcome.table());
    }
    let outcome = run_text("desktop", &desktop());
    let latency = group(&outcome, "kernel").latency.quantile(0.99);
    assert!(latency <= MS, "{latency} ns\n{}", outcome.table());
}

/// Films compute for long, and are rated higher than sound, which needs little at a time.
#[test]
fn sound_is_served_while_films_work_on_their_pictures() {
    for cpus in [1, 2] {
        let text = format!(
            "duration = \"10s\"\ncpus = {cpus}\ncontext_switch = \"3us\"\n\
             [[thread]]\nname = \"film\"\ncount = {cpus}\nperiod = \"40ms\"\n\
             imports = {{ output_rating = \"1000\" }}\n\
             do = [{{ compute = \"uniform(20ms, 28ms)\" }}]\n\
             [[thread]]\nname = \"sound\"\ncount = 2\nperiod = \"5ms\"\n\
             imports = {{ output_rating = \"500\" }}\ndo = [{{ compute = \"100us\" }}]\n\
             [[thread]]\nname = \"hog\"\ncount = 8\nrepeat = \"forever\"\n\
             do = [{{ compute = \"50ms\" }}]\n"
        );
        for policy in ["desktop", "human"] {
            let outcome = run_text(policy, &text);
            let sound = group(&outcome, "sound");
            let late = sound.latency.quantile(0.99);
            assert!(late < 5 * MS, "{policy}: {late} ns\n{}", outcome.table());
            // Under `human` the film wants more than output has beside the others.
            if policy == "desktop" {
                assert!(sound.missed * 500 < sound.jobs, "{}", outcome.table());
                assert_eq!(group(&outcome, "film").missed, 0, "{}", outcome.table());
            }
        }
    }
}

/// Programs that know nothing of releases wait until something comes, with a timer behind it. A
/// rated one has its head start all the same, beside programs that compute and idle ones.
#[test]
fn desktop_favours_rated_programs_whose_releases_are_implicit() {
    let waits = "{ set = { next_release = \"now + 2s\", polls = \"polls + 1\" } }";
    let rated = "imports = { output_rating = \"500\", implicit = \"1\" }";
    let text = format!(
        "duration = \"20s\"\ncpus = 2\ncontext_switch = \"3us\"\n[semaphores]\nperiod = 0\n\
         [[thread]]\nname = \"server\"\nperiod = \"5ms\"\n{rated}\n\
         do = [{{ compute = \"50us\" }}, {{ signal = \"period\" }}, \
         {{ compute = \"20us\" }}, {waits}]\n\
         [[thread]]\nname = \"client\"\n{rated}\nrepeat = \"forever\"\n\
         do = [{waits}, {{ wait = \"period\" }}, {{ compute = \"100us\" }}]\n\
         [[thread]]\nname = \"film\"\nperiod = \"40ms\"\n\
         imports = {{ output_rating = \"1000\", implicit = \"1\" }}\n\
         do = [{{ compute = \"uniform(20ms, 28ms)\" }}, {waits}]\n\
         [[thread]]\nname = \"worker\"\ncount = 3\nperiod = \"uniform(30ms, 60ms)\"\n\
         do = [{{ compute = \"9ms\" }}]\n\
         [[thread]]\nname = \"idle\"\ncount = 2\nimports = {{ weight = \"3\" }}\n\
         repeat = \"forever\"\ndo = [{{ compute = \"50ms\" }}]\n"
    );
    let outcome = run_text("desktop", &text);
    let server = group(&outcome, "server");
    assert!(server.missed * 20 < server.jobs, "{}", outcome.table());
    assert_eq!(group(&outcome, "film").missed, 0, "{}", outcome.table());
}

/// The display server has input, and moves a window for longer than a picture may wait.
#[test]
fn desktop_lets_output_have_a_turn_before_input_goes_on() {
    let text = "duration = \"20s\"\ncontext_switch = \"3us\"\n\
        [[thread]]\nname = \"server\"\nperiod = \"9700us\"\n\
        imports = { input_rating = \"1000\" }\ndo = [{ compute = \"1400us\" }]\n\
        [[thread]]\nname = \"picture\"\nperiod = \"13ms\"\n\
        imports = { output_rating = \"1000\" }\ndo = [{ compute = \"50us\" }]\n\
        [[thread]]\nname = \"hog\"\ncount = 10\nrepeat = \"forever\"\n\
        do = [{ compute = \"50ms\" }]\n";
    let outcome = run_text("desktop", text);
    for name in ["picture", "server"] {
        // Every 97th time both wake at once.
        let latency = group(&outcome, name).latency.quantile(0.98);
        assert!(latency <= 600 * US, "{name}: {latency} ns\n{}", outcome.table());
    }
}

/// What desktops ran before: they know what a thread has used, and not what it is for.
#[test]
fn policies_that_know_only_past_use_lose_the_film_beside_ten_programs_that_compute() {
    for policy in ["unix_decay", "linux_epochs", "solaris_ts", "nt_boosts"] {
        let outcome = run_text(policy, &desktop());
        let player = group(&outcome, "player");
        assert!(player.missed > 450, "{policy}: {}", outcome.table());
        // A typist's editor uses little, so that most keys are answered at once.
        let editor = group(&outcome, "editor");
        assert!(editor.latency.quantile(0.5) <= 10 * US, "{policy}: {}", outcome.table());
        assert!(editor.latency.quantile(1.0) > 30 * MS, "{policy}: {}", outcome.table());
    }
}

/// Each class wants the whole processor; `parts` of the classes are the defaults of the policy.
#[test]
fn each_class_gets_its_part_of_the_epoch_when_all_want_everything() {
    let hog = |name: &str, imports: &str| {
        format!(
            "[[thread]]\nname = \"{name}\"\ncount = 3\n{imports}\nrepeat = \"forever\"\n\
             do = [{{ compute = \"50ms\" }}]\n"
        )
    };
    let text = [
        "duration = \"20s\"\ncontext_switch = \"3us\"\n".to_owned(),
        hog("kernel", "imports = { kernel_thread = \"1\" }"),
        hog("input", "imports = { input_rating = \"1000\" }"),
        hog("output", "imports = { output_rating = \"1000\" }"),
        hog("other", ""),
    ]
    .concat();
    let outcome = run_text("human", &text);
    for (name, part) in [("kernel", 0.20), ("input", 0.40), ("output", 0.25), ("other", 0.15)] {
        let share = outcome.share(group(&outcome, name));
        assert!((share - part).abs() < 0.02 * part, "{name}: {share}\n{}", outcome.table());
        let within = outcome.jain_within(group(&outcome, name).group).unwrap();
        assert!(within > 0.99, "{name}: {within}\n{}", outcome.table());
    }
}

/// Threads that have run little take of the next part of their class when this one is used up;
/// what the others lose by that in one epoch they have in the next.
#[test]
fn the_others_keep_their_part_beside_rated_threads_that_come_in_bursts() {
    let threads = |name: &str, imports: &str, work: &str| {
        format!("[[thread]]\nname = \"{name}\"\ncount = 3\n{imports}\n{work}\n")
    };
    let hog = "repeat = \"forever\"\ndo = [{ compute = \"50ms\" }]";
    let burst = "period = \"200ms\"\ndo = [{ compute = \"9ms\" }]";
    let later = "period = \"200ms\"\nstart = \"120ms\"\ndo = [{ compute = \"9ms\" }]";
    let kernel = "imports = { kernel_thread = \"1\" }";
    let input = "imports = { input_rating = \"1000\" }";
    let output = "imports = { output_rating = \"1000\" }";
    let text = [
        "duration = \"20s\"\ncontext_switch = \"3us\"\n".to_owned(),
        threads("kernel", kernel, hog),
        threads("input", input, hog),
        threads("burst of input", input, burst),
        threads("output", output, hog),
        threads("burst of output", output, later),
        threads("other", "", hog),
    ]
    .concat();
    let outcome = run_text("human", &text);
    let share = outcome.share(group(&outcome, "other"));
    assert!(share > 0.98 * 0.15, "{share}\n{}", outcome.table());
}

#[test]
fn a_higher_rating_gets_more_of_its_class_but_less_than_in_proportion() {
    let hog = |name: &str, rating: i64| {
        format!(
            "[[thread]]\nname = \"{name}\"\nimports = {{ input_rating = \"{rating}\" }}\n\
             repeat = \"forever\"\ndo = [{{ compute = \"50ms\" }}]\n"
        )
    };
    let text = ["duration = \"20s\"\n".to_owned(), hog("high", 1000), hog("low", 100)].concat();
    let outcome = run_text("human", &text);
    let share = |name| outcome.share(group(&outcome, name));
    let times = share("high") / share("low");
    assert!(times > 2.0 && times < 6.0, "{times}\n{}", outcome.table());
}
