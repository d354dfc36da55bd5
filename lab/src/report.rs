//! What an experiment found: tables, whether its claims hold, pictures; as text, as JSON and as one HTML page that needs no
//! other file.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// One experiment's result.
#[derive(Clone, Debug)]
pub struct Report {
    pub name: String,
    pub title: String,
    /// Paragraphs that say how it was measured and how to read it.
    pub text: Vec<String>,
    pub tables: Vec<Table>,
    pub claims: Vec<Claim>,
    pub pictures: Vec<Picture>,
    /// Commands with which the figures were made.
    pub commands: Vec<String>,
    /// All the figures, for programs.
    pub data: Value,
}

/// Rows of words; the first column is aligned left, the others right.
#[derive(Clone, Debug)]
pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Said below it.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub claim: String,
    pub holds: bool,
    pub measured: String,
}

#[derive(Clone, Debug)]
pub struct Picture {
    pub title: String,
    pub svg: String,
}

impl Report {
    /// Whether every claim holds.
    pub fn holds(&self) -> bool {
        self.claims.iter().all(|claim| claim.holds)
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for table in &self.tables {
            text += &table.to_text();
            text.push('\n');
        }
        for claim in &self.claims {
            let word = if claim.holds { "holds  " } else { "MISSED " };
            let _ = writeln!(text, "{word} {}: {}", claim.claim, claim.measured);
        }
        text
    }

    pub fn to_json(&self) -> Value {
        let claims: Vec<_> = self
            .claims
            .iter()
            .map(|claim| json!({ "claim": claim.claim, "holds": claim.holds, "measured": claim.measured }))
            .collect();
        json!({ "experiment": self.name, "holds": self.holds(), "claims": claims, "commands": self.commands,
                "data": self.data })
    }

    pub fn to_html(&self) -> String {
        let mut body = format!("<h1>{}</h1>\n", escape(&self.title));
        for claim in &self.claims {
            let (class, word) = if claim.holds { ("holds", "holds") } else { ("missed", "missed") };
            let (claim, measured) = (escape(&claim.claim), escape(&claim.measured));
            let _ = writeln!(body, "<p class={class}><b>{word}</b> {claim}: {measured}</p>");
        }
        for table in &self.tables {
            body += &table.to_html();
        }
        for picture in &self.pictures {
            let _ = writeln!(
                body,
                "<figure><figcaption>{}</figcaption>{}</figure>",
                escape(&picture.title),
                picture.svg
            );
        }
        for paragraph in &self.text {
            let _ = writeln!(body, "<p>{}</p>", escape(paragraph));
        }
        let _ = writeln!(body, "<h2>Commands</h2><pre>{}</pre>", escape(&self.commands.join("\n")));
        format!(
            "<!doctype html><html lang=en><meta charset=utf-8><title>{}</title><style>{STYLE}</style><main>\n{body}</main></html>\n",
            escape(&self.title)
        )
    }
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff}main{max-width:64rem;margin:2rem auto;\
padding:0 1rem}table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}td,th{padding:.2rem .7rem;\
text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}caption{text-align:left;\
font-weight:600;padding:.4rem 0}figure{margin:2rem 0}figcaption{font-weight:600}svg{max-width:100%;height:auto}\
pre{white-space:pre-wrap;background:#f5f5f5;padding:1rem}.holds b{color:#187a2f}.missed b{color:#b3261e}small{color:#555}";

impl Table {
    pub fn to_text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.chain(self.columns.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = format!("{}\n", self.title);
        let mut line = |cells: &[String]| {
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let _ = if column == 0 {
                    write!(text, "{cell:width$}")
                } else {
                    write!(text, "  {cell:>width$}")
                };
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        };
        line(&self.columns);
        line(&widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>());
        self.rows.iter().for_each(|row| line(row));
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    fn to_html(&self) -> String {
        let row = |tag: &str, cells: &[String]| {
            let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(|cells| row("td", cells)).collect();
        let notes: String =
            self.notes.iter().map(|note| format!("<p><small>{}</small></p>\n", escape(note))).collect();
        let (caption, head) = (escape(&self.title), row("th", &self.columns));
        format!("<table><caption>{caption}</caption>\n{head}{rows}</table>\n{notes}")
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_and_a_page_escapes() {
        let table = Table {
            title: "T".to_owned(),
            columns: vec!["who".to_owned(), "ms".to_owned()],
            rows: vec![vec!["<fifo>".to_owned(), "1".to_owned()], vec!["x".to_owned(), "1000".to_owned()]],
            notes: vec!["n".to_owned()],
        };
        assert_eq!(table.to_text(), "T\nwho       ms\n------  ----\n<fifo>     1\nx       1000\nn\n");
        let claim = |holds| Claim { claim: "c".to_owned(), holds, measured: "m".to_owned() };
        let mut report = Report {
            name: "n".to_owned(),
            title: "a & b".to_owned(),
            text: vec![],
            tables: vec![table],
            claims: vec![claim(true)],
            pictures: vec![],
            commands: vec![],
            data: Value::Null,
        };
        assert!(report.holds());
        assert!(report.to_html().contains("&lt;fifo&gt;") && report.to_html().contains("a &amp; b"));
        report.claims.push(claim(false));
        assert!(!report.holds() && report.to_text().contains("MISSED  c: m"));
    }
}
