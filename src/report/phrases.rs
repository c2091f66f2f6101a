//! Numbers and verdicts as a report writes them.

use super::grid::grouped;
use super::markdown::plural;
use super::statistics::{Interval, Ratio, SAMPLES_MIN, Summary, Verdict};

/// What stands for "not measured".
pub const NULL: &str = "–";

/// How a quantity is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Seconds, to the millisecond.
    Seconds,
    /// A whole number, digits in groups of three.
    Count,
    /// One decimal.
    Tenths,
    /// Two decimals.
    Hundredths,
}

impl Form {
    /// The number as text.
    pub fn write(self, number: f64) -> String {
        match self {
            Form::Seconds => format!("{number:.3}"),
            Form::Tenths => format!("{number:.1}"),
            Form::Hundredths => format!("{number:.2}"),
            Form::Count if (0.0..1e15).contains(&number) => grouped(number.round() as u64),
            Form::Count => format!("{number:.0}"),
        }
    }

    /// An interval as text.
    pub fn interval(self, interval: Option<Interval>) -> String {
        interval.map_or_else(String::new, |i| format!("{} to {}", self.write(i.low), self.write(i.high)))
    }
}

/// The 95 % interval of a median, or the range of the samples where they are too few for one.
pub fn interval_or_range(summary: &Summary, form: Form) -> String {
    match (summary.interval, summary.count) {
        (Some(_), _) => form.interval(summary.interval),
        (None, 1) => "one run".to_owned(),
        (None, count) => format!("({} to {}, {count} runs)", form.write(summary.min), form.write(summary.max)),
    }
}

/// `0.953 (95 % 0.941 to 0.967, 7 pairs)`.
pub fn ratio(ratio: &Ratio) -> String {
    match ratio.interval {
        Some(i) => format!("{:.3} (95 % {:.3} to {:.3}, {} pairs)", ratio.ratio, i.low, i.high, ratio.pairs),
        None => format!("{:.3} ({} pairs)", ratio.ratio, ratio.pairs),
    }
}

/// The same for samples that are not paired: `0.953 (95 % 0.941 to 0.967)`.
pub fn ratio_of_medians(ratio: &Ratio) -> String {
    match ratio.interval {
        Some(i) => format!("{:.3} (95 % {:.3} to {:.3})", ratio.ratio, i.low, i.high),
        None => format!("{:.3}", ratio.ratio),
    }
}

/// What may be said of a ratio: resolved, or how many more runs would resolve it.
pub fn verdict(ratio: &Ratio) -> String {
    match ratio.verdict() {
        Verdict::Resolved if ratio.ratio < 1.0 => "resolved: lower".to_owned(),
        Verdict::Resolved => "resolved: higher".to_owned(),
        Verdict::NotResolved { runs_needed: Some(runs) } => {
            let more = runs.saturating_sub(ratio.pairs).max(1);
            format!("not resolved: about {} of each would resolve it, if the ratio stays", plural(more, "more run"))
        }
        Verdict::NotResolved { runs_needed: None } => {
            "not resolved, and no reasonable number of runs would resolve it".to_owned()
        }
        Verdict::TooFew => format!("not judged: fewer than {SAMPLES_MIN} runs of each"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn verdicts_as_words() {
        let of = |pairs: &[(f64, f64)]| verdict(&Ratio::of_pairs(pairs, 1).unwrap());
        assert_eq!(of(&[(0.5, 1.0); 7]), "resolved: lower");
        assert_eq!(of(&[(2.0, 1.0); 7]), "resolved: higher");
        assert_eq!(of(&[(2.0, 1.0); 5]), "not judged: fewer than 6 runs of each");
        assert_eq!(of(&[(1.0, 1.0); 7]), "not resolved, and no reasonable number of runs would resolve it");
        let noisy: Vec<(f64, f64)> = [0.9, 1.02, 1.01, 1.03, 0.97, 1.04, 1.02].map(|q| (q, 1.0)).to_vec();
        assert!(of(&noisy).starts_with("not resolved: about "), "{}", of(&noisy));
    }

    #[test]
    fn numbers_as_text() {
        assert_eq!(Form::Count.write(195_207.0), "195 207");
        assert_eq!(Form::Count.write(-1.0), "-1");
        assert_eq!(Form::Tenths.write(92.53), "92.5");
        assert_eq!(Form::Seconds.interval(Some(Interval { low: 0.5, high: 0.75 })), "0.500 to 0.750");
    }
}
