//! Lays out columns of text below each other, for a terminal.

/// The width of each column, in characters.
pub fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell =
        |row: &Vec<String>, column| row.get(column).map_or(0, |it: &String| it.chars().count());
    (0..columns).map(|column| rows.iter().map(|row| cell(row, column)).max().unwrap_or(0)).collect()
}

/// A line for each row. `right` says of each column whether its cells stand to the right, as
/// numbers do; columns behind the last are as the last.
pub fn lines(rows: &[Vec<String>], right: &[bool]) -> Vec<String> {
    let widths = widths(rows);
    let cell = |(column, cell): (usize, &String)| {
        let width = widths[column];
        match right.get(column).or(right.last()) {
            Some(true) => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        }
    };
    let line = |row: &Vec<String>| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let rows: Vec<Vec<String>> = vec![row(&["fifo", "1", "2"]), row(&["é", "1000"])];
        assert_eq!(lines(&rows, &[false, true]), ["fifo     1  2", "é     1000"]);
        assert!(lines(&[], &[]).is_empty());
    }
}
