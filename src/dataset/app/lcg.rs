//! The generator behind the published application load, so that our rows and statements are the same ones.

/// Seed of the production data.
pub const SEED_DATA: u32 = 1337;
/// Seed of the micro data.
pub const SEED_MICRO: u32 = 42;

/// A 32-bit linear congruential generator (multiplier 1664525, increment 1013904223: Numerical Recipes, "quick and
/// dirty"). Its low bits are poor, and that is part of what was published.
#[derive(Debug, Clone)]
pub struct Lcg(u32);

impl Lcg {
    /// Starts from a seed.
    pub fn new(seed: u32) -> Lcg {
        Lcg(seed)
    }

    /// The generator of one production worker, by its number from 0.
    pub fn of_worker(worker: u32) -> Lcg {
        Lcg(7919_u32.wrapping_mul(worker).wrapping_add(9001))
    }

    /// The next value, at least 0 and below 1.
    pub fn value(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0) / 4_294_967_296.0
    }

    /// A whole number below `n`, by the next value.
    pub fn pick(&mut self, n: u32) -> u32 {
        // The product is below n, so that the cast only cuts the fraction off.
        (self.value() * f64::from(n)) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_values_are_those_of_the_recurrence() {
        let mut lcg = Lcg::new(SEED_DATA);
        // 1337 * 1664525 + 1013904223 = 3239374148, below 2^32.
        assert_eq!(lcg.value(), 3_239_374_148.0 / 4_294_967_296.0);
        let second = (3_239_374_148_u64 * 1_664_525 + 1_013_904_223) % (1 << 32);
        assert_eq!(lcg.value(), second as f64 / 4_294_967_296.0);
    }

    proptest! {
        #[test]
        fn a_pick_is_below_its_bound(seed: u32, n in 1u32..) {
            prop_assert!(Lcg::new(seed).pick(n) < n);
        }

        #[test]
        fn no_precision_is_lost_against_wide_integers(seed: u32, steps in 1usize..50) {
            let (mut lcg, mut state) = (Lcg::new(seed), u64::from(seed));
            for _ in 0..steps {
                state = (state * 1_664_525 + 1_013_904_223) % (1 << 32);
                prop_assert_eq!(lcg.value(), state as f64 / 4_294_967_296.0);
            }
        }
    }
}
