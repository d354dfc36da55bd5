//! Computes `random(n)`: splitmix64, advanced once a call, reduced by the high half of a 64x64
//! multiply.

#[derive(Clone, Debug, Default)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// Uniform in `0..bound`; 0 if the bound is not positive. Advances in every case.
    pub fn below(&mut self, bound: i64) -> i64 {
        self.state = self.state.wrapping_add(GOLDEN);
        if bound <= 0 {
            return 0;
        }
        ((u128::from(mix(self.state)) * bound as u128) >> 64) as i64
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of splitmix64.
pub(super) fn mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first outputs of splitmix64 for seed 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let state = 1_234_567u64.wrapping_add(GOLDEN);
        assert_eq!(mix(state), 6_457_827_717_110_365_317);
        assert_eq!(mix(state.wrapping_add(GOLDEN)), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_bound_that_is_not_positive_gives_zero_and_advances() {
        let (mut one, mut other) = (Random::new(1), Random::new(1));
        assert_eq!(one.below(0), 0);
        assert_eq!(one.below(i64::MIN), 0);
        other.below(1000);
        other.below(1000);
        assert_eq!(one.below(1000), other.below(1000));
    }
}
