//! Reports what an experiment found: tables, verdicts on its claims, pictures; as text, as JSON and
//! as one HTML page that needs no other file.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::columns;
use crate::median_interval::Median;

/// One experiment's result.
#[derive(Clone, Debug)]
pub struct Report {
    pub name: String,
    pub title: String,
    /// Paragraphs that say how the experiment measures and how to read its figures.
    pub text: Vec<String>,
    pub tables: Vec<Table>,
    pub claims: Vec<Claim>,
    pub pictures: Vec<Picture>,
    /// The commands that made the figures.
    pub commands: Vec<String>,
    /// Commands that a reader may try next.
    pub next: Vec<String>,
    /// All the figures, for programs.
    pub data: Value,
}

/// Rows of text; the first column is aligned left, the others right.
#[derive(Clone, Debug)]
pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Lines below the rows.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub claim: String,
    pub verdict: Verdict,
    pub measured: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    Missed,
    /// The interval of the measurement lies on both sides of the bound.
    Undecided,
}

#[derive(Clone, Debug)]
pub struct Picture {
    pub title: String,
    pub svg: String,
}

impl Verdict {
    fn of(holds: bool) -> Verdict {
        if holds { Verdict::Holds } else { Verdict::Missed }
    }

    fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Missed => "MISSED",
            Verdict::Undecided => "undecided",
        }
    }
}

impl Claim {
    /// `measured`: whether it holds, and the figures. None: nothing was measured, so it is missed.
    pub fn new(claim: impl Into<String>, measured: Option<(bool, String)>) -> Claim {
        let (holds, measured) = measured.unwrap_or((false, "not measured".to_owned()));
        Claim { claim: claim.into(), verdict: Verdict::of(holds), measured }
    }

    pub fn at_most(claim: impl Into<String>, figure: f64, bound: f64, unit: &str) -> Claim {
        Claim::new(claim, Some((figure <= bound, format!("{figure:.3}{unit}"))))
    }

    pub fn at_least(claim: impl Into<String>, figure: f64, bound: f64, unit: &str) -> Claim {
        Claim::new(claim, Some((figure >= bound, format!("{figure:.3}{unit}"))))
    }

    /// A median is at most `bound`: holds or is missed only where its whole interval is.
    pub fn interval(claim: impl Into<String>, median: Median, bound: f64) -> Claim {
        let Median { value, low, high } = median;
        let verdict = match (high <= bound, low > bound) {
            (true, _) => Verdict::Holds,
            (_, true) => Verdict::Missed,
            _ => Verdict::Undecided,
        };
        let measured = format!("{value:.3} [{low:.3} {high:.3}], bound {bound:.2}");
        Claim { claim: claim.into(), verdict, measured }
    }

    pub fn holds(&self) -> bool {
        self.verdict == Verdict::Holds
    }
}

impl Table {
    pub fn new(title: impl Into<String>, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        Table { title: title.into(), columns, rows, notes: vec![] }
    }
}

impl Picture {
    pub fn new(title: impl Into<String>, svg: String) -> Picture {
        Picture { title: title.into(), svg }
    }
}

impl Report {
    /// An empty report of the command `attune lab run NAME`.
    pub fn new(name: &str, title: &str) -> Report {
        Report {
            name: name.to_owned(),
            title: title.to_owned(),
            text: vec![],
            tables: vec![],
            claims: vec![],
            pictures: vec![],
            commands: vec![format!("attune lab run {name}")],
            next: vec![],
            data: Value::Null,
        }
    }

    /// The same with paragraphs.
    pub fn saying(self, text: &[&str]) -> Report {
        Report { text: text.iter().map(|paragraph| (*paragraph).to_owned()).collect(), ..self }
    }

    /// Whether no claim is missed.
    pub fn holds(&self) -> bool {
        self.claims.iter().all(|claim| claim.verdict != Verdict::Missed)
    }

    /// Writes the report for a terminal.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for table in &self.tables {
            text += &table.to_text();
            text.push('\n');
        }
        for Claim { claim, verdict, measured } in &self.claims {
            let _ = writeln!(text, "{:9} {claim}: {measured}", verdict.word());
        }
        if !self.next.is_empty() {
            let _ = writeln!(text, "\nTry next:\n    {}", self.next.join("\n    "));
        }
        text
    }

    pub fn to_json(&self) -> Value {
        let claim = |claim: &Claim| {
            json!({
                "claim": claim.claim, "holds": claim.holds(), "verdict": claim.verdict.word(),
                "measured": claim.measured,
            })
        };
        let claims: Vec<_> = self.claims.iter().map(claim).collect();
        json!({
            "experiment": self.name, "holds": self.holds(), "claims": claims,
            "commands": self.commands, "data": self.data,
        })
    }

    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let mut body = format!("<h1>{title}</h1>\n");
        for claim in &self.claims {
            let word = claim.verdict.word();
            let (claim, measured) = (escape(&claim.claim), escape(&claim.measured));
            let _ = writeln!(body, "<p class={word}><b>{word}</b> {claim}: {measured}</p>");
        }
        self.tables.iter().for_each(|table| body += &table.to_html());
        for Picture { title, svg } in &self.pictures {
            let title = escape(title);
            let _ = writeln!(body, "<figure><figcaption>{title}</figcaption>{svg}</figure>");
        }
        for paragraph in &self.text {
            let _ = writeln!(body, "<p>{}</p>", escape(paragraph));
        }
        for (head, lines) in [("Commands", &self.commands), ("Try next", &self.next)] {
            if !lines.is_empty() {
                let _ = writeln!(body, "<h2>{head}</h2><pre>{}</pre>", escape(&lines.join("\n")));
            }
        }
        format!(
            "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>\
             <style>{STYLE}</style><main>\n{body}</main></html>\n"
        )
    }
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff}\
    main{max-width:64rem;margin:2rem auto;padding:0 1rem}\
    table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}\
    td,th{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}\
    td:first-child,th:first-child,caption{text-align:left}\
    caption,figcaption{font-weight:600;padding:.4rem 0}\
    figure{margin:2rem 0}svg{max-width:100%;height:auto}small{color:#555}\
    pre{white-space:pre-wrap;background:#f5f5f5;padding:1rem}\
    .holds b{color:#187a2f}.MISSED b{color:#b3261e}.undecided b{color:#8a5a00}";

impl Table {
    pub fn to_text(&self) -> String {
        let mut rows = [vec![self.columns.clone()], self.rows.clone()].concat();
        let dashes = columns::widths(&rows).into_iter().map(|width| "-".repeat(width)).collect();
        rows.insert(1, dashes);
        let lines = columns::lines(&rows, &[false, true]);
        let mut text = format!("{}\n{}\n", self.title, lines.join("\n"));
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    fn to_html(&self) -> String {
        let row = |tag: &str, cells: &[String]| {
            let cells: String =
                cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(|cells| row("td", cells)).collect();
        let note = |note: &String| format!("<p><small>{}</small></p>\n", escape(note));
        let notes: String = self.notes.iter().map(note).collect();
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
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = vec![row(["<fifo>", "1"]), row(["x", "1000"])];
        let table = Table { notes: vec!["n".to_owned()], ..Table::new("T", &["who", "ms"], rows) };
        assert_eq!(
            table.to_text(),
            "T\nwho       ms\n------  ----\n<fifo>     1\nx       1000\nn\n"
        );
        let claim = |holds| Claim::new("c", Some((holds, "m".to_owned())));
        let mut report = Report {
            tables: vec![table],
            claims: vec![claim(true)],
            next: vec!["attune lab list".to_owned()],
            ..Report::new("n", "a & b")
        };
        assert!(report.holds());
        let page = report.to_html();
        assert!(page.contains("&lt;fifo&gt;") && page.contains("a &amp; b"), "{page}");
        assert!(page.contains("attune lab run n") && report.to_text().contains("attune lab list"));
        report.claims.push(claim(false));
        assert!(!report.holds() && report.to_text().contains("MISSED    c: m"));
    }

    #[test]
    fn an_interval_across_its_bound_is_undecided_and_fails_nothing() {
        let claim = |low, high| Claim::interval("c", Median { value: 0.5, low, high }, 0.7);
        assert_eq!(claim(0.4, 0.7).verdict, Verdict::Holds);
        assert_eq!(claim(0.4, 0.8).verdict, Verdict::Undecided);
        assert_eq!(claim(0.71, 0.8).verdict, Verdict::Missed);
        assert_eq!(Claim::new("c", None).verdict, Verdict::Missed);
        let report = Report { claims: vec![claim(0.4, 0.8)], ..Report::new("n", "t") };
        assert!(report.holds() && report.to_text().contains("undecided c: 0.500 [0.400 0.800]"));
    }
}
