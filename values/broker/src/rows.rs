//! The rows of one process's page: which thread has which.
//!
//! Invariant: a thread has at most one row, and a row at most one thread. The process itself takes
//! rows from the first one upwards, and hints take theirs from the last one downwards.

use std::collections::BTreeMap;

use attune_values::page::ROWS;

/// Rows that are taken before those of threads that have ended are looked for at first.
const FEW: usize = 64;

#[derive(Debug)]
pub struct Rows {
    threads: BTreeMap<u16, i32>,
    rows: BTreeMap<i32, u16>,
    /// Rows from this one on were taken for a hint once.
    lowest: u16,
    /// Those of them that nobody has, or that the process has taken meanwhile.
    given_back: Vec<u16>,
    /// How many may be taken before it is worth a look which threads have ended.
    look_at: usize,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows {
            threads: BTreeMap::new(),
            rows: BTreeMap::new(),
            lowest: ROWS as u16,
            given_back: Vec::new(),
            look_at: FEW,
        }
    }
}

impl Rows {
    pub fn of(&self, thread: i32) -> Option<u16> {
        self.rows.get(&thread).copied()
    }

    /// Rows that threads have.
    pub fn taken(&self) -> impl Iterator<Item = u16> {
        self.threads.keys().copied()
    }

    /// The thread has this row from now on, and no other; the thread that had it before.
    pub fn give(&mut self, row: u16, thread: i32) -> Option<i32> {
        if let Some(earlier) = self.rows.insert(thread, row).filter(|earlier| *earlier != row) {
            self.threads.remove(&earlier);
            self.is_free(earlier);
        }
        let before = self.threads.insert(row, thread).filter(|before| *before != thread)?;
        self.rows.remove(&before);
        Some(before)
    }

    /// Nobody has the row any more; the thread that had it.
    pub fn take_back(&mut self, row: u16) -> Option<i32> {
        let thread = self.threads.remove(&row)?;
        self.rows.remove(&thread);
        self.is_free(row);
        Some(thread)
    }

    fn is_free(&mut self, row: u16) {
        if row >= self.lowest {
            self.given_back.push(row);
        }
    }

    /// The rows of threads that have ended, where there are so many rows that it is worth a look.
    /// The more there are, the rarer is one, so that each new row pays for a few old ones only.
    pub fn ended(&mut self, has_ended: impl Fn(i32) -> bool) -> Vec<u16> {
        if self.rows.len() < self.look_at {
            return Vec::new();
        }
        let rows: Vec<u16> =
            self.threads.iter().filter(|it| has_ended(*it.1)).map(|(row, _)| *row).collect();
        self.look_at = (2 * (self.rows.len() - rows.len())).clamp(FEW, ROWS - 1);
        rows
    }

    /// A row for a hint. None: there is none.
    pub fn free(&mut self) -> Option<u16> {
        while let Some(row) = self.given_back.pop() {
            if !self.threads.contains_key(&row) {
                return Some(row);
            }
        }
        let row = self.lowest.checked_sub(1).filter(|row| *row > 0)?;
        if self.threads.contains_key(&row) {
            return None;
        }
        self.lowest = row;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_take_rows_from_the_end_and_the_process_from_the_start() {
        let mut rows = Rows::default();
        assert_eq!(rows.free(), Some(ROWS as u16 - 1));
        assert_eq!(rows.give(ROWS as u16 - 1, 7), None);
        assert_eq!(rows.free(), Some(ROWS as u16 - 2));
        assert_eq!(rows.give(1, 8), None);
        assert_eq!((rows.of(7), rows.of(8)), (Some(ROWS as u16 - 1), Some(1)));
        assert_eq!(rows.take_back(ROWS as u16 - 1), Some(7));
        assert_eq!(rows.free(), Some(ROWS as u16 - 1));
        assert_eq!(rows.take_back(5), None);
    }

    #[test]
    fn a_thread_has_one_row_and_a_row_one_thread() {
        let mut rows = Rows::default();
        rows.give(1, 7);
        assert_eq!(rows.give(2, 7), None);
        assert_eq!((rows.of(7), rows.taken().collect::<Vec<_>>()), (Some(2), vec![2]));
        assert_eq!(rows.give(2, 8), Some(7));
        assert_eq!(rows.of(7), None);
    }

    #[test]
    fn rows_of_threads_that_have_ended_are_found_before_memory_grows() {
        let mut rows = Rows::default();
        let mut highest = 0;
        for thread in 1..100_000 {
            for row in rows.ended(|it| it != thread - 1) {
                rows.take_back(row);
            }
            let row = rows.free().unwrap();
            highest = highest.max(ROWS as u16 - row);
            rows.give(row, thread);
        }
        assert!(usize::from(highest) <= FEW, "{highest}");
    }

    #[test]
    fn all_rows_but_the_first_can_be_taken() {
        let mut rows = Rows::default();
        for thread in 1..ROWS as i32 {
            let row = rows.free().unwrap();
            rows.give(row, thread);
        }
        assert_eq!(rows.free(), None);
        rows.take_back(77);
        assert_eq!(rows.free(), Some(77));
    }
}
