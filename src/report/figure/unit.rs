//! Units: read off a leaf name, chosen for an axis, converted.

/// What a unit measures; units of one family can be converted into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Seconds.
    Time,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    ByteRate,
    /// Anything else a second.
    Rate,
    /// Per cent.
    Percent,
    /// A count, or a quotient of counts.
    Plain,
}

/// A unit: its family, how many of the family's base unit it is, and how it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    /// What it measures.
    pub family: Family,
    /// Base units (seconds, bytes ...) in one of it.
    pub factor: f64,
    /// How it is written; empty for a bare number.
    pub text: &'static str,
}

const fn unit(family: Family, factor: f64, text: &'static str) -> Unit {
    Unit { family, factor, text }
}

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Endings of leaf names, longest first where one ends in another.
const ENDINGS: [(&str, Unit); 14] = [
    ("bytes_per_s", unit(Family::ByteRate, 1.0, "B/s")),
    ("kib_per_s", unit(Family::ByteRate, KIB, "KiB/s")),
    ("mib_per_s", unit(Family::ByteRate, MIB, "MiB/s")),
    ("per_cpu_s", unit(Family::Plain, 1.0, "")),
    ("per_s", unit(Family::Rate, 1.0, "1/s")),
    ("s", unit(Family::Time, 1.0, "s")),
    ("ms", unit(Family::Time, 1e-3, "ms")),
    ("us", unit(Family::Time, 1e-6, "µs")),
    ("ns", unit(Family::Time, 1e-9, "ns")),
    ("percent", unit(Family::Percent, 1.0, "%")),
    ("kib", unit(Family::Bytes, KIB, "KiB")),
    ("mib", unit(Family::Bytes, MIB, "MiB")),
    ("kb", unit(Family::Bytes, KIB, "KiB")),
    ("bytes", unit(Family::Bytes, 1.0, "B")),
];

/// Units that an axis is drawn in by itself, smallest first.
const CHOSEN: [Unit; 12] = [
    unit(Family::Time, 1e-9, "ns"),
    unit(Family::Time, 1e-6, "µs"),
    unit(Family::Time, 1e-3, "ms"),
    unit(Family::Time, 1.0, "s"),
    unit(Family::Bytes, 1.0, "B"),
    unit(Family::Bytes, KIB, "KiB"),
    unit(Family::Bytes, MIB, "MiB"),
    unit(Family::Bytes, GIB, "GiB"),
    unit(Family::ByteRate, 1.0, "B/s"),
    unit(Family::ByteRate, KIB, "KiB/s"),
    unit(Family::ByteRate, MIB, "MiB/s"),
    unit(Family::ByteRate, GIB, "GiB/s"),
];

/// Units that are drawn only where a figure asks for them.
const ON_REQUEST: [Unit; 8] = [
    unit(Family::Time, 1e-6, "us"),
    unit(Family::Time, 60.0, "min"),
    unit(Family::Bytes, 1e3, "kB"),
    unit(Family::Bytes, 1e6, "MB"),
    unit(Family::Bytes, 1e9, "GB"),
    unit(Family::ByteRate, 1e6, "MB/s"),
    unit(Family::ByteRate, 1e9, "GB/s"),
    unit(Family::Percent, 1.0, "%"),
];

impl Unit {
    /// The unit that a leaf name ends in.
    pub fn of_name(leaf: &str) -> Unit {
        let is_end = |end: &str| leaf.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'));
        // `bytes_read` is the one name that has its unit elsewhere.
        let leaf_is_bytes = leaf == "bytes_read";
        match ENDINGS.iter().find(|(end, _)| if leaf_is_bytes { *end == "bytes" } else { is_end(end) }) {
            Some((_, unit)) => *unit,
            None => Unit::within_name(leaf).unwrap_or(unit(Family::Plain, 1.0, "")),
        }
    }

    /// The time that a leaf name is of, where what it is spent on and a percentile stand behind it, as in
    /// `touch_ns_per_line_p50`.
    fn within_name(leaf: &str) -> Option<Unit> {
        let (before, _) = leaf.split_once("_per_")?;
        let (_, word) = before.rsplit_once('_')?;
        let mut times = ENDINGS.iter().filter(|(_, unit)| unit.family == Family::Time);
        times.find(|(end, _)| *end == word).map(|(_, unit)| *unit)
    }

    /// A leaf name without its unit.
    pub fn strip(self, leaf: &str) -> &str {
        let ending = ENDINGS.iter().find(|(end, unit)| *unit == self && leaf.strip_suffix(end).is_some());
        let bare = ending.and_then(|(end, _)| leaf.strip_suffix(end)).map_or(leaf, |rest| rest.trim_end_matches('_'));
        if bare.is_empty() { leaf } else { bare }
    }

    /// How values up to `max` are shown: in the unit that was asked for, else in one that gives handy numbers.
    ///
    /// # Errors
    /// The units that could be asked for, where this one cannot.
    pub fn shown(self, max: f64, asked: Option<&str>) -> Result<Shown, String> {
        let family = |unit: &&Unit| unit.family == self.family;
        let convert = |unit: &Unit| Shown { factor: self.factor / unit.factor, text: unit.text.to_owned() };
        match (asked, self.family) {
            (Some(text), Family::Plain | Family::Rate) => Ok(Shown { factor: 1.0, text: text.to_owned() }),
            (Some(text), _) => {
                let mut known = CHOSEN.iter().chain(&ON_REQUEST).filter(family);
                known.clone().find(|unit| unit.text == text).map(convert).ok_or_else(|| {
                    let all: Vec<&str> = known.by_ref().map(|unit| unit.text).collect();
                    format!("unit `{text}` is not one of {}", all.join(", "))
                })
            }
            (None, Family::Time | Family::Bytes | Family::ByteRate) => {
                let base = max * self.factor;
                let mut fitting = CHOSEN.iter().filter(family).filter(|unit| base >= unit.factor);
                // Seconds stay seconds down to a tenth: 0.6 s is easier compared with 11 s than 600 ms.
                let last = if base >= 0.1 && self.family == Family::Time {
                    CHOSEN.iter().find(|unit| unit.text == "s")
                } else {
                    fitting.by_ref().last()
                };
                Ok(last.map_or(Shown { factor: 1.0, text: self.text.to_owned() }, convert))
            }
            (None, _) => Ok(Shown { factor: 1.0, text: self.text.to_owned() }),
        }
    }
}

/// How values are shown: multiplied by a factor, in this unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shown {
    /// Shown value per value.
    pub factor: f64,
    /// The unit, as written; empty for a bare number.
    pub text: String,
}

impl Shown {
    /// A label with this unit.
    pub fn label(&self, text: &str) -> String {
        if self.text.is_empty() { text.to_owned() } else { format!("{text} ({})", self.text) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn units_are_read_off_names() {
        let text = |name| Unit::of_name(name).text;
        assert_eq!(
            ["wall_s", "p99_us", "bytes_per_s", "ops_per_s", "merged_percent"].map(text),
            ["s", "µs", "B/s", "1/s", "%"]
        );
        assert_eq!(
            ["sqes", "bios", "bytes_read", "device_bytes", "iops_per_cpu_s", "average_request_kib"].map(text),
            ["", "", "B", "B", "", "KiB"]
        );
        assert_eq!(Unit::of_name("think_us").strip("think_us"), "think");
        // A time spent on something, and a percentile of it, is a time all the same; a count of things is not.
        assert_eq!(
            ["touch_ns_per_line_p50", "touch_ns_per_line_p95", "misses_per_page", "sqes_per_enter"].map(text),
            ["ns", "ns", "", ""]
        );
    }

    #[test]
    fn a_handy_unit_is_chosen() {
        let shown = |name: &str, max| Unit::of_name(name).shown(max, None).unwrap().text;
        assert_eq!(shown("wall_s", 11.0), "s");
        assert_eq!(shown("wall_s", 0.6), "s");
        assert_eq!(shown("wall_s", 0.004), "ms");
        assert_eq!(shown("p99_us", 6853.0), "ms");
        assert_eq!(shown("bytes_per_s", 2e9), "GiB/s");
        assert_eq!(shown("average_request_kib", 256.0), "KiB");
        assert_eq!(shown("wall_s", 0.0), "s");
    }

    #[test]
    fn a_unit_that_does_not_fit_is_refused_with_those_that_do() {
        assert_eq!(Unit::of_name("bytes_per_s").shown(1.0, Some("MiB/s")).unwrap().factor, 1.0 / MIB);
        let refused = Unit::of_name("wall_s").shown(1.0, Some("MiB")).unwrap_err();
        assert!(refused.contains("MiB") && refused.contains("ms"), "{refused}");
        assert_eq!(Unit::of_name("sqes").shown(1.0, Some("per query")).unwrap().text, "per query");
    }
}
