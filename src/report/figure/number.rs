//! Numbers on axes: round steps, SI prefixes, thin spaces.

/// Thin space.
const THIN: char = '\u{2009}';
/// From here on numbers get a prefix.
const PREFIXED: f64 = 10_000.0;
/// Prefixes.
const PREFIXES: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];

/// About `count` round values between two ends: multiples of 1, 2 or 5 times a power of ten.
pub(super) fn round_values(low: f64, high: f64, count: usize) -> Vec<f64> {
    let span = high - low;
    if !(span.is_finite() && span > 0.0) {
        return vec![low];
    }
    let rough = span / count.max(1) as f64;
    let power = power_of_ten((rough.log10() + 1e-12).floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough * 0.75);
    let step = step.unwrap_or(rough);
    let first = (low / step - 1e-9).ceil();
    let values = (0..=2 * count + 2).map(|i| (first + i as f64) * step);
    // -0 is written as 0.
    values.take_while(|value| *value <= high + step * 1e-9).map(|value| value + 0.0).collect()
}

/// Labels of round values, alike in prefix and digits.
pub(super) fn labels(values: &[f64]) -> Vec<String> {
    let size = values.iter().fold(0.0, |size: f64, value| size.max(value.abs()));
    let step = values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if size >= 1e15 || (size > 0.0 && size < 1e-4) || (step.is_finite() && step < size * 1e-7) {
        return values.iter().map(|value| scientific(*value)).collect();
    }
    let (factor, prefix) = prefix(size);
    let step = if step.is_finite() { step / factor } else { size / factor };
    let first = values.first().map_or(0.0, |first| first / factor);
    let decimals = (0..8).find(|digits| [step, first].iter().all(|value| is_whole(value * power_of_ten(*digits))));
    let decimals = decimals.unwrap_or(8) as usize;
    let label = |value: &f64| match *value == 0.0 {
        true => "0".to_owned(),
        false => signed(&format!("{:.decimals$}", value / factor)) + &prefix,
    };
    values.iter().map(label).collect()
}

/// A number by itself, to three digits or so.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&size) {
        return scientific(value);
    }
    let (factor, prefix) = prefix(size);
    let value = value / factor;
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.1 => 3,
        v if v >= 0.01 => 4,
        _ => 6,
    };
    signed(&trimmed(format!("{value:.decimals$}"))) + &prefix
}

/// A whole number in groups of three, as for windows: no prefix, which would hide a power of two.
pub(super) fn grouped(value: f64) -> String {
    if !is_whole(value) || value.abs() >= 1e7 {
        return short(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            text.push(THIN);
        }
        text.push(digit);
    }
    if value < 0.0 { format!("\u{2212}{text}") } else { text }
}

/// A power of ten, the same on every machine.
pub(super) fn power_of_ten(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}

fn prefix(size: f64) -> (f64, String) {
    let known = PREFIXES.iter().filter(|_| size >= PREFIXED).find(|(factor, _)| size >= *factor);
    known.map_or((1.0, String::new()), |(factor, prefix)| (*factor, format!("{THIN}{prefix}")))
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6 * value.abs().max(1.0)
}

fn trimmed(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn signed(text: &str) -> String {
    text.replace('-', "\u{2212}")
}

fn scientific(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    signed(&format!("{}e{exponent}", trimmed(digits.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ticks(low: f64, high: f64) -> String {
        labels(&round_values(low, high, 5)).join(" ").replace(THIN, "_")
    }

    #[test]
    fn labels_are_alike() {
        assert_eq!(ticks(0.0, 12.0), "0 2 4 6 8 10 12");
        assert_eq!(ticks(0.0, 1.1), "0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(ticks(0.0, 218_212.0), "0 50_k 100_k 150_k 200_k");
        assert_eq!(ticks(0.0, 1.3e6), "0 0.2_M 0.4_M 0.6_M 0.8_M 1.0_M 1.2_M");
        assert_eq!(ticks(-2.0, 2.0), "\u{2212}2 \u{2212}1 0 1 2");
        assert_eq!(ticks(91.0, 93.0), "91.0 91.5 92.0 92.5 93.0");
        assert_eq!(ticks(3.0, 3.0), "3");
    }

    #[test]
    fn numbers_by_themselves() {
        let text = |value| short(value).replace(THIN, "_");
        assert_eq!(
            [0.0, 1.0, 0.05, 5000.0, 20_000.0, 1e6, 2.5e9].map(text),
            ["0", "1", "0.05", "5000", "20_k", "1_M", "2.5_G"]
        );
        assert_eq!([512.0, 4096.0, 16384.0].map(grouped), ["512", "4096", "16\u{2009}384"]);
        assert_eq!(short(3e-9), "3e\u{2212}9");
    }

    proptest! {
        #[test]
        fn there_are_few_and_they_lie_between(low in -1e12f64..1e12, span in 1e-6f64..1e12, count in 2usize..20) {
            let values = round_values(low, low + span, count);
            prop_assert!(values.len() <= 2 * count + 3);
            prop_assert!(values.iter().all(|value| *value >= low - span && *value <= low + span * 1.01));
            prop_assert_eq!(labels(&values).len(), values.len());
        }
    }
}
