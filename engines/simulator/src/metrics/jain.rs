//! Computes Jain's index of fairness.

/// (sum x)^2 / (n * sum x^2): 1 if all shares are equal, 1/n if one has everything. None without
/// any share.
pub fn jain_index(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum, squares) =
        shares.fold((0.0, 0.0, 0.0), |(n, sum, squares), x| (n + 1.0, sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_runs_from_one_over_n_to_one() {
        assert_eq!(jain_index([2.0, 2.0, 2.0].into_iter()), Some(1.0));
        assert_eq!(jain_index([5.0, 0.0, 0.0, 0.0].into_iter()), Some(0.25));
        assert_eq!(jain_index(std::iter::empty()), None);
    }
}
