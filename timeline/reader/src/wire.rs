//! Protobuf's wire format: a message as its fields, each a number and a value.

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl<'b> Value<'b> {
    pub fn number(self) -> u64 {
        match self {
            Value::Number(number) => number,
            Value::Bytes(bytes) => panic!("a number was expected, and {bytes:?} is there"),
        }
    }

    pub fn bytes(self) -> &'b [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Number(number) => panic!("a message was expected, and {number} is there"),
        }
    }

    pub fn text(self) -> String {
        String::from_utf8(self.bytes().into()).expect("names are UTF-8")
    }
}

/// The fields of a message in their order, up to the last whole one.
pub struct Fields<'b>(pub &'b [u8]);

impl<'b> Iterator for Fields<'b> {
    type Item = (u64, Value<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Number(u32::from_le_bytes(self.take(4)?.try_into().ok()?).into()),
            other => panic!("there is no wire type {other}"),
        };
        Some((key >> 3, value))
    }
}

impl<'b> Fields<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        panic!("a number has more than 64 bits");
    }
}

/// The fields of a message; panics where it ends inside of one.
pub fn whole(message: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Fields(message);
    let all = fields.by_ref().collect();
    assert!(fields.0.is_empty(), "a message ends inside of a field");
    all
}
