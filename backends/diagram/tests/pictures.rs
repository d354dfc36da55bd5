//! What is drawn: snapshots of the text for Graphviz, and that Graphviz draws it.

use std::path::Path;

use attune_backend_diagram::{Drawn, Format, dot, draw};
use attune_language::engine::Engine;
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};
use attune_schedulers::{FileLoader, LIBRARY, open};

fn drawn(checked: &Checked) -> Drawn<'_> {
    Drawn {
        program: checked.program.as_ref().unwrap_or_else(|| panic!("{:?}", checked.diagnostics)),
        report: Some(checked.engine(Engine::Simulator)),
        conditions: None,
    }
}

fn checked(text: &str) -> Checked {
    let source = SourceText { name: "example.sched".into(), text: text.into() };
    check(&source, &mut FileLoader::default(), &Options::default())
}

fn picture(text: &str) -> String {
    dot(drawn(&checked(text)))
}

/// A parameter comes from the containers where it may sit, and arrows tell their conditions.
#[test]
fn a_named_thread_comes_from_where_it_may_sit() {
    let checked = checked(
        "scheduler shown extends lifecycle {
            data { queue urgent; }
            event alarm(t) { if (t != current && !t.waiting && !t.suspended) t => urgent; }
            event schedule {
                if (|urgent| > 0) urgent => current;
                else if (|ready| > 0) ready => current;
                if (|current| > 0) dispatch current;
            }
        }",
    );
    let plain = dot(Drawn { report: None, ..drawn(&checked) });
    assert!(plain.contains("named_alarm ->") && plain.contains("wherever it is"), "{plain}");
    let known = dot(drawn(&checked));
    assert!(!known.contains("wherever it is"), "{known}");
    let told = dot(Drawn { conditions: Some(&checked.sources), ..drawn(&checked) });
    assert!(told.contains("schedule\\n[|urgent| > 0]"), "{told}");
    assert!(told.contains("schedule\\n[!(|urgent| > 0) && |ready| > 0]"), "{told}");
}

#[test]
fn loops_are_bold_conditions_dashed_and_ends_are_marked() {
    insta::assert_snapshot!(picture(
        r#"scheduler shown {
            thread { int prio = 0; int dead = 0; }
            data {
                threadref current; queue RQ[2];
                pqueue sorted reverse sortable on prio; stack aside;
            }
            event newthread(t) { t => RQ[0]; }
            event set_dead(fixed t) { t.dead = 1; }
            event schedule {
                foreach t in RQ[0]
                    t => sorted;
                while (|RQ[1]| > 0)
                    RQ[1] => sorted;
                if (|sorted| == 0)
                    return;
                threadref tmp;
                sorted => tmp;
                tmp => current;
                dispatch current;
            }
            event switch_out {
                if (current.dead)
                    destroy current;
                else
                    current => RQ[1];
            }
            event event_raised(t) { t => RQ[1]; }
            event suspend_thread(t) { t => aside; }
            event resume_thread(t) { t => RQ[1]; }
        }"#
    ));
}

#[test]
fn graphviz_draws_every_library_scheduler() {
    for entry in LIBRARY {
        let mut opened = open(Path::new(entry.name), &[]).unwrap();
        let checked = check(&opened.source, &mut opened.loader, &Options::default());
        let picture = dot(drawn(&checked));
        let svg = draw(&picture, Format::Svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        for (_, container) in checked.program.as_ref().unwrap().containers.iter() {
            assert!(
                svg.contains(&format!(">{}", container.name)),
                "{}: {}",
                entry.name,
                container.name
            );
        }
    }
}

#[test]
fn what_graphviz_cannot_read_is_an_error() {
    let error = draw("digraph {", Format::Svg).unwrap_err();
    assert!(error.to_string().contains("dot"), "{error}");
}
