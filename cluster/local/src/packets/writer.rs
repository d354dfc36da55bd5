//! Writes numbers, texts and parts of messages, for packets and for what a manager keeps of itself.

use attune_language::ir::Value;
use attune_replica::Operation;
use attune_replica::messages::{Batch, News, Orders, Target};

#[derive(Default)]
pub struct Writer {
    pub bytes: Vec<u8>,
}

impl Writer {
    pub fn u8(&mut self, number: u8) {
        self.bytes.push(number);
    }

    pub fn u16(&mut self, number: u16) {
        self.bytes.extend(number.to_le_bytes());
    }

    pub fn u32(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    pub fn u64(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    pub fn flag(&mut self, flag: bool) {
        self.u8(flag.into());
    }

    pub fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.bytes.extend(text.as_bytes());
    }

    pub fn option<T>(&mut self, what: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.flag(what.is_some());
        if let Some(what) = what {
            write(self, what);
        }
    }

    pub fn list<T>(&mut self, list: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.u32(list.len() as u32);
        list.iter().for_each(|each| write(self, each));
    }

    pub fn value(&mut self, value: Value) {
        match value {
            Value::Int(value) => {
                self.u8(0);
                self.u64(value as u64);
            }
            Value::Float(value) => {
                self.u8(1);
                self.u64(value.to_bits());
            }
        }
    }

    pub fn operation(&mut self, operation: Operation) {
        self.u8(match operation {
            Operation::Set(_) => 0,
            Operation::Add(_) => 1,
            Operation::Multiply(_) => 2,
            Operation::Divide(_) => 3,
            Operation::Remainder(_) => 4,
        });
        self.value(operation.operand());
    }

    pub fn batch(&mut self, batch: &Batch) {
        self.u64(batch.number);
        self.u64(batch.obeyed);
        self.list(&batch.writes, |to, &(target, operation)| {
            match target {
                Target::Shared(shared) => {
                    to.u8(0);
                    to.u16(shared);
                }
                Target::Own(property) => {
                    to.u8(1);
                    to.u16(property);
                }
                Target::Of(node, property) => {
                    to.u8(2);
                    to.u64(node);
                    to.u16(property);
                }
            }
            to.operation(operation);
        });
    }

    pub fn news(&mut self, news: &News) {
        self.u64(news.node);
        self.u64(news.revision);
        self.u64(news.since);
        self.list(&news.cells, |to, &(cell, value)| {
            to.u32(cell);
            to.value(value);
        });
        self.u64(news.counted);
        self.option(news.orders.as_ref(), Writer::orders);
        self.flag(news.started);
    }

    pub fn orders(&mut self, orders: &Orders) {
        self.u64(orders.number);
        self.list(&orders.writes, |to, &(property, operation)| {
            to.u16(property);
            to.operation(operation);
        });
    }
}
