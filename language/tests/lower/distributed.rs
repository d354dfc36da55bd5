//! Masters and their node schedulers, checked together.

use super::{check_files, codes_of, drawn};

const MASTER: &str = "
distributed scheduler farm {
    nodefamilies { \"web.subsched\" : web; \"db.subsched\" : db; }
    nodes {
        node front;
        queue idle;
        pqueue busy increasing sortable on load;
    }
    global { int requests = 0; time deadline = 20ms; const int LIMIT = 8; }
    arrival (n) {
        if (n is web && |front| == 0)
            n => front;
        else if (n.load < LIMIT && |n.RQ| == 0)
            n => idle;
        else
            n => busy;
    }
    departure (n) {
        if (n == *idle)
            GLOBAL.requests -= 1;
        requests--;
    }
    event init { if (|busy| > 0 && *busy.load == 0) busy => idle; }
}";

const WEB: &str = "
scheduler web {
    imports { int load default 0; }
    data { threadref current; queue RQ; }
    event newthread(t) { GLOBAL.requests += 1; requests++; t => RQ; }
    event schedule {
        if (|RQ| > 0 && front.load < load && |front.RQ| < LIMIT && !(front is db)) {
            RQ => current;
            dispatch current for deadline;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
    event event_raised(t) { t => RQ; }
}";

const DB: &str = "
scheduler db {
    data { int load, rows; threadref current; stack RQ; }
    event newthread(t) { load = load + front.rows; t => RQ; }
}";

#[test]
fn a_master_and_its_nodes_check() {
    let checked = check_files(&[("farm.sched", MASTER), ("web.subsched", WEB), ("db.subsched", DB)]);
    assert_eq!(drawn(&checked), "");
    assert_eq!(checked.scheduler_name.as_deref(), Some("farm"));
    for report in &checked.engines {
        assert!(!report.accepted);
        assert!(report.reason.as_deref().is_some_and(|reason| reason.contains("distributed")));
    }
}

#[test]
fn errors_of_master_and_nodes_come_together() {
    let master = MASTER
        .replace("n.load <", "n.lod <")
        .replace("        else\n            n => busy;", "")
        .replace("n is web", "n is wbe");
    let web = WEB.replace("front.load", "front.lod").replace("GLOBAL.requests", "GLOBAL.request");
    let db = DB.replace("int load, rows;", "int load, rows, requests;").replace("t => RQ", "t => QR");
    let checked = check_files(&[("farm.sched", &master), ("web.subsched", &web), ("db.subsched", &db)]);
    insta::assert_snapshot!("errors_of_master_and_nodes", drawn(&checked));
}

/// What stands in the missing file may be meant by any name.
#[test]
fn a_missing_node_scheduler_is_one_error() {
    let checked = check_files(&[("farm.sched", MASTER)]);
    assert_eq!(codes_of(&checked), ["E0201", "E0201"], "{}", drawn(&checked));
}

#[test]
fn in_a_node_a_shared_global_comes_before_a_local() {
    let db = DB.replace("load = load", "threadref deadline; load = deadline / 1ms + load");
    let checked = check_files(&[("farm.sched", MASTER), ("web.subsched", WEB), ("db.subsched", &db)]);
    assert_eq!(codes_of(&checked), ["W0701"], "{}", drawn(&checked));
}

#[test]
fn an_arriving_node_is_stored_on_every_path() {
    let arrival = |body: &str| {
        let master = format!(
            "distributed scheduler m {{ nodefamilies {{ \"db.subsched\" : db; }} nodes {{ node front; queue q; }}
             arrival (n) {{ {body} }} }}"
        );
        codes_of(&check_files(&[("m.sched", &master), ("db.subsched", DB)])) == ["E0705"]
    };
    assert!(arrival(""));
    assert!(arrival("if (|front| == 0) n => front;"));
    assert!(arrival("if (|front| == 0) return; n => q;"));
    assert!(arrival("while (|q| == 0) n => q;"));
    assert!(!arrival("n => q;"));
    assert!(!arrival("if (|front| == 0) n => front; else n => q;"));
    assert!(!arrival("if (|front| == 0) { n => front; return; } n => q;"));
}
