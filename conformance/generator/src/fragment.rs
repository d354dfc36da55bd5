//! Generated text that knows how to become simpler.
//!
//! A source is a tree of pieces. Shrinking replaces one piece by something simpler: one of its own
//! alternatives (nothing for a statement, `0` for a number), or a piece of the same sort inside it.
//! The caller decides whether the result is still a scheduler and still shows the difference.

/// What may stand in a piece's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A section's entry, a handler, an aspect.
    Member,
    Statement,
    Number,
}

#[derive(Clone, Debug)]
pub enum Fragment {
    Text(String),
    Sequence(Vec<Fragment>),
    Piece(Box<Piece>),
}

#[derive(Clone, Debug)]
pub struct Piece {
    pub sort: Sort,
    /// Simpler texts that may stand here, the simplest first.
    pub alternatives: Vec<String>,
    pub body: Fragment,
}

pub fn text(text: impl Into<String>) -> Fragment {
    Fragment::Text(text.into())
}

pub fn sequence(parts: impl IntoIterator<Item = Fragment>) -> Fragment {
    Fragment::Sequence(parts.into_iter().collect())
}

/// A statement, which may be left out.
pub fn statement(body: Fragment) -> Fragment {
    piece(Sort::Statement, &[""], body)
}

/// An entry of a scheduler, which may be left out.
pub fn member(body: Fragment) -> Fragment {
    piece(Sort::Member, &[""], body)
}

pub fn number(alternatives: &[&str], body: Fragment) -> Fragment {
    piece(Sort::Number, alternatives, body)
}

fn piece(sort: Sort, alternatives: &[&str], body: Fragment) -> Fragment {
    let alternatives = alternatives.iter().map(|&each| each.to_string()).collect();
    Fragment::Piece(Box::new(Piece { sort, alternatives, body }))
}

/// `frag!["if (", condition, ") ", then]`
macro_rules! frag {
    ($($part:expr),* $(,)?) => {
        $crate::fragment::Fragment::Sequence(vec![$($crate::fragment::Fragment::from($part)),*])
    };
}
pub(crate) use frag;

impl From<&str> for Fragment {
    fn from(each: &str) -> Fragment {
        text(each)
    }
}

impl From<String> for Fragment {
    fn from(each: String) -> Fragment {
        text(each)
    }
}

impl From<Vec<Fragment>> for Fragment {
    fn from(each: Vec<Fragment>) -> Fragment {
        Fragment::Sequence(each)
    }
}

impl Fragment {
    pub fn render(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Fragment::Text(text) => out.push_str(text),
            Fragment::Sequence(parts) => parts.iter().for_each(|part| part.write(out)),
            Fragment::Piece(piece) => piece.body.write(out),
        }
    }

    /// How many pieces there are.
    pub fn pieces(&self) -> usize {
        match self {
            Fragment::Text(_) => 0,
            Fragment::Sequence(parts) => parts.iter().map(Fragment::pieces).sum(),
            Fragment::Piece(piece) => 1 + piece.body.pieces(),
        }
    }

    /// Everything simpler that may stand in the place of the piece of that number, counted outer
    /// before inner.
    pub fn simpler(&self, number: usize) -> Vec<Fragment> {
        let Some(piece) = self.piece(&mut { number }) else { return Vec::new() };
        let mut replacements: Vec<Fragment> =
            piece.alternatives.iter().map(|each| text(each.as_str())).collect();
        inner(&piece.body, piece.sort, &mut replacements);
        let rendered = piece.body.render();
        replacements
            .into_iter()
            .filter(|replacement| replacement.render() != rendered)
            .map(|replacement| self.with(&mut { number }, &replacement))
            .collect()
    }

    fn piece(&self, number: &mut usize) -> Option<&Piece> {
        match self {
            Fragment::Text(_) => None,
            Fragment::Sequence(parts) => parts.iter().find_map(|part| part.piece(number)),
            Fragment::Piece(piece) if *number == 0 => Some(piece),
            Fragment::Piece(piece) => {
                *number -= 1;
                piece.body.piece(number)
            }
        }
    }

    /// `number` counts down; past the replaced piece it stays at [`usize::MAX`].
    fn with(&self, number: &mut usize, replacement: &Fragment) -> Fragment {
        match self {
            Fragment::Text(_) => self.clone(),
            Fragment::Sequence(parts) => Fragment::Sequence(
                parts.iter().map(|part| part.with(number, replacement)).collect(),
            ),
            Fragment::Piece(_) if *number == 0 => {
                *number = usize::MAX;
                replacement.clone()
            }
            Fragment::Piece(piece) => {
                if *number != usize::MAX {
                    *number -= 1;
                }
                let body = piece.body.with(number, replacement);
                Fragment::Piece(Box::new(Piece { body, ..(**piece).clone() }))
            }
        }
    }
}

/// The outermost pieces of a sort inside a fragment.
fn inner(fragment: &Fragment, sort: Sort, found: &mut Vec<Fragment>) {
    match fragment {
        Fragment::Text(_) => {}
        Fragment::Sequence(parts) => parts.iter().for_each(|part| inner(part, sort, found)),
        Fragment::Piece(piece) if piece.sort == sort => found.push(fragment.clone()),
        Fragment::Piece(piece) => inner(&piece.body, sort, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_gives_way_to_its_alternatives_and_to_what_is_inside_it() {
        let inner = statement(frag!["x = ", number(&["0"], text("y + 1")), ";"]);
        let whole = frag!["{ ", statement(frag!["if (c) { ", inner, " }"]), " }"];
        assert_eq!(whole.pieces(), 3);
        let render =
            |number| whole.simpler(number).iter().map(Fragment::render).collect::<Vec<_>>();
        assert_eq!(render(0), ["{  }", "{ x = y + 1; }"]);
        assert_eq!(render(1), ["{ if (c) {  } }"]);
        assert_eq!(render(2), ["{ if (c) { x = 0; } }"]);
    }
}
