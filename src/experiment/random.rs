//! A small seeded generator, so that an order of runs or a bootstrap can be repeated.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator whose whole sequence follows from `seed`.
    pub fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 for a bound of 0. By multiplication (Lemire 2019) without its rejection step: the bias
    /// is below `bound / 2^64`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Shuffles in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first outputs of the reference C code for the seed 1234567.
        let mut random = SplitMix64::new(1234567);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(first, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    proptest! {
        #[test]
        fn a_shuffle_is_a_permutation(seed: u64, n in 0usize..50) {
            let mut items: Vec<usize> = (0..n).collect();
            SplitMix64::new(seed).shuffle(&mut items);
            items.sort_unstable();
            prop_assert_eq!(items, (0..n).collect::<Vec<_>>());
        }

        #[test]
        fn below_stays_below(seed: u64, bound in 1usize..1000) {
            prop_assert!(SplitMix64::new(seed).below(bound) < bound);
        }
    }
}
