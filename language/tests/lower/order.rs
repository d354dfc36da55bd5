//! Effects come strictly from left to right, whatever an expression is made of.
//!
//! Random expressions are evaluated twice: as they are written, from left to right; and from the
//! IR, the *right* operand first, for the IR promises that the order of operands makes no
//! difference. Both must leave the same variables, the same count of divisions by zero, and end at
//! the same place if an index is out of range.

use std::collections::HashMap;

use attune_language::ir::*;
use proptest::prelude::*;

use super::{check_text, drawn};

const VARIABLES: [&str; 3] = ["x", "y", "z"];
const LENGTH: i64 = 3;

#[derive(Clone, Debug)]
enum Code {
    Number(i64),
    Variable(usize),
    /// `a[..]`, with the byte at which it stands in the source.
    Element(Box<Code>, usize),
    Not(Box<Code>),
    Binary(&'static str, Box<Code>, Box<Code>),
    /// `place OP value`, a plain `=` included.
    Assign(Box<Code>, &'static str, Box<Code>),
    /// `place++`, `--place` and so on.
    Step {
        place: Box<Code>,
        by: i64,
        before: bool,
    },
}

fn code() -> impl Strategy<Value = Code> {
    let leaf = prop_oneof![(0i64..4).prop_map(Code::Number), (0usize..3).prop_map(Code::Variable)];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let element = inner.clone().prop_map(|index| Code::Element(Box::new(index), 0));
        let place = prop_oneof![(0usize..3).prop_map(Code::Variable), element.clone()];
        let binary = prop::sample::select(vec!["+", "-", "*", "/", "%", "==", "<", "&&", "||"]);
        let assign = prop::sample::select(vec!["=", "+=", "-=", "*=", "/=", "%="]);
        prop_oneof![
            1 => inner.clone().prop_map(|operand| Code::Not(Box::new(operand))),
            5 => element,
            5 => (binary, inner.clone(), inner.clone())
                .prop_map(|(op, left, right)| Code::Binary(op, Box::new(left), Box::new(right))),
            3 => (place.clone(), assign, inner)
                .prop_map(|(place, op, value)| Code::Assign(Box::new(place), op, Box::new(value))),
            2 => (place, prop::sample::select(vec![1, -1]), any::<bool>())
                .prop_map(|(place, by, before)| Code::Step { place: Box::new(place), by, before }),
        ]
    })
}

/// Writes the code, and notes where its elements stand.
fn write(code: &mut Code, out: &mut String) {
    match code {
        Code::Number(value) => out.push_str(&value.to_string()),
        Code::Variable(variable) => out.push_str(VARIABLES[*variable]),
        Code::Element(index, start) => {
            *start = out.len();
            out.push_str("a[");
            write(index, out);
            out.push(']');
        }
        Code::Not(operand) => {
            out.push_str("!(");
            write(operand, out);
            out.push(')');
        }
        Code::Binary(op, left, right) | Code::Assign(left, op, right) => {
            out.push('(');
            write(left, out);
            out.push_str(&format!(" {op} "));
            write(right, out);
            out.push(')');
        }
        Code::Step { place, by, before } => {
            let op = if *by > 0 { "++" } else { "--" };
            out.push('(');
            if *before {
                out.push_str(op);
            }
            write(place, out);
            if !*before {
                out.push_str(op);
            }
            out.push(')');
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    variables: [i64; 3],
    array: [i64; LENGTH as usize],
    zero_divisions: u32,
}

/// The place of the index that is out of range.
type Trap = usize;

impl State {
    fn operate(&mut self, op: &str, left: i64, right: i64) -> i64 {
        if right == 0 && (op == "/" || op == "%") {
            self.zero_divisions += 1;
            return if op == "/" { 0 } else { left };
        }
        match op {
            "+" => left.wrapping_add(right),
            "-" => left.wrapping_sub(right),
            "*" => left.wrapping_mul(right),
            "/" => left.wrapping_div(right),
            "%" => left.wrapping_rem(right),
            "==" => (left == right).into(),
            "<" => (left < right).into(),
            _ => unreachable!("no operator of the generator: {op}"),
        }
    }

    fn evaluate(&mut self, code: &Code) -> Result<i64, Trap> {
        Ok(match code {
            Code::Number(value) => *value,
            Code::Variable(_) | Code::Element(..) => {
                let place = self.place(code)?;
                *self.at(place)?
            }
            Code::Not(operand) => (self.evaluate(operand)? == 0).into(),
            Code::Binary("&&", left, right) => {
                (self.evaluate(left)? != 0 && self.evaluate(right)? != 0).into()
            }
            Code::Binary("||", left, right) => {
                (self.evaluate(left)? != 0 || self.evaluate(right)? != 0).into()
            }
            Code::Binary(op, left, right) => {
                let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
                self.operate(op, left, right)
            }
            Code::Assign(place, op, value) => {
                let place = self.place(place)?;
                let old = if *op == "=" { 0 } else { *self.at(place)? };
                let mut value = self.evaluate(value)?;
                if *op != "=" {
                    value = self.operate(&op[..1], old, value);
                }
                *self.at(place)? = value;
                value
            }
            Code::Step { place, by, before } => {
                let place = self.place(place)?;
                let old = *self.at(place)?;
                *self.at(place)? = old.wrapping_add(*by);
                if *before { old.wrapping_add(*by) } else { old }
            }
        })
    }

    /// A variable, or an element and where it stands.
    fn place(&mut self, code: &Code) -> Result<(usize, Option<Trap>), Trap> {
        match code {
            Code::Variable(variable) => Ok((*variable, None)),
            Code::Element(index, start) => Ok((self.evaluate(index)? as usize, Some(*start))),
            _ => unreachable!("no place of the generator: {code:?}"),
        }
    }

    fn at(&mut self, (place, start): (usize, Option<Trap>)) -> Result<&mut i64, Trap> {
        match start {
            None => Ok(&mut self.variables[place]),
            Some(start) => self.array.get_mut(place).ok_or(start),
        }
    }
}

/// The IR, executed.
struct Machine<'a> {
    program: &'a Program,
    state: State,
    locals: HashMap<LocalId, i64>,
}

impl Machine<'_> {
    fn block(&mut self, block: &Block) -> Result<(), Trap> {
        block.statements.iter().try_for_each(|statement| match &statement.kind {
            StatementKind::Assign { place, value } => {
                let value = self.expr(*value)?;
                *self.place(place)? = value;
                Ok(())
            }
            StatementKind::If { condition, then, otherwise } => {
                let holds = self.expr(*condition)? != 0;
                self.block(if holds { then } else { otherwise })
            }
            other => unreachable!("not generated: {other:?}"),
        })
    }

    fn place(&mut self, place: &Place) -> Result<&mut i64, Trap> {
        match place {
            Place::Local(local, None) => Ok(self.locals.entry(*local).or_default()),
            Place::Global(global, index) => {
                let name = &self.program.globals[*global].name;
                match (VARIABLES.iter().position(|it| it == name), index) {
                    (Some(variable), None) => Ok(&mut self.state.variables[variable]),
                    (None, Some(index)) => {
                        let trap = self.program.checks[index.check].span.start as usize;
                        let at = self.expr(index.at)?;
                        self.state.array.get_mut(at as usize).ok_or(trap)
                    }
                    _ => unreachable!("not generated: {place:?}"),
                }
            }
            _ => unreachable!("not generated: {place:?}"),
        }
    }

    fn expr(&mut self, id: ExprId) -> Result<i64, Trap> {
        Ok(match &self.program.exprs[id].kind {
            ExprKind::Constant(Value::Int(value)) => *value,
            ExprKind::Read(place) => *self.place(place)?,
            ExprKind::Unary(UnaryOp::Not, operand) => (self.expr(*operand)? == 0).into(),
            ExprKind::And(left, right) => {
                (self.expr(*left)? != 0 && self.expr(*right)? != 0).into()
            }
            ExprKind::Or(left, right) => (self.expr(*left)? != 0 || self.expr(*right)? != 0).into(),
            ExprKind::Let { temporary, value, body } => {
                let value = self.expr(*value)?;
                self.locals.insert(*temporary, value);
                self.expr(*body)?
            }
            ExprKind::Binary(op, left, right) => {
                let (right, left) = (self.expr(*right)?, self.expr(*left)?);
                let op = match op {
                    BinaryOp::Add => "+",
                    BinaryOp::Subtract => "-",
                    BinaryOp::Multiply => "*",
                    BinaryOp::Divide => "/",
                    BinaryOp::Remainder => "%",
                    BinaryOp::Equal => "==",
                    BinaryOp::Less => "<",
                    BinaryOp::NotEqual => return Ok((left != right).into()),
                    other => unreachable!("not generated: {other:?}"),
                };
                self.state.operate(op, left, right)
            }
            other => unreachable!("not generated: {other:?}"),
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, ..ProptestConfig::default() })]

    #[test]
    fn effects_come_from_left_to_right(
        mut code in code(),
        variables in prop::array::uniform3(-1i64..4),
        array in prop::array::uniform3(-1i64..4),
    ) {
        let mut text = "scheduler s { data { int x, y, z, a[3]; } event init { x = ".to_string();
        write(&mut code, &mut text);
        text.push_str("; } }");
        let checked = check_text(&text);
        let Some(program) = &checked.program else {
            // A constant index may be out of range, which is an error of its own.
            prop_assert!(super::codes_of(&checked).contains(&"E0410"), "{}", drawn(&checked));
            return Ok(());
        };

        let start = State { variables, array, zero_divisions: 0 };
        let mut written = start.clone();
        let outcome = written.evaluate(&code).map(|value| written.variables[0] = value);

        let mut machine = Machine { program, state: start, locals: HashMap::new() };
        let body = &program.handlers[0].parts[0].routine.body;
        prop_assert_eq!(machine.block(body), outcome, "{}\n{}", text, program);
        prop_assert_eq!(machine.state, written, "{}\n{}", text, program);
    }
}

#[test]
fn in_switch_out_the_thread_may_be_gone_by_set_dead() {
    // What is read first traps first: an attribute of a thread that may be gone is kept before the
    // index that may be wrong.
    let temporaries = |set_dead: &str| {
        let text = format!(
            "scheduler s {{ thread {{ int b = 0; }} data {{ threadref current; queue ready; int k, \
                a[3]; }}
                event set_dead(fixed t) {{ {set_dead} }}
                event switch_out(t) {{ k = t.b + a[k]; if (|current| > 0) current => ready; }} }}"
        );
        let checked = check_text(&text);
        let Some(program) = &checked.program else { panic!("{}", drawn(&checked)) };
        program.locals.iter().filter(|(_, local)| local.temporary).count()
    };
    assert_eq!(temporaries("t.b = 1;"), 0);
    assert_eq!(temporaries("if (t == current) destroy current;"), 1);
}
