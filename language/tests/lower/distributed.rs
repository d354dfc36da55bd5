//! Masters and their node schedulers, checked together.

use attune_language::Checked;
use attune_language::engine::Engine;
use attune_language::engine::event::Event;
use attune_language::ir::{ExprKind, NodeProperty, Place, Program, StatementKind, Storage, Type};

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
    event alarm(t) { requests += 0; t => RQ; }
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
    let checked =
        check_files(&[("farm.sched", MASTER), ("web.subsched", WEB), ("db.subsched", DB)]);
    assert_eq!(drawn(&checked), "");
    assert_eq!(checked.scheduler_name.as_deref(), Some("farm"));
    for report in &checked.engines {
        assert!(!report.accepted);
        assert!(report.reason.as_deref().is_some_and(|reason| reason.contains("distributed")));
    }
    let cluster = checked.cluster.expect("no error");
    let names: Vec<&str> = cluster.families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(names, ["web", "db"]);
    // A node's program runs wherever a scheduler does; what it shares it imports.
    let web = &cluster.families[0];
    for engine in [Engine::Simulator, Engine::Threads, Engine::Kernel] {
        let report = &web.engines[engine as usize];
        assert!(report.accepted, "{engine}: {:?}", report.reason);
        assert_eq!(report.transfers.refuted, 0, "{engine}");
        assert!(report.transfers.proved >= 3, "{engine}: {:?}", report.transfers);
    }
    let imports: Vec<&str> = web
        .program
        .globals
        .values()
        .filter(|global| global.storage == Storage::Import)
        .map(|global| global.name.as_str())
        .collect();
    assert_eq!(
        imports,
        ["requests", "deadline", "load", "front_load", "front_RQ_size", "front_family"]
    );
    // Neither transfer of a node into a container can fail.
    assert_eq!(cluster.report.transfers.checked, 0);
}

/// What the default handlers of a master become: each family's own.
#[test]
fn a_masters_event_is_a_handler_of_the_nodes_that_have_none() {
    let web = WEB.replace(
        "event event_raised(t) { t => RQ; }",
        "event event_raised(t) { t => RQ; } event alarm(t) { load = 0; t => RQ; }",
    );
    let checked =
        check_files(&[("farm.sched", MASTER), ("web.subsched", &web), ("db.subsched", DB)]);
    let cluster = checked.cluster.expect("no error");
    let file_of_alarm = |program: &Program| {
        let handler = program.handler(Event::Alarm).expect("own, or the default");
        checked.sources.name(handler.span.source).to_string()
    };
    assert_eq!(file_of_alarm(&cluster.families[0].program), "web.subsched");
    assert_eq!(file_of_alarm(&cluster.families[1].program), "farm.sched");
    assert!(cluster.master.handler(Event::Alarm).is_none());
    // Names in it are those of the node.
    let master = MASTER.replace("t => RQ; }\n}", "t => busy; }\n}");
    let checked =
        check_files(&[("farm.sched", &master), ("web.subsched", WEB), ("db.subsched", DB)]);
    assert_eq!(codes_of(&checked), ["E0301"], "once for both families: {}", drawn(&checked));
}

/// Checks a master with this body, over the families web and db.
fn master(body: &str) -> Checked {
    let master = format!(
        "distributed scheduler m {{
            nodefamilies {{ \"web.subsched\" : web expects 2; \"db.subsched\" : db; }}
            nodes {{ node front; queue q, r; }}
            global {{ int requests, last; time deadline; const int LIMIT = 8; }}
            {body}
        }}"
    );
    check_files(&[("m.sched", &master), ("web.subsched", WEB), ("db.subsched", DB)])
}

#[test]
fn a_chain_of_is_that_names_every_family_stores_every_node() {
    let all = master("arrival (n) { if (n is web) n => q; else if (n is db) n => r; }");
    assert_eq!(drawn(&all), "");
    assert_eq!(all.cluster.expect("no error").families[0].expects, 2);
    let none = master("arrival (n) { if (!(n is web)) { if (!(n is db)) return; } n => q; }");
    assert_eq!(drawn(&none), "");
    let one = master("arrival (n) { if (n is web) n => q; else if (n is web) n => r; }");
    assert_eq!(codes_of(&one), ["E0705"]);
    assert_eq!(codes_of(&master("departure (n) { requests--; }")), ["E0705"]);
}

#[test]
fn variables_of_one_name_keep_their_types_by_family() {
    let db = DB.replace("int load, rows;", "float load; int rows; time idle;");
    let master = |body: &str| {
        let text = format!(
            "distributed scheduler m {{
                nodefamilies {{ \"web.subsched\" : web; \"db.subsched\" : db; }}
                nodes {{ node front; pqueue q sortable on load; }}
                global {{ int requests; time deadline; const int LIMIT = 8; int seen; }}
                arrival (n) {{ {body} n => q; }}
            }}"
        );
        let files = [("m.sched", text.as_str()), ("web.subsched", WEB), ("db.subsched", &db)];
        let checked = check_files(&files);
        assert_eq!(drawn(&checked), "", "{body}");
        let program = checked.cluster.expect("no error").master;
        let mut types: Vec<Type> = Vec::new();
        for (attribute, property) in &program.membership.properties {
            if *property == NodeProperty::Variable("load".into()) {
                types.push(program.attributes[*attribute].ty);
            }
        }
        types
    };
    // The key is the widest of both; asked for, each family's own.
    assert_eq!(master(""), [Type::Float]);
    assert_eq!(master("if (n.load > 0) seen++;"), [Type::Float]);
    assert_eq!(master("if (n is web) seen = n.load;"), [Type::Float, Type::Int]);
    assert_eq!(master("if (n is web && n.load > 3) seen++;"), [Type::Float, Type::Int]);
    assert_eq!(master("if (n is db) seen++; else seen = n.load;"), [Type::Float, Type::Int]);
    assert_eq!(master("if (n is db) n.load = 0.5;"), [Type::Float]);
}

#[test]
fn what_a_family_lacks_is_refused_where_the_family_is_known() {
    let arrival = |body: &str| codes_of(&master(&format!("arrival (n) {{ {body} n => q; }}")));
    assert_eq!(arrival("if (n is db) last = n.rows;"), [""; 0]);
    assert_eq!(arrival("last = n.rows;"), [""; 0]);
    assert_eq!(arrival("if (n is web) last = n.rows;"), ["E0703"]);
    assert_eq!(arrival("n.RQ => q;"), ["E0707"]);
}

#[test]
fn the_master_commands_and_writes_together() {
    let checked = master(
        "arrival (n) { if (n is web) suspend n.RQ; n => q; atomic { requests += 1; last = 3; } }
         departure (n) { foreach m in q if (m is db) resume m.RQ; }",
    );
    assert_eq!(drawn(&checked), "");
    let program = checked.cluster.expect("no error").master;
    let property = NodeProperty::Suspended("RQ".into());
    let properties = &program.membership.properties;
    assert_eq!(properties.iter().filter(|(_, it)| *it == property).count(), 1);

    let arrival = |body: &str| codes_of(&master(&format!("arrival (n) {{ n => q; {body} }}")));
    assert_eq!(arrival("suspend n.rows;"), ["E0708"]);
    assert_eq!(arrival("atomic { if (last) last = 0; }"), ["E0710"]);
    assert_eq!(arrival("if (age(n.rows) > 1s || age(GLOBAL.last) > 1s) last = 0;"), [""; 0]);
}

#[test]
fn an_update_that_is_used_as_a_value_still_merges() {
    let worker = |body: &str| {
        format!(
            "scheduler web {{
            data {{ threadref current; queue RQ; int seen; }}
            event newthread(t) {{ {body} t => RQ; }}
        }}"
        )
    };
    for body in [
        "seen = total++;",
        "seen = --total;",
        "seen = (total += 2);",
        "seen = (total = total + 2);",
        "seen = total++ + total++;",
        "seen = (total += other++);",
        "if (total-- > 3) seen = 1;",
    ] {
        let checked = check_files(&[
            (
                "m.sched",
                "distributed scheduler m {
                    nodefamilies { \"web.subsched\" : web; }
                    nodes { queue q; }
                    global { int total; int other; }
                    arrival (n) { n => q; }
                }",
            ),
            ("web.subsched", &worker(body)),
        ]);
        assert_eq!(drawn(&checked), "", "{body}");
        let program = &checked.cluster.expect("no error").families[0].program;
        let handler = program.handler(Event::NewThread).expect("written");
        let mut updates = 0;
        for statement in &handler.parts[0].routine.body.statements {
            let StatementKind::Assign { place: Place::Global(id, None), value } = &statement.kind
            else {
                continue;
            };
            if program.membership.remotes.iter().all(|remote| remote.global != *id) {
                continue;
            }
            updates += 1;
            let ExprKind::Binary(_, left, _) = program.exprs[*value].kind else {
                panic!("{body}: a set")
            };
            let read = &program.exprs[left].kind;
            let ExprKind::Read(Place::Global(read, None)) = read else { panic!("{body}: a set") };
            assert_eq!(read, id, "{body}");
        }
        assert!(updates > 0, "{body}");
    }
}

#[test]
fn an_array_is_not_shared() {
    let files = |declaration: &str| {
        let master = format!(
            "distributed scheduler m {{
                nodefamilies {{ \"web.subsched\" : web; }}
                nodes {{ queue q; }}
                global {{ int a; {declaration} }}
                arrival (n) {{ n => q; }}
            }}"
        );
        codes_of(&check_files(&[("m.sched", &master), ("web.subsched", WEB_ALONE)]))
    };
    assert_eq!(files("int b[2];"), ["E0711"]);
    assert_eq!(files("percpu int b;"), ["E0711"]);
    assert_eq!(files("int b;"), [""; 0]);
}

const WEB_ALONE: &str = "scheduler web { data { queue RQ; } event newthread(t) { t => RQ; } }";

/// `suspend` and its like stay ordinary names elsewhere.
#[test]
fn new_words_of_distributed_schedulers_are_names_elsewhere() {
    let checked = super::check_text(
        "scheduler s { data { int suspend, resume, atomic, expects, age; queue RQ; }
          event newthread(t) {
              suspend = 1; resume = suspend; atomic = 2; expects = age; t => RQ;
          } }",
    );
    assert!(!checked.has_errors(), "{}", drawn(&checked));
    let outside = super::check_text(
        "scheduler s { data { queue RQ; }
          event newthread(t) { atomic { } suspend t.RQ; t => RQ; } }",
    );
    assert_eq!(codes_of(&outside), ["E0701", "E0701"], "{}", drawn(&outside));
}

#[test]
fn errors_of_master_and_nodes_come_together() {
    let master = MASTER
        .replace("n.load <", "n.lod <")
        .replace("        else\n            n => busy;", "")
        .replace("n is web", "n is wbe");
    let web = WEB.replace("front.load", "front.lod").replace("GLOBAL.requests", "GLOBAL.request");
    let db =
        DB.replace("int load, rows;", "int load, rows, requests;").replace("t => RQ", "t => QR");
    let checked =
        check_files(&[("farm.sched", &master), ("web.subsched", &web), ("db.subsched", &db)]);
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
    let checked =
        check_files(&[("farm.sched", MASTER), ("web.subsched", WEB), ("db.subsched", &db)]);
    assert_eq!(codes_of(&checked), ["W0701"], "{}", drawn(&checked));
}

#[test]
fn an_arriving_node_is_stored_on_every_path() {
    let arrival = |body: &str| {
        let master = format!(
            "distributed scheduler m {{ nodefamilies {{ \"db.subsched\" : db; }} nodes \
             {{ node front; queue q; }} arrival (n) {{ {body} }} }}"
        );
        let checked = check_files(&[("m.sched", &master), ("db.subsched", DB)]);
        assert_eq!(checked.cluster.is_none(), checked.has_errors());
        codes_of(&checked).contains(&"E0705")
    };
    assert!(arrival(""));
    assert!(arrival("if (|front| == 0) n => front;"));
    assert!(arrival("if (|front| == 0) return; n => q;"));
    assert!(arrival("while (|q| == 0) n => q;"));
    assert!(!arrival("n => q;"));
    assert!(!arrival("if (|front| == 0) n => front; else n => q;"));
    assert!(!arrival("if (|front| == 0) { n => front; return; } n => q;"));
}
