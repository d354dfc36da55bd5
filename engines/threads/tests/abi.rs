//! The Rust mirror of the interface of compiled schedulers and of the C header against what the C
//! compiler makes of them.

use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;

use attune_abi as abi;
use attune_threads::imports::Width;

/// Pairs of a C expression and what it must be.
fn wanted() -> Vec<(String, usize)> {
    let mut wanted = Vec::new();
    macro_rules! fields {
        ($rust:ident, $c:literal, $($field:ident = $name:literal),*) => {
            wanted.push((format!("sizeof(struct {})", $c), size_of::<abi::$rust>()));
            $(wanted.push((format!("offsetof(struct {}, \
                {})", $c, $name), offset_of!(abi::$rust, $field)));)*
        };
    }
    fields!(
        Thread,
        "attune_thread",
        id = "id",
        userdata = "userdata",
        container = "where",
        prev = "prev",
        next = "next",
        parent = "parent",
        key = "key",
        stamp = "stamp",
        height = "height",
        destroyed = "destroyed",
        line = "line"
    );
    fields!(
        Instance,
        "attune_instance",
        now = "now",
        cpu = "cpu",
        cpus = "cpus",
        dispatched = "dispatched",
        slice = "slice",
        value = "value",
        value_thread = "value_thread",
        host = "host",
        stamp = "stamp",
        random_state = "random_state",
        divisions_by_zero = "divisions_by_zero",
        clamped = "clamped",
        budget = "budget"
    );
    fields!(
        Trap,
        "attune_trap",
        check = "check",
        line = "line",
        column = "column",
        file = "file",
        message = "message"
    );
    fields!(
        Host,
        "attune_host",
        engine = "engine",
        trap = "trap",
        alarm = "alarm",
        preempt = "preempt",
        seed = "seed",
        cpus = "cpus",
        update = "update"
    );
    fields!(Node, "attune_node", cluster = "cluster", description = "description");
    fields!(Import, "attune_import", link = "link", value = "value");
    fields!(
        Variable,
        "attune_variable",
        name = "name",
        ty = "type",
        imported = "imported",
        length = "length",
        offset = "offset",
        width = "width",
        storage = "storage"
    );
    fields!(
        ContainerInfo,
        "attune_container_info",
        name = "name",
        offset = "offset",
        length = "length",
        stride = "stride"
    );
    fields!(
        Scheduler,
        "attune_scheduler",
        abi = "abi",
        thread_size = "thread_size",
        state_size = "state_size",
        may_be_split = "may_be_split",
        only = "only",
        name = "name",
        file = "file",
        globals = "globals",
        attributes = "attributes",
        global_count = "global_count",
        attribute_count = "attribute_count",
        containers = "containers",
        container_count = "container_count",
        cpus = "cpus",
        tells_time = "tells_time",
        attach = "attach",
        thread_init = "thread_init",
        thread_remove = "thread_remove",
        container_each = "container_each",
        change = "change",
        handler = "handler",
        node = "node"
    );
    // The mirror is only the container's beginning.
    for (field, offset) in
        [("first", offset_of!(abi::Container, first)), ("size", offset_of!(abi::Container, size))]
    {
        wanted.push((format!("offsetof(struct attune_container, {field})"), offset));
    }
    for (name, event) in [
        ("INIT", abi::Event::Init),
        ("NEWTHREAD", abi::Event::NewThread),
        ("SCHEDULE", abi::Event::Schedule),
        ("SWITCH_OUT", abi::Event::SwitchOut),
        ("EVENT_RAISED", abi::Event::EventRaised),
        ("SET_NEXT_THREAD", abi::Event::SetNextThread),
        ("SET_WAITING", abi::Event::SetWaiting),
        ("SET_DEAD", abi::Event::SetDead),
        ("SUSPEND_THREAD", abi::Event::SuspendThread),
        ("RESUME_THREAD", abi::Event::ResumeThread),
        ("QUANTUM_EXPIRED", abi::Event::QuantumExpired),
        ("ALARM", abi::Event::Alarm),
        ("TIMESLICE_LEFT", abi::Event::TimesliceLeft),
        ("CAN_SWITCH_TO", abi::Event::CanSwitchTo),
        ("LEAVES", abi::Event::Leaves),
        ("ARRIVES", abi::Event::Arrives),
    ] {
        wanted.push((format!("ATTUNE_{name}"), event as usize));
    }
    wanted.push(("ATTUNE_EVENTS".into(), abi::EVENTS));
    wanted.push(("ATTUNE_ABI".into(), abi::VERSION as usize));
    for (name, operation) in [
        ("SET", abi::SET),
        ("ADD", abi::ADD),
        ("MULTIPLY", abi::MULTIPLY),
        ("DIVIDE", abi::DIVIDE),
        ("REMAINDER", abi::REMAINDER),
    ] {
        wanted.push((format!("ATTUNE_{name}"), operation as usize));
    }
    wanted.push(("ATTUNE_FLOAT".into(), abi::TYPE_FLOAT as usize));
    for width in Width::ALL {
        let name = format!("{width:?}").to_uppercase();
        wanted.push((format!("ATTUNE_{name}"), width as usize));
        wanted.push((format!("ATTUNE_KIND_{name}"), width as usize));
    }
    let statistics = size_of::<attune_threads::Statistics>();
    wanted.push(("sizeof(struct attune_statistics)".into(), statistics));
    wanted
}

#[test]
fn layouts_and_numbers_equal_the_headers() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("layout.c");
    let mut text = String::from("#include \"container.h\"\n#include \"attune.h\"\n");
    for (expression, value) in wanted() {
        let _ = writeln!(
            text,
            "_Static_assert({expression} == {value}, \"{expression} is not {value}\");"
        );
    }
    std::fs::write(&source, text).expect("written");
    let root = env!("CARGO_MANIFEST_DIR");
    let output = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-I", &format!("{root}/include")])
        .args(["-I", &format!("{root}/../../backends/c/runtime")])
        .arg(&source)
        .output()
        .expect("the C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn variables_of_other_types_do_not_compile() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("types.c");
    let compiles = |variable: &str| {
        let text = format!(
            "#include \"attune.h\"\nstruct s {{ int a; }}; static {variable};\n\
             int f(void) {{ return attune_register(\"x\", &x); }}\n"
        );
        std::fs::write(&source, text).expect("written");
        let include = format!("{}/include", env!("CARGO_MANIFEST_DIR"));
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I", &include]).arg(&source);
        cc.output().expect("the C compiler").status.success()
    };
    for good in
        ["_Bool x", "char x", "volatile long x", "unsigned long long x", "float x", "double x"]
    {
        assert!(compiles(good), "{good}");
    }
    for bad in ["struct s x", "char *x", "long double x", "const int x"] {
        assert!(!compiles(bad), "{bad}");
    }
}
