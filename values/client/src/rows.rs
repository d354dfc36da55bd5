//! Which thread has which row of the page.
//!
//! Invariant: a row belongs to at most one thread and a thread has at most one row; the two maps
//! say the same. Row 0 is nobody's.

use std::collections::{BTreeSet, HashMap};

use attune_values::page::ROWS;

#[derive(Default)]
pub struct Rows {
    threads: Vec<Option<i32>>,
    rows: HashMap<i32, u16>,
    /// Rows that a thread has had, and none has now.
    free: BTreeSet<u16>,
}

impl Rows {
    pub fn of(&self, thread: i32) -> Option<u16> {
        self.rows.get(&thread).copied()
    }

    /// Rows and threads, by row.
    pub fn all(&self) -> impl Iterator<Item = (u16, i32)> + '_ {
        let threads = self.threads.iter().zip(1..);
        threads.filter_map(|(thread, row)| Some((row, (*thread)?)))
    }

    /// The lowest row that no thread has. None: there is none.
    pub fn free(&self) -> Option<u16> {
        let next = self.threads.len() + 1;
        self.free.first().copied().or((next < ROWS).then_some(next as u16))
    }

    /// Gives [`Rows::free`] to a thread that has none.
    pub fn give(&mut self, row: u16, thread: i32) {
        let index = usize::from(row) - 1;
        if index == self.threads.len() {
            self.threads.push(None);
        }
        self.free.remove(&row);
        self.threads[index] = Some(thread);
        self.rows.insert(thread, row);
    }

    /// The row that the thread had.
    pub fn take(&mut self, thread: i32) -> Option<u16> {
        let row = self.rows.remove(&thread)?;
        self.threads[usize::from(row) - 1] = None;
        self.free.insert(row);
        Some(row)
    }

    /// The thread has another number now.
    pub fn rename(&mut self, thread: i32, now: i32) {
        if let Some(row) = self.rows.remove(&thread) {
            self.threads[usize::from(row) - 1] = Some(now);
            self.rows.insert(now, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_was_given_back_is_the_next_to_be_given() {
        let mut rows = Rows::default();
        for thread in 101..=104 {
            rows.give(rows.free().unwrap(), thread);
        }
        assert_eq!((rows.of(103), rows.take(102), rows.take(102)), (Some(3), Some(2), None));
        assert_eq!(rows.all().collect::<Vec<_>>(), [(1, 101), (3, 103), (4, 104)]);
        assert_eq!(rows.free(), Some(2));
        rows.give(2, 105);
        rows.rename(101, 7);
        assert_eq!((rows.of(101), rows.of(7), rows.of(105)), (None, Some(1), Some(2)));
        assert_eq!(rows.free(), Some(5));
    }

    #[test]
    fn there_are_as_many_rows_as_the_page_has_but_one() {
        let mut rows = Rows::default();
        for thread in 1..ROWS as i32 {
            rows.give(rows.free().unwrap(), thread);
        }
        assert_eq!(rows.free(), None);
        rows.take(9);
        assert_eq!(rows.free(), Some(9));
    }
}
