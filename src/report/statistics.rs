//! Medians, spreads, and what may be said of a difference between two cells.

use crate::experiment::random::SplitMix64;

/// Fewest samples for which an interval is given. Below six even the whole range, smallest to largest, covers the
/// median with less than 95 % (1 - 2 * 0.5^n).
pub const SAMPLES_MIN: usize = 6;
/// Resamples of a bootstrap.
const RESAMPLES: usize = 2000;
/// Most runs that are recommended; what needs more is not worth having.
const RUNS_NEEDED_MAX: usize = 1000;

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its lower bound.
    pub low: f64,
    /// Its upper bound.
    pub high: f64,
}

/// What is said of the samples of one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of samples.
    pub count: usize,
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// 95 % interval of the median; `None` with fewer than [`SAMPLES_MIN`] samples.
    pub interval: Option<Interval>,
}

impl Summary {
    /// Summarizes; `None` without a sample, or with one that is not finite.
    pub fn of(samples: &[f64], seed: u64) -> Option<Summary> {
        let sorted = sorted(samples)?;
        Some(Summary {
            count: sorted.len(),
            median: median_of_sorted(&sorted),
            min: *sorted.first()?,
            max: *sorted.last()?,
            interval: bootstrap_median(&sorted, seed),
        })
    }

    /// (max - min) / median; `None` where the median is 0.
    pub fn spread(&self) -> Option<f64> {
        (self.median != 0.0).then(|| (self.max - self.min) / self.median)
    }
}

/// The median; `None` without a sample, or with one that is not finite.
pub fn median(samples: &[f64]) -> Option<f64> {
    Some(median_of_sorted(&sorted(samples)?))
}

/// The lower median of counts: a value that was observed, never the middle of two.
pub fn median_count(samples: &[u64]) -> Option<u64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

fn sorted(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.is_empty() || samples.iter().any(|s| !s.is_finite()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        // Halves first: the sum of two large samples may not be finite.
        sorted[middle - 1] / 2.0 + sorted[middle] / 2.0
    }
}

/// Percentile bootstrap of the median (Efron and Tibshirani 1993, chapter 13), percentiles by ceil-rank.
fn bootstrap_median(samples: &[f64], seed: u64) -> Option<Interval> {
    if samples.len() < SAMPLES_MIN {
        return None;
    }
    let mut random = SplitMix64::new(seed);
    let mut resample = vec![0.0; samples.len()];
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        resample.fill_with(|| samples[random.below(samples.len())]);
        resample.sort_by(f64::total_cmp);
        medians.push(median_of_sorted(&resample));
    }
    medians.sort_by(f64::total_cmp);
    Some(Interval { low: percentile_of_sorted(&medians, 0.025), high: percentile_of_sorted(&medians, 0.975) })
}

/// The smallest value with at least the fraction `p` of all at or below it.
fn percentile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// What is said of the quotient of two cells' samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Pairs of samples.
    pub pairs: usize,
    /// The median of the pairs' quotients.
    pub ratio: f64,
    /// Its 95 % interval; `None` with fewer than [`SAMPLES_MIN`] pairs.
    pub interval: Option<Interval>,
}

/// Whether a difference is more than chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The interval excludes 1.
    Resolved,
    /// It does not; with about so many runs it would, if the ratio stays. `None`: not within a reasonable number.
    NotResolved {
        /// Runs of each cell.
        runs_needed: Option<usize>,
    },
    /// Too few pairs for an interval.
    TooFew,
}

impl Ratio {
    /// The ratio of `ours` to `base`, sample by sample: both of a pair stem from the same round, so that a drift of the
    /// machine cancels. `None` where there is no pair, or a quotient is not a positive number.
    pub fn of_pairs(pairs: &[(f64, f64)], seed: u64) -> Option<Ratio> {
        let quotients: Vec<f64> = pairs.iter().map(|(ours, base)| ours / base).collect();
        if quotients.iter().any(|q| !(q.is_finite() && *q > 0.0)) {
            return None;
        }
        let summary = Summary::of(&quotients, seed)?;
        Some(Ratio { pairs: pairs.len(), ratio: summary.median, interval: summary.interval })
    }

    /// Whether the two cells differ.
    pub fn verdict(&self) -> Verdict {
        let Some(Interval { low, high }) = self.interval else { return Verdict::TooFew };
        if low > 1.0 || high < 1.0 {
            return Verdict::Resolved;
        }
        // The interval shrinks with the square root of the number of runs; the side that reaches over 1 has to end there.
        let distance = (self.ratio - 1.0).abs();
        let reach = if self.ratio > 1.0 { self.ratio - low } else { high - self.ratio };
        let needed = (self.pairs as f64 * (reach / distance).powi(2)).ceil();
        let runs_needed = (needed <= RUNS_NEEDED_MAX as f64).then(|| (needed as usize).max(self.pairs + 1));
        Verdict::NotResolved { runs_needed }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn medians_of_few() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(median_count(&[]), None);
        assert_eq!(median_count(&[7, 3]), Some(3));
        assert_eq!(median_count(&[7, 3, 5]), Some(5));
    }

    #[test]
    fn an_interval_needs_six_samples() {
        assert_eq!(Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0], 0).unwrap().interval, None);
        assert!(Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0).unwrap().interval.is_some());
        assert_eq!(Ratio::of_pairs(&[(1.0, 2.0); 5], 0).unwrap().verdict(), Verdict::TooFew);
    }

    #[test]
    fn a_clear_difference_is_resolved_and_noise_is_not() {
        let noise = [0.99, 1.02, 0.97, 1.01, 1.03, 0.98, 1.0, 1.015];
        let apart: Vec<(f64, f64)> = noise.iter().map(|n| (0.8 * n, 1.0)).collect();
        assert_eq!(Ratio::of_pairs(&apart, 1).unwrap().verdict(), Verdict::Resolved);
        let same: Vec<(f64, f64)> = noise.iter().map(|n| (1.002 * n, 1.0)).collect();
        match Ratio::of_pairs(&same, 1).unwrap().verdict() {
            Verdict::NotResolved { runs_needed } => assert!(runs_needed.is_none_or(|n| n > 8)),
            other => unreachable!("{other:?}"),
        }
        // Equal samples: no number of runs shows a difference that is not there.
        let verdict = Ratio::of_pairs(&[(1.0, 1.0); 8], 1).unwrap().verdict();
        assert_eq!(verdict, Verdict::NotResolved { runs_needed: None });
    }

    #[test]
    fn a_drift_that_meets_both_cells_cancels() {
        let drifting: Vec<(f64, f64)> = (0..10).map(|i| (0.9 * (1.0 + f64::from(i)), 1.0 + f64::from(i))).collect();
        let ratio = Ratio::of_pairs(&drifting, 1).unwrap();
        assert!((ratio.ratio - 0.9).abs() < 1e-12);
        assert_eq!(ratio.verdict(), Verdict::Resolved);
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        assert_eq!(Ratio::of_pairs(&[], 0), None);
        assert_eq!(Ratio::of_pairs(&[(1.0, 0.0)], 0), None);
        assert_eq!(Ratio::of_pairs(&[(0.0, 1.0)], 0), None);
        assert_eq!(Summary::of(&[0.0], 0).unwrap().spread(), None);
    }

    proptest! {
        #[test]
        fn order_holds_and_the_seed_decides(samples in proptest::collection::vec(1e-6f64..1e6, 1..40), seed: u64) {
            let summary = Summary::of(&samples, seed).unwrap();
            prop_assert!(summary.min <= summary.median && summary.median <= summary.max);
            prop_assert!(summary.spread().unwrap() >= 0.0);
            prop_assert_eq!(summary.interval.is_some(), samples.len() >= SAMPLES_MIN);
            if let Some(interval) = summary.interval {
                prop_assert!(summary.min <= interval.low && interval.low <= interval.high && interval.high <= summary.max);
                prop_assert!(interval.low <= summary.median && summary.median <= interval.high);
            }
            prop_assert_eq!(Summary::of(&samples, seed), Some(summary));
        }

        #[test]
        fn the_unit_does_not_matter(samples in proptest::collection::vec(1e-3f64..1e3, 6..20), seed: u64) {
            let one = Summary::of(&samples, seed).unwrap();
            let scaled: Vec<f64> = samples.iter().map(|s| s * 1024.0).collect();
            let other = Summary::of(&scaled, seed).unwrap();
            prop_assert_eq!(one.median * 1024.0, other.median);
            prop_assert_eq!(one.interval.unwrap().low * 1024.0, other.interval.unwrap().low);
            prop_assert_eq!(one.spread(), other.spread());
        }

        #[test]
        fn a_verdict_follows_from_the_interval(pairs in proptest::collection::vec((0.5f64..2.0, 0.5f64..2.0), 1..30), seed: u64) {
            let ratio = Ratio::of_pairs(&pairs, seed).unwrap();
            match (ratio.verdict(), ratio.interval) {
                (Verdict::TooFew, interval) => prop_assert!(interval.is_none()),
                (Verdict::Resolved, Some(i)) => prop_assert!(i.low > 1.0 || i.high < 1.0),
                (Verdict::NotResolved { runs_needed }, Some(i)) => {
                    prop_assert!(i.low <= 1.0 && 1.0 <= i.high);
                    prop_assert!(runs_needed.is_none_or(|n| n > pairs.len() && n <= RUNS_NEEDED_MAX.max(pairs.len() + 1)));
                }
                (verdict, None) => prop_assert!(false, "{verdict:?} without an interval"),
            }
        }

        #[test]
        fn counts_are_observed(samples in proptest::collection::vec(any::<u64>(), 1..20)) {
            prop_assert!(samples.contains(&median_count(&samples).unwrap()));
        }
    }
}
