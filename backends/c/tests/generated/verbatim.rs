//! Verbatim text: what it sees, and where its errors are.

use std::path::PathBuf;

use attune_backend_c::{CompileError, Options, compile};

use crate::support::{Compiled, c_of, run};

/// A scheduler with that `schedule`.
fn with_schedule(body: &str) -> String {
    format!(
        "scheduler verbatim {{
    imports {{ int budget default 3; }}
    threadimports {{ int prio default 4; }}
    data {{ threadref current; queue RQ; percpu int runs = 0; int seen = 0, index = 5; threadref \
        pair[2]; }}
    event newthread(t) {{ t => RQ; }}
    event event_raised(t) {{ t => RQ; }}
    event switch_out {{ if (|current| > 0) current => RQ; }}
    event schedule {{
        if (|RQ| > 0) {{
            RQ => current;
{body}
            dispatch current;
        }}
    }}
}}"
    )
}

const ONE: [&str; 3] = ["thread 1", "call newthread 1 0 0", "call schedule 0 0 0"];

fn end(name: &str, body: &str) -> String {
    run(name, &with_schedule(body), &ONE).end().to_string()
}

#[test]
fn text_sees_the_schedulers_names() {
    let said = end(
        "names_seen",
        "{* seen = current && !current->userdata ? 40 : 0; seen += (int)current->attune.id; *}",
    );
    assert!(said.contains(" seen 41 "), "{said}");
    let said = end("per_cpu", "{* runs = 6; runs++; *} seen = runs;");
    assert!(said.contains(" seen 7 ") && said.contains(" runs 7 "), "{said}");
    let said = end("local", "int x = 3; {* x *= 2; *} seen = x;");
    assert!(said.contains(" seen 6 "), "{said}");
    let said = end("value", "seen = (* strlen(\"four\") *) * 2;");
    assert!(said.contains(" seen 8 "), "{said}");
    let said =
        end("thread_variable", "foreach t in RQ seen = 1; {* int here = 9; *} {* seen = here; *}");
    assert!(said.contains(" seen 9 "), "{said}");
    let said = end("mangled", "index = 3; {* seen = index(\"abc\", 'c') ? index_ : 0; *}");
    assert!(said.contains(" seen 3 "), "{said}");
}

/// `x = t->x`: the variable, and a member of the same name.
#[test]
fn a_name_may_be_a_variables_and_a_members() {
    let text = with_schedule(
        "{* div_t d = { .quot = 3 }, *p = &d; quot += p->quot + d . quot; *}
         seen = (* quot + div(9, 2).quot /* quot */ *);",
    );
    let text = text.replace("int seen = 0,", "int seen = 0, quot = 30,");
    let said = run("members", &text, &ONE).end().to_string();
    assert!(said.contains(" seen 40 ") && said.contains(" quot 36 "), "{said}");
}

#[test]
fn a_hidden_name_is_the_inner_one() {
    let said = end("hidden", "int x = 3; if (x > 2) { int x = 8; {* seen = x; *} }");
    assert!(said.contains(" seen 8 "), "{said}");
    let said = end("local_hides", "int runs = 2; {* seen = runs; *}");
    assert!(said.contains(" seen 2 "), "{said}");
}

#[test]
fn text_reads_and_writes_imports() {
    let text =
        with_schedule("{* seen = budget + current->prio; budget = 200; current->prio = 9; *}");
    let compiled = Compiled::new("text_imports", &text, &Options::default(), &[]);
    let unlinked = compiled.run(&ONE);
    assert!(unlinked.end().contains(" seen 7 "), "{}", unlinked.end());
    let linked = compiled.run(&[
        "thread 1",
        "link budget 0 10",
        "linkthread prio 3 1 20",
        "call newthread 1 0 0",
        "call schedule 0 0 0",
    ]);
    let said = linked.end();
    assert!(
        said.contains(" seen 30 ") && said.contains("budget=127 prio=9 | divisions 0 clamped 1"),
        "{said}"
    );
}

fn errors(name: &str, body: &str, debug: bool) -> Vec<(String, u32)> {
    let c = c_of("wrong.sched", &with_schedule(body), &Options { debug });
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let Err(error) = compile(&c, &out, debug) else { panic!("{body} compiles") };
    assert!(!out.exists());
    assert!(error.to_string().starts_with("the C compiler refuses the scheduler\n"), "{error}");
    let CompileError::Failed { messages, .. } = error else { panic!("{error}") };
    messages
        .into_iter()
        .filter(|message| message.error)
        .map(|message| (message.file, message.line))
        .collect()
}

#[test]
fn errors_come_back_with_the_schedulers_line() {
    for debug in [false, true] {
        let at = |line| vec![("wrong.sched".to_string(), line)];
        assert_eq!(errors("statement", "{* no_such_variable = 1; *}", debug), at(11));
        assert_eq!(
            errors("second_line", "{* seen = 1;\n      no_such_variable = 1; *}", debug),
            at(12)
        );
        assert_eq!(errors("expression", "\n\nseen = (* no_such_variable *) + 1;", debug), at(13));
    }
}

#[test]
fn an_error_outside_the_text_is_in_the_c_file() {
    // A brace too many ends the function early: the compiler stumbles over what follows.
    let messages = errors("brace", "{* } *}", false);
    assert!(messages.iter().any(|(file, _)| file == "verbatim.c"), "{messages:?}");
}
