//! Whether runs became slower or faster while a campaign went on.

use std::collections::BTreeMap;

use super::statistics::{Interval, Summary, median};
use crate::experiment::random::SplitMix64;

/// Fewest rounds for which drift is judged: with six, two rounds against two.
pub const ROUNDS_MIN: usize = 6;
/// Permutations of the test.
const PERMUTATIONS: usize = 2000;
/// Below this probability a difference is called drift.
const SIGNIFICANCE: f64 = 0.05;

/// What is said of drift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Rounds.
    pub rounds: usize,
    /// Walls behind it.
    pub walls: usize,
    /// Median of the last third of rounds over that of the first third; each wall is divided by its cell's median before.
    pub ratio: f64,
    /// 95 % interval of the last third's median where the first third's is 1; `None` with few walls.
    pub interval: Option<Interval>,
    /// Probability of a ratio at least as far from 1 if the order of rounds meant nothing.
    pub probability: f64,
}

impl Drift {
    /// Tests the walls of timed runs, by cell: `(number of the round, wall)`. Rounds are permuted as a whole, because
    /// what disturbs one run of a round often disturbs its neighbours too. `None` with fewer than [`ROUNDS_MIN`] rounds.
    pub fn of(cells: &[Vec<(u32, f64)>], seed: u64) -> Option<Drift> {
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for cell in cells {
            let walls: Vec<f64> = cell.iter().map(|(_, wall)| *wall).collect();
            // A cell with one run says nothing of how it changed.
            let Some(middle) = median(&walls).filter(|middle| *middle > 0.0 && walls.len() > 1) else { continue };
            for (round, wall) in cell {
                rounds.entry(*round).or_default().push(wall / middle);
            }
        }
        let rounds: Vec<Vec<f64>> = rounds.into_values().collect();
        if rounds.len() < ROUNDS_MIN {
            return None;
        }
        let mut order: Vec<usize> = (0..rounds.len()).collect();
        let (first, last) = thirds(&rounds, &order);
        let ratio = median(&last)? / median(&first)?;
        let distance = distance(ratio)?;

        let mut random = SplitMix64::new(seed);
        let mut as_far = 1;
        for _ in 0..PERMUTATIONS {
            random.shuffle(&mut order);
            let (first, last) = thirds(&rounds, &order);
            let permuted = median(&last)? / median(&first)?;
            // A hair's breadth for sums that differ in their last bit.
            as_far += usize::from(self::distance(permuted)? >= distance * (1.0 - 1e-9));
        }
        let base = median(&first)?;
        let scaled: Vec<f64> = last.iter().map(|wall| wall / base).collect();
        Some(Drift {
            rounds: rounds.len(),
            walls: rounds.iter().map(Vec::len).sum(),
            ratio,
            interval: Summary::of(&scaled, seed)?.interval,
            probability: as_far as f64 / (PERMUTATIONS + 1) as f64,
        })
    }

    /// Whether the order of rounds matters.
    pub fn is_drift(&self) -> bool {
        self.probability < SIGNIFICANCE
    }
}

/// How far a ratio is from 1, the same for its inverse.
fn distance(ratio: f64) -> Option<f64> {
    (ratio > 0.0 && ratio.is_finite()).then(|| ratio.max(1.0 / ratio) - 1.0)
}

/// The walls of the first and of the last third of rounds.
fn thirds(rounds: &[Vec<f64>], order: &[usize]) -> (Vec<f64>, Vec<f64>) {
    let third = rounds.len() / 3;
    let pooled = |which: &[usize]| which.iter().flat_map(|&round| rounds[round].iter().copied()).collect();
    (pooled(&order[..third]), pooled(&order[order.len() - third..]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn cell(walls: &[f64]) -> Vec<(u32, f64)> {
        (1..).zip(walls.iter().copied()).collect()
    }

    #[test]
    fn few_rounds_are_not_judged() {
        assert_eq!(Drift::of(&[], 0), None);
        assert_eq!(Drift::of(&[cell(&[1.0; 5])], 0), None);
        assert_eq!(Drift::of(&[cell(&[0.0; 9])], 0), None);
        assert_eq!(Drift::of(&[cell(&[f64::NAN; 9])], 0), None);
        assert!(Drift::of(&[cell(&[1.0; 6])], 0).is_some());
    }

    #[test]
    fn walls_that_do_not_change_do_not_drift() {
        let drift = Drift::of(&[cell(&[2.0; 12]), cell(&[0.5; 12])], 7).unwrap();
        assert_eq!((drift.ratio, drift.probability, drift.is_drift()), (1.0, 1.0, false));
        assert_eq!((drift.rounds, drift.walls), (12, 24));
    }

    #[test]
    fn a_steady_rise_is_drift_in_cells_of_any_speed() {
        let rising = |base: f64| cell(&(0..15).map(|i| base * (1.0 + 0.01 * f64::from(i))).collect::<Vec<_>>());
        let drift = Drift::of(&[rising(12.0), rising(0.6)], 1).unwrap();
        assert!(drift.is_drift() && (1.09..1.11).contains(&drift.ratio), "{drift:?}");
    }

    #[test]
    fn one_slow_round_is_no_drift() {
        let mut walls = vec![1.0; 15];
        walls[14] = 5.0;
        assert!(!Drift::of(&[cell(&walls)], 1).unwrap().is_drift());
    }

    proptest! {
        #[test]
        fn speed_does_not_matter_and_time_reversed_is_the_inverse(
            walls in proptest::collection::vec(0.5f64..2.0, 6..24), seed: u64
        ) {
            let drift = Drift::of(&[cell(&walls)], seed).unwrap();
            prop_assert!(drift.ratio > 0.0 && drift.probability > 0.0 && drift.probability <= 1.0);
            let scaled: Vec<f64> = walls.iter().map(|wall| wall * 1024.0).collect();
            prop_assert_eq!(Drift::of(&[cell(&scaled)], seed), Some(drift));
            let reversed: Vec<f64> = walls.iter().rev().copied().collect();
            let back = Drift::of(&[cell(&reversed)], seed).unwrap();
            prop_assert!((back.ratio * drift.ratio - 1.0).abs() < 1e-9);
        }

        #[test]
        fn without_drift_it_is_rarely_seen(seed: u64) {
            let mut random = SplitMix64::new(seed);
            let mut seen = 0;
            for test in 0..40 {
                let walls: Vec<f64> = (0..12).map(|_| 1.0 + random.below(1000) as f64 / 1e4).collect();
                seen += usize::from(Drift::of(&[cell(&walls)], test).unwrap().is_drift());
            }
            // 2 of 40 are expected; 12 or more have a probability below 1e-6.
            prop_assert!(seen < 12, "{} of 40", seen);
        }
    }
}
