//! Distributed schedulers of the published kind, written plainly: they check as they stand, and at
//! least as large a share of their transfer checks is proved as was published (24 of 32).

use attune_language::diagnostic::render;
use attune_language::engine::Engine;
use attune_language::resolve::SourceText;
use attune_language::{Cluster, Options, check};

fn cluster(files: &[(&str, &str)]) -> Cluster {
    let source = SourceText { name: files[0].0.to_string(), text: files[0].1.to_string() };
    let mut loader = files;
    let checked = check(&source, &mut loader, &Options::default());
    let said: String = checked.diagnostics.iter().map(|it| render(it, &checked.sources)).collect();
    assert_eq!(said, "");
    checked.cluster.expect("no error")
}

/// The transfer checks of all nodes on an engine: proved, all.
fn proved(cluster: &Cluster, engine: Engine) -> (usize, usize) {
    let reports = cluster.families.iter().map(|family| &family.engines[engine as usize]);
    reports.fold((0, 0), |(proved, all), report| {
        assert!(report.accepted, "{engine}: {:?}", report.reason);
        let transfers = report.transfers;
        (proved + transfers.proved, all + transfers.total - transfers.trivial)
    })
}

fn is_proved_as_published(cluster: &Cluster) {
    for engine in [Engine::Simulator, Engine::Threads] {
        let (proved, all) = proved(cluster, engine);
        assert!(all >= 8 && proved * 4 >= all * 3, "{engine}: {proved} of {all}");
    }
    assert_eq!(cluster.report.transfers.checked + cluster.report.transfers.refuted, 0);
}

const PROCESS: &str = "scheduler process {
    threadimports { int acceptor default 0; }
    thread { int waiting = 0; }
    data { threadref current, paused; queue ready, WQ; int load; }
    event newthread(t) { load++; GLOBAL.r += 1; t => ready; }
    event set_waiting(fixed t) { t.waiting = 1; }
    event schedule {
        if (|paused| > 0 && n > 0 && load <= r / n + threshold) paused => ready;
        if (|ready| > 0) { ready => current; dispatch current; }
    }
    event switch_out {
        if (current.acceptor && load > r / n + threshold && |paused| == 0)
            current => paused;
        else if (current.waiting)
            current => WQ;
        else
            current => ready;
    }
}";

/// Processes on one listening socket: the acceptor of a process with too many requests pauses.
#[test]
fn balanced_processes() {
    let cluster = cluster(&[
        (
            "balance.sched",
            r#"distributed scheduler balance {
                nodefamilies { "process.subsched" : process; }
                nodes { pqueue processes increasing sortable on load; }
                global { int r = 0; int n = 0; int threshold = 3; }
                arrival (p) { n++; p => processes; }
                departure (p) { n--; r -= p.load; }
                event event_raised(t) { t.waiting = 0; t => ready; }
            }"#,
        ),
        ("process.subsched", PROCESS),
    ]);
    is_proved_as_published(&cluster);
}

/// A web server and its database: while the database is loaded, threads that would query it wait.
#[test]
fn a_web_server_and_its_database() {
    let cluster = cluster(&[
        (
            "webapp.sched",
            r#"distributed scheduler webapp {
                nodefamilies { "web.subsched" : web; "database.subsched" : database; }
                nodes { node db; queue webs; }
                global { int dbload = 0; const int LIMIT = 5; }
                arrival (n) {
                    if (n is database && |db| == 0)
                        n => db;
                    else if (n is database)
                        n => webs;
                    else if (n is web)
                        n => webs;
                }
                departure (n) { if (n is database) dbload = 0; }
                event set_waiting(fixed t) { t.waiting = 1; }
                event event_raised(t) { t.waiting = 0; t => ready; }
                event switch_out { if (current.waiting) current => WQ; else current => ready; }
            }"#,
        ),
        (
            "web.subsched",
            "scheduler web {
                threadimports { int dynamic default 0; }
                thread { int waiting = 0; }
                data { threadref current; queue ready, delayed, WQ; }
                event newthread(t) { t => ready; }
                event schedule {
                    while (|delayed| > 0 && dbload < LIMIT) delayed => ready;
                    while (|ready| > 0 && dbload >= LIMIT && *ready.dynamic) ready => delayed;
                    if (|ready| > 0) ready => current;
                    else if (|delayed| > 0) delayed => current;
                    if (|current| > 0) dispatch current;
                }
            }",
        ),
        (
            "database.subsched",
            r#"scheduler database {
                threadimports { int field default 0; }
                thread { int waiting = 0; int important = 0; }
                data { threadref current; queue ready, first, WQ; }
                event newthread(t) { t => ready; }
                event set_waiting(fixed t) { t.waiting = 1; dbload += 1; }
                event event_raised(t) { t.waiting = 0; dbload -= 1; t => ready; }
                event schedule {
                    foreach t in ready if (t.important) t => first;
                    if (|first| > 0) first => current;
                    else if (|ready| > 0) ready => current;
                    if (|current| > 0) dispatch current;
                }
            }"#,
        ),
    ]);
    is_proved_as_published(&cluster);
}

const KERNEL_MASTER: &str = "distributed scheduler farm {
    nodefamilies { \"worker.subsched\" : worker; }
    nodes { node front; queue workers; }
    global { int jobs = 0; }
    arrival (n) { ARRIVAL n => workers; }
}";

const KERNEL_WORKER: &str = "scheduler worker {
    data { threadref current; queue ready, WQ, pool; int load; }
    event newthread(t) { jobs += 1; load++; t => ready; }
    event event_raised(t) { t => ready; }
    event schedule { WRITES if (|ready| > 0) { ready => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => WQ; }
}";

/// What the kernel engine says of the node; None: it takes it.
fn refused_in_kernel(arrival: &str, writes: &str) -> Option<String> {
    let master = KERNEL_MASTER.replace("ARRIVAL", arrival);
    let worker = KERNEL_WORKER.replace("WRITES", writes);
    let source = SourceText { name: "farm.sched".into(), text: master };
    let files = [("worker.subsched", worker.as_str())];
    let mut loader = &files[..];
    let checked = check(&source, &mut loader, &Options::default());
    let said: String = checked.diagnostics.iter().map(|it| render(it, &checked.sources)).collect();
    let report = &checked.cluster.expect(&said).families[0].engines[Engine::Kernel as usize];
    assert_eq!(report.accepted, report.reason.is_none());
    report.reason.clone()
}

#[test]
fn the_kernel_takes_nodes_and_says_what_it_cannot_do_for_them() {
    assert_eq!(refused_in_kernel("", ""), None);
    assert_eq!(refused_in_kernel("n.load = 3;", "jobs *= 2; jobs = 5; front.load += 1;"), None);
    for (arrival, writes, place) in [
        ("", "jobs /= 2;", "worker.subsched:5"),
        ("", "jobs = jobs % 3;", "worker.subsched:5"),
        ("", "front.load /= 2;", "worker.subsched:5"),
        ("n.load /= 2;", "", "farm.sched:5"),
    ] {
        let why = refused_in_kernel(arrival, writes).expect(writes);
        assert!(why.contains("it is divided at ") && why.contains(place), "{why}");
    }
    let why = refused_in_kernel("suspend n.pool;", "").expect("a command");
    assert!(why.contains("cannot suspend the threads of `pool` by a command"), "{why}");
    // What is not the node's is none of its business.
    assert_eq!(refused_in_kernel("", "load /= 2;"), None);
}
