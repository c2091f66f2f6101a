//! From values to places on an axis, and the ticks of that axis. Every loop here is bounded, whatever the values.

use super::number;

/// Share of the axis below the break, where zero stands on a logarithmic axis.
const ZERO_AT: f64 = 0.035;
/// Where the break is.
pub(super) const BREAK_AT: f64 = 0.085;
/// Where the logarithmic part begins after a break.
const AFTER_BREAK: f64 = 0.13;

/// How values are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spacing {
    Linear,
    Log2,
    Log10,
}

/// An axis: a range of values, spaced in one way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    spacing: Spacing,
    /// Ends, in the spacing's own measure: values or exponents.
    low: f64,
    high: f64,
    /// Whether zero stands apart, below a break.
    pub broken: bool,
}

/// A tick.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Where: 0 is the axis' start, 1 its end.
    pub at: f64,
    /// What is written; `None` for a minor tick.
    pub label: Option<String>,
}

/// How an axis is laid over its values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit {
    /// Logarithmic.
    pub log: bool,
    /// Whether a linear axis shows zero.
    pub from_zero: bool,
    /// Room at the ends that are not zero, as a share of the range.
    pub pad: f64,
}

impl Scale {
    /// An axis over all of `values`, which are finite.
    pub fn over(values: &[f64], fit: Fit) -> Scale {
        if fit.log {
            return Scale::log(values, fit.pad);
        }
        let zero = fit.from_zero.then_some(0.0);
        let all = || values.iter().copied().chain(zero);
        let (mut low, mut high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let size = low.abs().max(high.abs());
        if high - low <= size * 1e-9 {
            let room = if size == 0.0 { 1.0 } else { size * 0.1 };
            let (down, up) = if fit.from_zero { (0.0, room) } else { (room, room) };
            (low, high) = (low - down, high + up);
        }
        let room = (high - low) * fit.pad;
        if !(fit.from_zero && low == 0.0) {
            low -= room;
        }
        if !(fit.from_zero && high == 0.0) {
            high += room;
        }
        Scale { spacing: Spacing::Linear, low, high, broken: false }
    }

    fn log(values: &[f64], pad: f64) -> Scale {
        let positive = || values.iter().copied().filter(|value| *value > 0.0);
        let is_power = |value: f64| value.log2().fract() == 0.0;
        let spacing =
            if positive().next().is_some() && positive().all(is_power) { Spacing::Log2 } else { Spacing::Log10 };
        let exponents = || positive().map(|value| spacing.measure(value));
        let (mut low, mut high) =
            (exponents().fold(f64::INFINITY, f64::min), exponents().fold(f64::NEG_INFINITY, f64::max));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let least = if spacing == Spacing::Log2 { 1.0 } else { 0.3 };
        if high - low < least {
            let middle = (low + high) / 2.0;
            (low, high) = (middle - least / 2.0, middle + least / 2.0);
        }
        let room = (high - low) * pad;
        Scale { spacing, low: low - room, high: high + room, broken: values.contains(&0.0) }
    }

    /// Where a value stands; `None` for one that has no place (below zero on a logarithmic axis).
    pub fn place(&self, value: f64) -> Option<f64> {
        if self.spacing == Spacing::Linear {
            return Some((value - self.low) / (self.high - self.low));
        }
        if value == 0.0 {
            return self.broken.then_some(ZERO_AT);
        }
        if value.is_nan() || value < 0.0 {
            return None;
        }
        let share = (self.spacing.measure(value) - self.low) / (self.high - self.low);
        Some(if self.broken { AFTER_BREAK + share * (1.0 - AFTER_BREAK) } else { share })
    }

    /// Whether values are spaced evenly, so that any of them may be left without a label.
    pub fn is_linear(&self) -> bool {
        self.spacing == Spacing::Linear
    }

    /// Whether a line may be drawn from one value to another: not over the break.
    pub fn joins(&self, a: f64, b: f64) -> bool {
        !self.broken || (a == 0.0) == (b == 0.0)
    }

    /// The lowest place of the part without the break.
    pub fn start(&self) -> f64 {
        if self.broken { AFTER_BREAK } else { 0.0 }
    }

    /// Ticks, of which about `count` have labels. Values are multiplied by `factor` for the labels.
    pub fn ticks(&self, count: usize, factor: f64) -> Vec<Tick> {
        let count = count.clamp(2, 20);
        let mut ticks = Vec::new();
        if self.broken {
            ticks.push(Tick { at: ZERO_AT, label: Some("0".to_owned()) });
        }
        match self.spacing {
            Spacing::Linear => ticks.extend(self.linear_ticks(self.low, self.high, count, factor)),
            Spacing::Log2 => ticks.extend(self.power_ticks(2.0, count, factor)),
            Spacing::Log10 => ticks.extend(self.decimal_ticks(count, factor)),
        }
        ticks
    }

    fn tick(&self, value: f64, label: Option<String>) -> Option<Tick> {
        let at = self.place(value)?;
        (at >= self.start() - 1e-9 && at <= 1.0 + 1e-9).then_some(Tick { at, label })
    }

    fn linear_ticks(&self, low: f64, high: f64, count: usize, factor: f64) -> Vec<Tick> {
        let (low, high) = (low * factor, high * factor);
        let values = number::round_values(low, high, count);
        let labels = number::labels(&values);
        let shown = values.iter().zip(labels);
        shown.filter_map(|(value, label)| self.tick(value / factor, Some(label))).collect()
    }

    fn power_ticks(&self, base: f64, count: usize, factor: f64) -> Vec<Tick> {
        let (first, last) = (self.low.ceil() as i64, self.high.floor() as i64);
        let step = ((last - first) / (count.max(2) as i64) + 1).max(1);
        let exponents = (0..=count as i64 * 2).map(|i| first + i * step).take_while(|e| *e <= last);
        let value = |e: i64| if base == 2.0 { 2f64.powi(e as i32) } else { number::power_of_ten(e as i32) };
        let label =
            |value: f64| if base == 2.0 { number::grouped(value * factor) } else { number::short(value * factor) };
        exponents.filter_map(|e| self.tick(value(e), Some(label(value(e))))).collect()
    }

    fn decimal_ticks(&self, count: usize, factor: f64) -> Vec<Tick> {
        // Decades of what is shown, which may be another unit.
        let shift = factor.log10();
        let (first, last) = ((self.low + shift).floor() as i64, (self.high + shift).ceil() as i64);
        if last - first > 12 {
            return self.power_ticks(10.0, count, 1.0);
        }
        let at = |decade: i64, digit: i64| digit as f64 * number::power_of_ten(decade as i32) / factor;
        let all = || (first..=last).flat_map(|decade| (1..10).map(move |digit| (decade, digit)));
        let inside = |digits: &[i64]| {
            all()
                .filter(|(_, digit)| digits.contains(digit))
                .filter(|(e, d)| self.tick(at(*e, *d), None).is_some())
                .count()
        };
        let labelled: &[i64] = match (inside(&[1]), inside(&[1, 2, 5])) {
            (decades, _) if decades >= 3 => &[1],
            (_, some) if some >= 2 && some <= count.max(3) + 3 => &[1, 2, 5],
            (decades, _) if decades >= 2 => &[1],
            _ => return self.linear_ticks(10f64.powf(self.low), 10f64.powf(self.high), count, factor),
        };
        let decades = inside(&[1]);
        let every = if labelled == [1] { (decades / count.max(2) + 1) as i64 } else { 1 };
        all()
            .filter_map(|(decade, digit)| {
                let has_label = labelled.contains(&digit) && decade % every == 0;
                let label = has_label.then(|| number::short(at(decade, digit) * factor));
                self.tick(at(decade, digit), label)
            })
            .collect()
    }
}

impl Spacing {
    fn measure(self, value: f64) -> f64 {
        match self {
            Spacing::Linear => value,
            Spacing::Log2 => value.log2(),
            Spacing::Log10 => value.log10(),
        }
    }
}
