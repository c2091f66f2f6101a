//! Latencies in an HDR histogram, and the percentiles that enough samples stand behind.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest latency that is told apart, in nanoseconds: ten minutes. Longer ones count as this.
const LONGEST_NS: u64 = 600_000_000_000;
/// Significant decimal digits.
const DIGITS: u8 = 3;
/// Samples that have to lie beyond a percentile for it to be told.
const SAMPLES_BEYOND: f64 = 10.0;

/// Latencies as they are recorded.
#[derive(Debug, Clone)]
pub struct Latencies(Option<Histogram<u64>>);

/// Percentiles of latencies, by ceiling rank. `null` where fewer than ten samples lie beyond one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Samples.
    pub count: u64,
    /// Median, in microseconds.
    pub p50_us: Option<f64>,
    /// 95th percentile, in microseconds.
    pub p95_us: Option<f64>,
    /// 99th percentile, in microseconds.
    pub p99_us: Option<f64>,
    /// 99.9th percentile, in microseconds.
    pub p999_us: Option<f64>,
    /// Longest, in microseconds, whatever the number of samples.
    pub max_us: Option<f64>,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

impl Latencies {
    /// None yet.
    pub fn new() -> Latencies {
        // The bounds are constants that the histogram accepts, as the tests see.
        Latencies(Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok())
    }

    /// Notes one latency.
    pub fn record(&mut self, latency: Duration) {
        self.record_times(latency, 1);
    }

    /// Notes the same latency `times` times.
    pub fn record_times(&mut self, latency: Duration, times: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record_n(u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS), times);
        }
    }

    /// Notes all that `other` has.
    pub fn merge(&mut self, other: &Latencies) {
        if let (Some(histogram), Some(other)) = (&mut self.0, &other.0) {
            // It fails only for values that this histogram cannot hold, and the bounds are the same.
            let _ = histogram.add(other);
        }
    }

    /// The percentiles.
    pub fn percentiles(&self) -> Percentiles {
        let Some(histogram) = &self.0 else { return Percentiles::default() };
        let count = histogram.len();
        let at = |quantile: f64| {
            let enough = count as f64 * (1.0 - quantile) >= SAMPLES_BEYOND - 1e-9;
            enough.then(|| histogram.value_at_quantile(quantile).min(histogram.max()) as f64 / 1e3)
        };
        Percentiles {
            count,
            p50_us: at(0.5),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: (count > 0).then(|| histogram.max() as f64 / 1e3),
        }
    }
}

impl Percentiles {
    /// Leaf names of the percentiles that are `null`, each with the reason.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        [("p50_us", self.p50_us, 0.5), ("p95_us", self.p95_us, 0.95), ("p99_us", self.p99_us, 0.99)]
            .into_iter()
            .chain([("p999_us", self.p999_us, 0.999), ("max_us", self.max_us, 0.0)])
            .filter(|(_, value, _)| value.is_none())
            .map(|(name, _, quantile)| {
                let needed = (SAMPLES_BEYOND / (1.0 - quantile)).round();
                (name, format!("{} samples; it takes {needed} for ten to lie beyond it", self.count))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.percentiles(), Percentiles::default());
        assert_eq!(latencies.percentiles().reasons().len(), 5);
        latencies.record_times(Duration::from_micros(5), 3);
        let few = latencies.percentiles();
        assert_eq!((few.count, few.p50_us, few.p99_us, few.max_us), (3, None, None, Some(5.003)));
        assert_eq!(few.reasons()[2], ("p99_us", "3 samples; it takes 1000 for ten to lie beyond it".to_owned()));
        latencies.record_times(Duration::from_micros(5), 997);
        let more = latencies.percentiles();
        assert!(more.p99_us.is_some() && more.p999_us.is_none());
        assert_eq!(more.reasons().len(), 1);
    }

    #[test]
    fn absurd_latencies_are_held_at_the_bound() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::MAX);
        latencies.record(Duration::ZERO);
        assert!(latencies.percentiles().max_us.unwrap() >= 6e8);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_samples(samples in prop::collection::vec(1_u64..1_000_000_000, 20..400)) {
            let (mut half, mut other) = (Latencies::new(), Latencies::new());
            for (i, &ns) in samples.iter().enumerate() {
                if i % 2 == 0 { half.record(Duration::from_nanos(ns)) } else { other.record(Duration::from_nanos(ns)) }
            }
            half.merge(&other);
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let exact = sorted[sorted.len().div_ceil(2) - 1] as f64 / 1e3;
            let told = half.percentiles().p50_us.unwrap();
            prop_assert!((told - exact).abs() <= exact * 2e-3 + 1e-3, "{told} {exact}");
            prop_assert_eq!(half.percentiles().count, samples.len() as u64);
        }
    }
}
