//! Tables by process (`attune_values::table`), put where `bpf/table.h` reads them.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use attune_values::table::{KEY_BYTES, MOST_ROWS, VALUE_BYTES, WORDS};
use libbpf_rs::{MapCore, MapFlags, MapHandle, libbpf_sys};

/// The maps of a loaded scheduler, and what they hold.
pub(crate) struct Tables {
    tables: MapHandle,
    columns: MapHandle,
    /// A bit for each table.
    there: u32,
    changes: u32,
    /// By import: 1 + table * 8 + word, 0: none.
    place: Vec<u8>,
}

impl Tables {
    /// `imports`: how many imports of the scheduler tables may supply, at least one.
    pub fn new(tables: MapHandle, columns: MapHandle, imports: usize) -> Tables {
        Tables { tables, columns, there: 0, changes: 0, place: vec![0; imports] }
    }

    /// `columns`: imports, and the words in which they stand.
    pub fn open(&mut self, table: u32, map: BorrowedFd, columns: &[(usize, u8)]) -> io::Result<()> {
        check(map)?;
        let fd = map.as_raw_fd();
        self.tables
            .update(&table.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
            .map_err(io::Error::other)?;
        self.there |= 1 << table;
        for &(import, word) in columns {
            let place = self.place.get_mut(import).ok_or(io::ErrorKind::NotFound)?;
            *place = 1 + table as u8 * WORDS as u8 + word;
        }
        self.publish()
    }

    pub fn close(&mut self, table: u32) {
        self.there &= !(1 << table);
        for place in &mut self.place {
            if *place != 0 && u32::from(*place - 1) / WORDS as u32 == table {
                *place = 0;
            }
        }
        // Should either fail, the scheduler is on its way out.
        let _ = self.publish();
        let _ = self.tables.delete(&table.to_ne_bytes());
    }

    /// struct attune_columns_there.
    fn publish(&mut self) -> io::Result<()> {
        self.changes += 1;
        let mut value = [self.there.to_ne_bytes(), self.changes.to_ne_bytes()].concat();
        value.extend(&self.place);
        value.resize(self.columns.value_size() as usize, 0);
        self.columns.update(&0u32.to_ne_bytes(), &value, MapFlags::ANY).map_err(io::Error::other)
    }
}

/// Whether the descriptor is a hash of the right layout and bound. The kernel compares type and
/// sizes once more when the map is put beside the others.
pub(crate) fn check(map: BorrowedFd) -> io::Result<()> {
    let mut about = libbpf_sys::bpf_map_info::default();
    let mut bytes = size_of::<libbpf_sys::bpf_map_info>() as u32;
    // SAFETY: both pointers are to locals that live through the call, which writes at most `bytes`.
    let answer =
        unsafe { libbpf_sys::bpf_map_get_info_by_fd(map.as_raw_fd(), &mut about, &mut bytes) };
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if answer != 0 {
        return wrong("the descriptor is no BPF map".to_owned());
    }
    let shape = (about.type_, about.key_size, about.value_size, about.map_flags);
    if shape != (libbpf_sys::BPF_MAP_TYPE_HASH, KEY_BYTES, VALUE_BYTES, 0) {
        return wrong(format!(
            "it must be a BPF hash without flags, with keys of {KEY_BYTES} bytes and values of \
             {VALUE_BYTES}"
        ));
    }
    if about.max_entries > MOST_ROWS {
        return wrong(format!("it has {} rows; {MOST_ROWS} are allowed", about.max_entries));
    }
    Ok(())
}
