//! Which block a random read goes to: a function of the seed and the read's number, whatever the depth and the threads.

/// Rounds of the Feistel network. Four rounds of a good function are a pseudorandom permutation (Luby and Rackoff 1988).
const ROUNDS: u64 = 4;

/// A seeded permutation of the blocks of a file, and another one each time it is used up.
///
/// No block comes twice within one pass, so a buffered read never finds its block in the page cache because the same
/// run has read it before. It is a Feistel network over the next even number of bits, walked until it hits the range
/// (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    seed: u64,
    blocks: u64,
    half_bits: u32,
}

impl Offsets {
    /// A permutation of `0..blocks`; `None` without any block.
    pub fn new(seed: u64, blocks: u64) -> Option<Offsets> {
        let bits = u64::BITS - blocks.checked_sub(1)?.leading_zeros();
        // A block number times its size is an offset, so 62 bits are more than any file has.
        (bits <= 62).then(|| Offsets { seed, blocks, half_bits: bits.div_ceil(2).max(1) })
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The block that read number `index` goes to.
    pub fn block(&self, index: u64) -> u64 {
        let (pass, mut value) = (index / self.blocks, index % self.blocks);
        let key = mix(self.seed ^ mix(pass));
        // The walk returns into the range, since the permutation's cycle through `value` does.
        loop {
            value = self.permute(key, value);
            if value < self.blocks {
                return value;
            }
        }
    }

    fn permute(&self, key: u64, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..ROUNDS {
            let scrambled = mix(key.wrapping_add(round << 32) ^ right.wrapping_mul(0x9E37_79B9_7F4A_7C15)) & mask;
            (left, right) = (right, left ^ scrambled);
        }
        left << self.half_bits | right
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The part of `0..total` that falls to worker `index` of `workers`: contiguous, all parts together the whole, their
/// sizes differing by at most one.
pub fn share(total: u64, workers: u32, index: u32) -> std::ops::Range<u64> {
    let workers = u128::from(workers.max(1));
    let bound = |index: u32| (u128::from(total) * u128::from(index).min(workers) / workers) as u64;
    bound(index)..bound(index.saturating_add(1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_pass_reads_every_block_once(seed: u64, blocks in 1_u64..3000, pass in 0_u64..5) {
            let offsets = Offsets::new(seed, blocks).unwrap();
            let read: BTreeSet<u64> = (0..blocks).map(|i| offsets.block(pass * blocks + i)).collect();
            prop_assert_eq!(read, (0..blocks).collect::<BTreeSet<_>>());
        }

        #[test]
        fn blocks_stay_in_the_file_and_are_reproducible(seed: u64, blocks in 1_u64..1 << 52, index: u64) {
            let block = Offsets::new(seed, blocks).unwrap().block(index);
            prop_assert!(block < blocks);
            prop_assert_eq!(block, Offsets::new(seed, blocks).unwrap().block(index));
        }

        #[test]
        fn shares_are_the_whole_and_even(total: u64, workers in 1_u32..100) {
            let shares: Vec<_> = (0..workers).map(|i| share(total, workers, i)).collect();
            prop_assert_eq!(shares[0].start, 0);
            prop_assert_eq!(shares[workers as usize - 1].end, total);
            prop_assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
            let sizes = shares.iter().map(|s| s.end - s.start);
            prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }

    #[test]
    fn seeds_and_passes_differ_and_neighbours_are_apart() {
        let order = |seed, pass: u64| -> Vec<u64> {
            let offsets = Offsets::new(seed, 10_000).unwrap();
            (0..10_000).map(|i| offsets.block(pass * 10_000 + i)).collect()
        };
        let same = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(a, b)| a == b).count();
        // Two random permutations agree in one place on average.
        assert!(same(&order(1, 0), &order(2, 0)) < 10);
        assert!(same(&order(1, 0), &order(1, 1)) < 10);
        let first = order(1, 0);
        assert!(first.windows(2).filter(|w| w[0].abs_diff(w[1]) == 1).count() < 15);
        // The mean step between random places is a third of the range.
        let mean = first.windows(2).map(|w| w[0].abs_diff(w[1])).sum::<u64>() / 9_999;
        assert!((3000..3700).contains(&mean), "{mean}");
    }

    #[test]
    fn a_file_without_blocks_has_no_offsets() {
        assert_eq!(Offsets::new(1, 0), None);
        assert_eq!(Offsets::new(1, 1).unwrap().block(u64::MAX), 0);
        assert_eq!(Offsets::new(1, u64::MAX), None);
    }
}
