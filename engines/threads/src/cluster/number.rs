//! Numbers in the scheduler's state that the cluster reads and writes: variables of the policy, and
//! imports, which the program may have linked to a variable of its own.
//!
//! Invariant: a pointer leads into the scheduler's state, which lives as long as the process; a
//! link in it leads to a variable of the width that stands beside.

use attune_abi::{IMPORTED, Import, SHARED, TYPE_FLOAT, Variable};
use attune_language::ir::Value;
use attune_values::Width;

use super::Tables;

#[derive(Clone, Copy)]
pub struct Number {
    /// The value, or that in force while no variable is linked.
    at: *mut u64,
    float: bool,
    linked: Option<Link>,
}

#[derive(Clone, Copy)]
struct Link {
    import: *const Import,
    width: *const u32,
}

impl Number {
    pub fn new(variable: &Variable, tables: &Tables<'_>) -> Number {
        let at = (tables.state)(variable.offset);
        let float = variable.ty == TYPE_FLOAT;
        if !matches!(variable.imported, IMPORTED | SHARED) {
            return Number { at, float, linked: None };
        }
        let import: *mut Import = at.cast();
        let width = (tables.state)(variable.width).cast_const().cast();
        // SAFETY: the table says that an import lies there.
        let at = unsafe { &raw mut (*import).value };
        Number { at, float, linked: Some(Link { import, width }) }
    }

    /// A number of the same type, from its bits.
    pub fn read(self, bits: u64) -> Value {
        if self.float { Value::Float(f64::from_bits(bits)) } else { Value::Int(bits as i64) }
    }

    pub fn get(self) -> Value {
        match self.variable() {
            None => {
                // SAFETY: see the module's invariant; no handler runs.
                self.read(unsafe { self.at.read() })
            }
            Some((variable, width)) => {
                let mut bytes = [0; 8];
                // SAFETY: as above.
                unsafe { variable.copy_to_nonoverlapping(bytes.as_mut_ptr(), width.size()) };
                match width.load(&bytes).value {
                    attune_values::Value::Float(value) => self.typed(Value::Float(value)),
                    whole => self.typed(Value::Int(whole.to_int().value)),
                }
            }
        }
    }

    pub fn set(self, value: Value) {
        let value = self.typed(value);
        let (bits, outside) = match value {
            Value::Int(value) => (value as u64, attune_values::Value::Int(value)),
            Value::Float(value) => (value.to_bits(), attune_values::Value::Float(value)),
        };
        match self.variable() {
            // SAFETY: see the module's invariant; no handler runs.
            None => unsafe { self.at.write(bits) },
            Some((variable, width)) => {
                let bytes = width.store(outside).value;
                // SAFETY: as above.
                unsafe { variable.copy_from_nonoverlapping(bytes.as_ptr(), width.size()) };
            }
        }
    }

    fn typed(self, value: Value) -> Value {
        match (self.float, value) {
            (true, Value::Int(value)) => Value::Float(value as f64),
            (false, Value::Float(value)) => Value::Int(value as i64),
            (_, value) => value,
        }
    }

    /// The program's variable, if it has linked one.
    fn variable(self) -> Option<(*mut u8, Width)> {
        let link = self.linked?;
        // SAFETY: see the module's invariant.
        let (variable, width) = unsafe { ((*link.import).link, *link.width) };
        (!variable.is_null()).then_some((variable.cast(), Width::from_abi(width)?))
    }
}
