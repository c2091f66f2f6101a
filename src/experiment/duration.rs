//! Durations as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a run may take; `None` is without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout(pub Option<Duration>);

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no duration; write it as 90, 500ms, 10m or 2h, or none")]
pub struct DurationError(String);

/// The clock cannot count for ever: a year is more than any run.
const MAX_MS: u64 = 366 * 24 * 3_600_000;

impl FromStr for Timeout {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        if text == "none" {
            return Ok(Timeout(None));
        }
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let ms = match unit {
            "ms" => 1,
            "" | "s" => 1000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            _ => 0,
        };
        let total = number.parse::<u64>().ok().and_then(|n| n.checked_mul(ms));
        match total.filter(|total| (1..=MAX_MS).contains(total)) {
            Some(total) => Ok(Timeout(Some(Duration::from_millis(total)))),
            None => Err(DurationError(text.to_owned())),
        }
    }
}

/// Time between two samples of a run, in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SampleInterval {
    ms: u64,
}

/// Shortest and longest time between two samples: a record holds all of them, and what they cost is in it too.
const SAMPLE_MS: std::ops::RangeInclusive<u64> = 1..=60_000;

/// A text that is no interval of samples.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no interval of samples; from 1ms to 1m, such as 50ms")]
pub struct SampleIntervalError(String);

impl SampleInterval {
    /// As a duration.
    pub fn get(self) -> Duration {
        Duration::from_millis(self.ms)
    }
}

impl FromStr for SampleInterval {
    type Err = SampleIntervalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let duration = text.parse::<Timeout>().ok().and_then(|duration| duration.0);
        let ms = duration.map(|duration| duration.as_millis() as u64).filter(|ms| SAMPLE_MS.contains(ms));
        ms.map(|ms| SampleInterval { ms }).ok_or_else(|| SampleIntervalError(text.to_owned()))
    }
}

impl fmt::Display for SampleInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.ms)
    }
}

/// A duration to look at, in two units at most: `48 s`, `12 min`, `1 h 5 min`.
pub fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0 if duration.is_zero() => "0 s".to_owned(),
        0 => "under 1 s".to_owned(),
        1..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let seconds = |text: &str| text.parse::<Timeout>().map(|t| t.0.map(|d| d.as_secs_f64()));
        assert_eq!(seconds("90"), Ok(Some(90.0)));
        assert_eq!(seconds("500ms"), Ok(Some(0.5)));
        assert_eq!(seconds("10m"), Ok(Some(600.0)));
        assert_eq!(seconds("2h"), Ok(Some(7200.0)));
        assert_eq!(seconds("none"), Ok(None));
        for bad in ["", "0", "-1", "1.5", "h", "5d", "99999999999999999999", "18446744073709551615h"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn intervals_of_samples() {
        for (text, ms) in [("50ms", 50), ("1s", 1000), ("1m", 60_000), ("1ms", 1)] {
            let interval = text.parse::<SampleInterval>();
            let shown = interval.map(|interval| (interval.get(), interval.to_string()));
            assert_eq!(shown, Ok((Duration::from_millis(ms), format!("{ms}ms"))));
        }
        for bad in ["", "0", "0ms", "none", "61s", "-1ms", "50us"] {
            assert!(bad.parse::<SampleInterval>().is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_shown_in_units_that_fit() {
        let of = |seconds: f64| shown(Duration::from_secs_f64(seconds));
        assert_eq!(
            [of(0.0), of(0.2), of(48.4), of(119.0), of(120.0), of(7199.0), of(7265.0)],
            ["0 s", "under 1 s", "48 s", "119 s", "2 min", "120 min", "2 h 1 min"]
        );
    }
}
