//! "Did you mean ..?"

/// The word of `candidates` that `word` was probably meant to be: equal but for its case, or a slip
/// or two away. None if none is near.
pub fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody mistypes a word that long, and comparing it would take long.
    if word.len() > 40 {
        return None;
    }
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= 2)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= slips(word.len().min(candidate.len())))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn distance(word: &str, candidate: &str) -> usize {
    if word.eq_ignore_ascii_case(candidate) {
        return 0;
    }
    strsim::osa_distance(word, candidate)
}

/// How many slips are believed in a word of that length.
fn slips(length: usize) -> usize {
    match length {
        0 | 1 => 0,
        2..=4 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_forgiven_and_other_words_are_not() {
        let words = ["queue", "pqueue", "stack", "if", "event", "data"];
        assert_eq!(suggest("qeueu", words), Some("queue"));
        assert_eq!(suggest("pqueu", words), Some("pqueue"));
        assert_eq!(suggest("fi", words), Some("if"));
        assert_eq!(suggest("EVENT", words), Some("event"));
        assert_eq!(suggest("dta", words), Some("data"));
        assert_eq!(suggest("x", words), None);
        assert_eq!(suggest("thread", words), None);
        assert_eq!(suggest(&"q".repeat(100_000), words), None);
    }
}
