//! Messages as bytes, one packet each, and a cluster's schema as text for a compiled node.
//!
//! Numbers are little-endian; a text or a list begins with its length, 32 bits; a choice begins
//! with its number, one byte. Reading never fails other than by saying so: any bytes are taken.

pub mod reader;
mod schema;
pub mod writer;

pub use schema::{describe, description_of};

use attune_replica::messages::{Answer, Ask, Hello, News, Report, Welcome};

use reader::Reader;
use writer::Writer;

/// The longest packet, in bytes.
pub const LONGEST: usize = 1 << 17;

/// Part of every first packet: both ends must have the same.
pub const VERSION: u32 = 4;

/// From a node.
#[derive(Clone, Debug, PartialEq)]
pub enum ToManager {
    /// With the run of the manager that the node knew before; 0: none.
    Hello(Hello, u64),
    Report(Report),
    Ask(Ask),
}

/// From the manager.
#[derive(Clone, Debug, PartialEq)]
pub enum ToNode {
    /// With the number of the manager's run, by which a node knows a new one that has lost the
    /// state of the one before.
    Welcome(Welcome, u64),
    /// Why the node cannot take part.
    Refused(String),
    News(News),
    /// The manager has given the node up, which may say hello again.
    Unknown,
    /// Answers to requests, after the news of what they count.
    Answers(Option<News>, Vec<Answer>),
}

impl ToManager {
    pub fn bytes(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            ToManager::Hello(hello, run) => {
                to.u8(0);
                to.u32(VERSION);
                to.u64(*run);
                to.text(&hello.identity);
                to.text(&hello.family);
                to.u64(hello.key);
                to.option(hello.former, Writer::u64);
                to.list(&hello.values, |to, &(property, value)| {
                    to.u16(property);
                    to.value(value);
                });
            }
            ToManager::Report(report) => {
                to.u8(1);
                to.u64(report.node);
                to.u64(report.heard);
                to.option(report.batch.as_ref(), Writer::batch);
            }
            ToManager::Ask(ask) => {
                to.u8(2);
                to.u64(ask.node);
                to.u64(ask.number);
                to.u64(ask.unanswered);
                to.u16(ask.variable);
                to.list(&ask.writes, |to, &(variable, operation)| {
                    to.u16(variable);
                    to.operation(operation);
                });
            }
        }
        to.bytes
    }

    pub fn read(bytes: &[u8]) -> Option<ToManager> {
        let mut from = Reader { bytes };
        let message = match from.u8()? {
            0 if from.u32()? == VERSION => {
                let run = from.u64()?;
                let hello = Hello {
                    identity: from.text()?,
                    family: from.text()?,
                    key: from.u64()?,
                    former: from.option(Reader::u64)?,
                    values: from.list(|from| Some((from.u16()?, from.value()?)))?,
                };
                ToManager::Hello(hello, run)
            }
            1 => ToManager::Report(Report {
                node: from.u64()?,
                heard: from.u64()?,
                batch: from.option(Reader::batch)?,
            }),
            2 => ToManager::Ask(Ask {
                node: from.u64()?,
                number: from.u64()?,
                unanswered: from.u64()?,
                variable: from.u16()?,
                writes: from.list(|from| Some((from.u16()?, from.operation()?)))?,
            }),
            _ => return None,
        };
        from.bytes.is_empty().then_some(message)
    }
}

impl ToNode {
    pub fn bytes(&self) -> Vec<u8> {
        let mut to = Writer::default();
        match self {
            ToNode::Welcome(welcome, run) => {
                to.u8(0);
                to.u64(*run);
                to.u64(welcome.node);
                to.u64(welcome.revision);
                to.list(&welcome.values, |to, &value| to.value(value));
                to.u64(welcome.counted);
                to.flag(welcome.resumed);
                to.flag(welcome.started);
            }
            ToNode::Refused(why) => {
                to.u8(1);
                to.text(why);
            }
            ToNode::News(news) => {
                to.u8(2);
                to.news(news);
            }
            ToNode::Unknown => to.u8(3),
            ToNode::Answers(news, answers) => {
                to.u8(4);
                to.option(news.as_ref(), Writer::news);
                to.list(answers, |to, answer| {
                    to.u64(answer.node);
                    to.u64(answer.number);
                    to.value(answer.value);
                });
            }
        }
        to.bytes
    }

    pub fn read(bytes: &[u8]) -> Option<ToNode> {
        let mut from = Reader { bytes };
        let message = match from.u8()? {
            0 => {
                let run = from.u64()?;
                let welcome = Welcome {
                    node: from.u64()?,
                    revision: from.u64()?,
                    values: from.list(Reader::value)?,
                    counted: from.u64()?,
                    resumed: from.flag()?,
                    started: from.flag()?,
                };
                ToNode::Welcome(welcome, run)
            }
            1 => ToNode::Refused(from.text()?),
            2 => ToNode::News(from.news()?),
            3 => ToNode::Unknown,
            4 => {
                let news = from.option(Reader::news)?;
                let answers = from.list(|from| {
                    let (node, number) = (from.u64()?, from.u64()?);
                    Some(Answer { node, number, value: from.value()? })
                })?;
                ToNode::Answers(news, answers)
            }
            _ => return None,
        };
        from.bytes.is_empty().then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attune_language::ir::Value;
    use attune_replica::Operation;
    use attune_replica::messages::{Batch, Orders, Target};
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        // What is no number does not equal itself.
        let float = any::<f64>().prop_filter("a number", |float| !float.is_nan());
        prop_oneof![any::<i64>().prop_map(Value::Int), float.prop_map(Value::Float)]
    }

    fn operation() -> impl Strategy<Value = Operation> {
        (0..5, value()).prop_map(|(which, value)| match which {
            0 => Operation::Set(value),
            1 => Operation::Add(value),
            2 => Operation::Multiply(value),
            3 => Operation::Divide(value),
            _ => Operation::Remainder(value),
        })
    }

    fn target() -> impl Strategy<Value = Target> {
        prop_oneof![
            any::<u16>().prop_map(Target::Shared),
            any::<u16>().prop_map(Target::Own),
            any::<(u64, u16)>().prop_map(|(node, property)| Target::Of(node, property)),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (a, b, c, flag) in any::<(u64, u64, u64, bool)>(),
            (one, two) in any::<(String, String)>(),
            values in prop::collection::vec((any::<u16>(), value()), 0..9),
            writes in prop::collection::vec((target(), operation()), 0..9),
            orders in prop::collection::vec((any::<u16>(), operation()), 0..9),
            cells in prop::collection::vec((any::<u32>(), value()), 0..9),
            asked in prop::collection::vec((any::<u16>(), operation()), 0..3),
            value in value(),
        ) {
            let plain = values.iter().map(|(_, value)| *value).collect();
            let former = flag.then_some(b);
            let hello = Hello { identity: one, family: two.clone(), key: a, former, values };
            let batch = flag.then_some(Batch { number: a, obeyed: b, writes });
            let variable = b as u16;
            let ask = Ask { node: a, number: b, unanswered: c, variable, writes: asked };
            for message in [
                ToManager::Hello(hello, c),
                ToManager::Report(Report { node: a, heard: c, batch }),
                ToManager::Ask(ask),
            ] {
                prop_assert_eq!(ToManager::read(&message.bytes()), Some(message));
            }
            let orders = flag.then_some(Orders { number: c, writes: orders });
            let news =
                News { node: a, revision: b, since: c, cells, counted: a, orders, started: flag };
            let with_answers = flag.then(|| news.clone());
            let answer = Answer { node: a, number: b, value };
            let (resumed, started) = (flag, !flag);
            let welcome =
                Welcome { node: b, revision: c, values: plain, counted: a, resumed, started };
            for message in [
                ToNode::Welcome(welcome, b),
                ToNode::Refused(two),
                ToNode::News(news),
                ToNode::Unknown,
                ToNode::Answers(with_answers, vec![answer; 2]),
            ] {
                prop_assert_eq!(ToNode::read(&message.bytes()), Some(message));
            }
        }

        #[test]
        fn no_bytes_are_too_strange(mut bytes: Vec<u8>, kind in 0u8..5) {
            let _ = (ToManager::read(&bytes), ToNode::read(&bytes));
            bytes.insert(0, kind);
            let _ = (ToManager::read(&bytes), ToNode::read(&bytes));
        }
    }
}
