//! The typed view: each part of a statement and of an expression is found under its name.

use attune_language::syntax::ast::*;

use super::{codes_of, parse};

/// The statements of a handler with that body, which has no errors.
fn statements(body: &str) -> Vec<Statement> {
    let text = format!("scheduler s {{ event init {{ {body} }} }}");
    assert_eq!(codes_of(&text), [], "{body}");
    let Some(File::Scheduler(scheduler)) = parse(&text).1.file() else { panic!("no scheduler") };
    let handler = scheduler.items().find_map(|item| match item {
        Item::Handler(handler) => handler.body(),
        _ => None,
    });
    handler.unwrap().statements().collect()
}

fn statement(body: &str) -> Statement {
    let mut all = statements(body);
    assert_eq!(all.len(), 1, "{body}");
    all.remove(0)
}

fn expr(text: &str) -> Expr {
    match statement(&format!("{text};")) {
        Statement::Expr(it) => it.expr().unwrap(),
        other => panic!("{text} is no expression: {other:?}"),
    }
}

fn text<N: AstNode>(node: Option<N>) -> String {
    node.map(|node| node.syntax().text().to_string()).unwrap_or_default()
}

/// The expression with parentheses around each operation.
fn grouped(expr: Option<Expr>) -> String {
    let Some(expr) = expr else { return "?".to_string() };
    match &expr {
        Expr::Assign(it) => {
            let op = it.op().map(BinaryOp::symbol).unwrap_or_default();
            format!("({} {op}= {})", grouped(it.target()), grouped(it.value()))
        }
        Expr::Binary(it) => {
            let op = it.op().map(BinaryOp::symbol).unwrap();
            format!("({} {op} {})", grouped(it.left()), grouped(it.right()))
        }
        Expr::Prefix(it) => format!("({:?} {})", it.op().unwrap(), grouped(it.operand())),
        Expr::Postfix(it) => format!("({} {:?})", grouped(it.operand()), it.op().unwrap()),
        Expr::Is(it) => format!("({} is {})", grouped(it.node()), text(it.family())),
        Expr::Size(it) => format!("size({})", grouped(it.container())),
        Expr::First(it) => format!("first({})", grouped(it.container())),
        Expr::Field(it) => format!("{}.{}", grouped(it.base()), text(it.field())),
        Expr::Index(it) => format!("{}[{}]", grouped(it.base()), grouped(it.index())),
        Expr::Call(it) => {
            let arguments: Vec<String> =
                it.arguments().map(|argument| grouped(Some(argument))).collect();
            format!("{}({})", grouped(it.function()), arguments.join(", "))
        }
        Expr::Paren(it) => grouped(it.inner()),
        Expr::Verbatim(it) => format!("verbatim({})", it.text()),
        Expr::Literal(_) | Expr::Name(_) => text(Some(expr)),
    }
}

#[test]
fn operators_bind_as_in_c() {
    let cases = [
        ("a = b += c", "(a = (b += c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a / b * c % d", "(((a / b) * c) % d)"),
        ("a = b || c && d == e < f + g * h", "(a = (b || (c && (d == (e < (f + (g * h)))))))"),
        ("a * b + c < d == e && f || g", "((((((a * b) + c) < d) == e) && f) || g)"),
        ("a <= b != c >= d", "((a <= b) != (c >= d))"),
        ("-a * !b", "((Negate a) * (Not b))"),
        ("- -a--", "(Negate (Negate (a Decrement)))"),
        ("++a.b[c] - -d", "((Increment a.b[c]) - (Negate d))"),
        ("(a + b) * c", "((a + b) * c)"),
        ("a is web && b is db == 1", "((a is web) && ((b is db) == 1))"),
        ("a %= b *= c /= d -= e", "(a %= (b *= (c /= (d -= e))))"),
    ];
    for (source, expected) in cases {
        assert_eq!(grouped(Some(expr(source))), expected, "{source}");
    }
}

#[test]
fn bars_and_stars_are_told_apart() {
    let cases = [
        ("|RQ| + |NQ|", "(size(RQ) + size(NQ))"),
        ("|RQ|+|NQ|", "(size(RQ) + size(NQ))"),
        ("a || b", "(a || b)"),
        ("a||b", "(a || b)"),
        ("a|||RQ|", "(a || size(RQ))"),
        ("|RQ||||NQ|", "(size(RQ) || size(NQ))"),
        ("|RQ[|NQ|]|", "size(RQ[size(NQ)])"),
        ("|GLOBAL.RQ|", "size(GLOBAL.RQ)"),
        ("*RQ.key", "first(RQ).key"),
        ("*RQ[2].key", "first(RQ[2]).key"),
        ("*GLOBAL.RQ.key", "first(GLOBAL.RQ).key"),
        ("*GLOBAL.RQ[1].key", "first(GLOBAL.RQ[1]).key"),
        ("a * *RQ.key", "(a * first(RQ).key)"),
        ("a**RQ.key", "(a * first(RQ).key)"),
        ("(* rand() *) % 100", "(verbatim( rand() ) % 100)"),
        ("random( *RQ.key, 2)", "random(first(RQ).key, 2)"),
    ];
    for (source, expected) in cases {
        assert_eq!(grouped(Some(expr(source))), expected, "{source}");
    }
}

#[test]
fn literals_have_values() {
    let value = |text: &str| match expr(text).without_parens() {
        Some(Expr::Literal(literal)) => literal.value(),
        other => panic!("{other:?}"),
    };
    assert_eq!(value("12"), LiteralValue::Int(12));
    assert_eq!(value("0x1F"), LiteralValue::Int(31));
    assert_eq!(value("(1.5e3)"), LiteralValue::Float(1500.0));
    assert_eq!(value("20ms"), LiteralValue::Time(20_000_000));
    assert_eq!(value("true"), LiteralValue::Bool(true));
    let Expr::Prefix(lowest) = expr("-9223372036854775808") else { panic!("no sign") };
    let Some(Expr::Literal(lowest)) = lowest.operand() else { panic!("no literal") };
    assert_eq!(lowest.value(), LiteralValue::Int(i64::MIN));
}

#[test]
fn conditions_and_loops_have_parts() {
    let Statement::If(it) = statement("if (a) b = 1; else if (c) d = 1; else { e = 1; }") else {
        panic!()
    };
    assert_eq!((text(it.condition()), text(it.then_branch())), ("a".into(), "b = 1;".into()));
    let Some(Statement::If(inner)) = it.else_branch() else { panic!("no else if") };
    assert_eq!(text(inner.else_branch()), "{ e = 1; }");

    let Statement::If(it) = statement("if (a) if (b) c = 1; else d = 1;") else { panic!() };
    assert!(it.else_branch().is_none(), "an else belongs to the nearest if");

    let Statement::For(it) = statement("for (a = 0; a < 3; a++) b = 1;") else { panic!() };
    let parts = [text(it.init()), text(it.condition()), text(it.step()), text(it.body())];
    assert_eq!(parts, ["a = 0", "a < 3", "a++", "b = 1;"]);
    let Statement::For(it) = statement("for (; a;) ;") else { panic!() };
    assert_eq!(
        [text(it.init()), text(it.condition()), text(it.step()), text(it.body())],
        ["", "a", "", ";"]
    );

    let Statement::Do(it) = statement("do a = 1; while (b);") else { panic!() };
    assert_eq!((text(it.body()), text(it.condition())), ("a = 1;".into(), "b".into()));
    let Statement::While(it) = statement("while (*RQ == t) a = 1;") else { panic!() };
    assert_eq!((text(it.condition()), text(it.body())), ("*RQ == t".into(), "a = 1;".into()));

    for source in ["foreach x in RQ[1] x => NQ;", "foreach (x in RQ[1]) x => NQ;"] {
        let Statement::Foreach(it) = statement(source) else { panic!() };
        let parts = [text(it.variable()), text(it.container()), text(it.body())];
        assert_eq!(parts, ["x", "RQ[1]", "x => NQ;"]);
    }
}

#[test]
fn statements_about_threads_have_parts() {
    let Statement::Transfer(it) = statement("GLOBAL.RQ[1] => n.current;") else { panic!() };
    assert_eq!(
        (text(it.source()), text(it.destination())),
        ("GLOBAL.RQ[1]".into(), "n.current".into())
    );
    let Some(Expr::Index(source)) = it.source() else { panic!("no element") };
    let Some(Expr::Field(source)) = source.base() else { panic!("no global") };
    assert!(source.is_global());

    let Statement::Dispatch(it) = statement("dispatch current for 2 * slice;") else { panic!() };
    assert_eq!((text(it.container()), text(it.duration())), ("current".into(), "2 * slice".into()));
    let Statement::Dispatch(it) = statement("dispatch current;") else { panic!() };
    assert!(it.duration().is_none());
    let Statement::Alarm(it) = statement("alarm t at now + 5ms;") else { panic!() };
    assert_eq!((text(it.thread()), text(it.time())), ("t".into(), "now + 5ms".into()));
    let Statement::Preempt(it) = statement("preempt (c);") else { panic!() };
    assert_eq!((text(it.cpu()), it.time().is_none()), ("(c)".into(), true));
    let Statement::Preempt(it) = statement("preempt cpu at now + 1ms;") else { panic!() };
    assert_eq!((text(it.cpu()), text(it.time())), ("cpu".into(), "now + 1ms".into()));
    let Statement::Verbatim(it) = statement("{* f(\"{}\"); *}") else { panic!() };
    assert_eq!(it.text(), " f(\"{}\"); ");
    let Statement::Return(it) = statement("return a;") else { panic!() };
    assert_eq!(text(it.value()), "a");
}

/// Each new word is a name wherever it can be one.
#[test]
fn new_words_are_no_reserved_words() {
    for word in [
        "now", "cpu", "cpus", "random", "alarm", "preempt", "tunable", "percpu", "at", "is",
        "node", "global",
    ] {
        assert!(matches!(statement(&format!("int {word};")), Statement::Declaration(_)), "{word}");
        for source in [
            format!("{word} = {word} + {word};"),
            format!("{word}++;"),
            format!("{word}.{word} = 1;"),
            format!("{word}[{word}] = |{word}|;"),
        ] {
            assert!(matches!(statement(&source), Statement::Expr(_)), "{source}");
        }
        for source in [format!("{word} => RQ;"), format!("RQ => {word};")] {
            assert!(matches!(statement(&source), Statement::Transfer(_)), "{source}");
        }
        let Statement::Alarm(it) = statement(&format!("alarm {word} at {word};")) else {
            panic!("{word}")
        };
        assert_eq!((text(it.thread()), text(it.time())), (word.to_string(), word.to_string()));
    }
}

#[test]
fn declarations_have_parts() {
    let source = "percpu const int a = 1, b[2];";
    let Statement::Declaration(it) = statement(source) else { panic!() };
    assert!(
        it.has_storage(Storage::Percpu)
            && it.has_storage(Storage::Const)
            && !it.has_storage(Storage::Tunable)
    );
    assert_eq!(it.ty().and_then(|ty| ty.kind()), Some(TypeKind::Int));
    let declarators: Vec<Declarator> = it.declarators().collect();
    assert_eq!(
        (text(declarators[0].name()), text(declarators[0].initial())),
        ("a".into(), "1".into())
    );
    assert_eq!(
        (text(declarators[1].name()), text(declarators[1].size())),
        ("b".into(), "2".into())
    );

    let orders = [
        ("reverse ", SortOrder::Increasing),
        ("increasing ", SortOrder::Increasing),
        ("decreasing ", SortOrder::Decreasing),
        ("", SortOrder::Decreasing),
    ];
    for (word, order) in orders {
        for array in ["", "[4]"] {
            let Statement::Declaration(it) =
                statement(&format!("pqueue q{array} {word}sortable on key;"))
            else {
                panic!()
            };
            let declarator = it.declarators().next().unwrap();
            let sort = declarator.sort().unwrap();
            assert_eq!((sort.order(), text(sort.key())), (order, "key".to_string()));
            assert_eq!(declarator.array().is_some(), !array.is_empty());
        }
    }
}
