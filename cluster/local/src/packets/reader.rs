//! Reads what [`super::writer`] writes, from any bytes: None where they are something else.

use attune_language::ir::Value;
use attune_replica::Operation;
use attune_replica::messages::{Batch, News, Orders, Target};

pub struct Reader<'a> {
    /// What has not been read.
    pub bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    pub fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Some(None) }
    }

    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.u32()? as usize;
        // Each element takes a byte at least: a length that lies takes no memory.
        if length > self.bytes.len() {
            return None;
        }
        (0..length).map(|_| read(self)).collect()
    }

    pub fn value(&mut self) -> Option<Value> {
        match self.u8()? {
            0 => Some(Value::Int(self.u64()? as i64)),
            1 => Some(Value::Float(f64::from_bits(self.u64()?))),
            _ => None,
        }
    }

    pub fn operation(&mut self) -> Option<Operation> {
        let kind = self.u8()?;
        let operand = self.value()?;
        Some(match kind {
            0 => Operation::Set(operand),
            1 => Operation::Add(operand),
            2 => Operation::Multiply(operand),
            3 => Operation::Divide(operand),
            4 => Operation::Remainder(operand),
            _ => return None,
        })
    }

    pub fn batch(&mut self) -> Option<Batch> {
        Some(Batch {
            number: self.u64()?,
            obeyed: self.u64()?,
            writes: self.list(|from| {
                let target = match from.u8()? {
                    0 => Target::Shared(from.u16()?),
                    1 => Target::Own(from.u16()?),
                    2 => Target::Of(from.u64()?, from.u16()?),
                    _ => return None,
                };
                Some((target, from.operation()?))
            })?,
        })
    }

    pub fn news(&mut self) -> Option<News> {
        Some(News {
            node: self.u64()?,
            revision: self.u64()?,
            since: self.u64()?,
            cells: self.list(|from| Some((from.u32()?, from.value()?)))?,
            counted: self.u64()?,
            orders: self.option(Reader::orders)?,
            started: self.flag()?,
        })
    }

    pub fn orders(&mut self) -> Option<Orders> {
        Some(Orders {
            number: self.u64()?,
            writes: self.list(|from| Some((from.u16()?, from.operation()?)))?,
        })
    }
}
