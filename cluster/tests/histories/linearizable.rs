//! Linearizability: whether one order of all requests explains their answers, in which a request
//! that ended before another began also comes before it.
//!
//! The search of Wing and Gong, with the memory of Lowe: it takes one request after the other that
//! may come next, does to the numbers what the request asks for, and turns back where an answer
//! does not fit. Requests without an answer may have been done, at any time or never.
//!
//! An own search of a page, and not a library: the known ones are programs of other languages
//! (porcupine, in Go), and would check a copy of the model that is written here once.

use std::collections::HashSet;

use attune_replica::Operation;
use attune_replica::messages::Shared;
use attune_simulator::scheduler::Value;

/// A request, from its beginning to its answer.
#[derive(Clone, Debug)]
pub struct Requested {
    pub begins: usize,
    /// When the answer came, and what it was; None: it did not come.
    pub ended: Option<(usize, i64)>,
    pub variable: Shared,
    pub writes: Vec<(Shared, Operation)>,
}

/// By variable, what it holds.
type Numbers = Vec<i64>;

struct Search<'a> {
    requests: &'a [Requested],
    /// What has been tried: the requests that are done, and what they left.
    tried: HashSet<(u128, Numbers)>,
}

/// Whether the requests can have happened one by one, from those numbers on.
pub fn is_linearizable(first: Numbers, requests: &[Requested]) -> bool {
    assert!(requests.len() <= 128, "a bit for each");
    Search { requests, tried: HashSet::new() }.goes_on(0, first)
}

impl Search<'_> {
    fn goes_on(&mut self, done: u128, numbers: Numbers) -> bool {
        let open = |number: &usize| done & (1 << number) == 0;
        let ends = (0..self.requests.len()).filter(open).filter_map(|it| self.requests[it].ended);
        // None: all that were answered have been done.
        let Some(first_end) = ends.map(|(end, _)| end).min() else { return true };
        if !self.tried.insert((done, numbers.clone())) {
            return false;
        }
        let candidates: Vec<usize> = (0..self.requests.len())
            .filter(open)
            .filter(|it| self.requests[*it].begins <= first_end)
            .collect();
        candidates.into_iter().any(|candidate| {
            let request = &self.requests[candidate];
            let mut after = numbers.clone();
            for (variable, operation) in &request.writes {
                let place = &mut after[usize::from(*variable)];
                if let Value::Int(value) = operation.apply(Value::Int(*place)) {
                    *place = value;
                }
            }
            let answer = after[usize::from(request.variable)];
            let fits = request.ended.is_none_or(|(_, value)| value == answer);
            fits && self.goes_on(done | 1 << candidate, after)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(begins: usize, ended: Option<(usize, i64)>, adds: i64) -> Requested {
        let writes = (adds != 0).then_some((0, Operation::Add(Value::Int(adds))));
        Requested { begins, ended, variable: 0, writes: writes.into_iter().collect() }
    }

    #[test]
    fn an_order_is_found_where_there_is_one() {
        let overlapping = [request(1, Some((9, 3)), 1), request(2, Some((8, 2)), 2)];
        assert!(is_linearizable(vec![0], &overlapping));
        let stale = [request(1, Some((2, 1)), 1), request(3, Some((4, 0)), 0)];
        assert!(!is_linearizable(vec![0], &stale));
        let unanswered = [request(1, None, 5), request(2, Some((3, 0)), 0)];
        assert!(is_linearizable(vec![0], &unanswered));
        let happened = [request(1, None, 5), request(2, Some((3, 5)), 0)];
        assert!(is_linearizable(vec![0], &happened));
        let early = [request(4, None, 5), request(2, Some((3, 5)), 0)];
        assert!(!is_linearizable(vec![0], &early));
        let twice = [request(1, Some((2, 2)), 1)];
        assert!(!is_linearizable(vec![0], &twice));
    }
}
