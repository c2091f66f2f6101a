//! The scale factor of TPC-H.

use std::fmt;
use std::str::FromStr;

/// A scale factor for which all tables can be made: a positive number, 1 for a database of 1.2 GiB.
///
/// The upper bound is 100: 117 GiB and most of an hour. The lower bound is the specification's own: the formula that gives
/// each part its four suppliers (TPC-H 4.2.3, PS_SUPPKEY) needs so many suppliers that the four differ, or else the primary key
/// of PARTSUPP cannot hold. Every scale from 0.03 on does, and many smaller ones, 0.01 among them.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Scale(f64);

/// Why a scale is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScaleError {
    /// It is not a number.
    #[error("scale `{0}` is not a number: give a positive one, such as 1, 0.1 or 0.01")]
    NotANumber(String),
    /// It is zero, negative or not finite.
    #[error("scale {0} is out of range: it must be above 0 and at most 100; 1 makes a database of 1.2 GiB")]
    OutOfRange(f64),
    /// It is above 100.
    #[error(
        "scale {0} is out of range: at most 100, which already makes a file of 117 GiB; what this program measures is settled \
         by a database that is larger than the machine's memory"
    )]
    TooLarge(f64),
    /// The specification's formula gives a part the same supplier twice.
    #[error(
        "scale {0} is too small: with {1} suppliers the specification's formula gives some part the same supplier twice, and \
         the primary key of PARTSUPP cannot hold; 0.01 is the usual small scale"
    )]
    TooFewSuppliers(f64, i64),
}

impl Scale {
    /// The scale of the published experiment.
    pub const ONE: Scale = Scale(1.0);

    /// Checks a scale factor.
    pub fn new(scale: f64) -> Result<Self, ScaleError> {
        if !scale.is_finite() || scale <= 0.0 {
            return Err(ScaleError::OutOfRange(scale));
        }
        if scale > 100.0 {
            return Err(ScaleError::TooLarge(scale));
        }
        let suppliers = (10_000.0 * scale) as i64;
        if !suppliers_of_a_part_differ(suppliers, (200_000.0 * scale) as i64) {
            return Err(ScaleError::TooFewSuppliers(scale, suppliers));
        }
        Ok(Scale(scale))
    }

    /// The factor.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Whether the four suppliers of each part differ. Supplier `n` of part `p` is `(p + n * (S/4 + (p-1)/S)) mod S + 1`, so
/// they do when no multiple 1, 2 or 3 of the step is a multiple of S, for every step that occurs.
fn suppliers_of_a_part_differ(suppliers: i64, parts: i64) -> bool {
    suppliers > 0
        && (0..=(parts - 1) / suppliers).all(|turn| {
            let step = suppliers / 4 + turn;
            (1..=3).all(|n| (n * step) % suppliers != 0)
        })
}

impl fmt::Display for Scale {
    /// The shortest form that reads back as the same number: `1`, `0.01`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Scale {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        Scale::new(text.trim().parse().map_err(|_| ScaleError::NotANumber(text.to_owned()))?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tpchgen::generators::PartSuppGenerator;

    #[test]
    fn usual_scales_are_accepted_and_shown_shortly() {
        for (text, shown) in
            [("1", "1"), ("1.0", "1"), ("0.01", "0.01"), (" 0.10 ", "0.1"), ("1e-1", "0.1"), ("100", "100")]
        {
            assert_eq!(text.parse::<Scale>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn nonsense_is_refused_with_its_reason() {
        for text in ["0", "-1", "NaN", "inf", "-0.0", "1e-300"] {
            let message = text.parse::<Scale>().unwrap_err().to_string();
            assert!(message.contains("scale"), "{text}: {message}");
        }
        assert_eq!("100.1".parse::<Scale>(), Err(ScaleError::TooLarge(100.1)));
        assert_eq!("one".parse::<Scale>(), Err(ScaleError::NotANumber("one".into())));
        assert!(matches!("0.001".parse::<Scale>(), Err(ScaleError::TooFewSuppliers(_, 10))));
    }

    #[test]
    fn a_scale_is_accepted_exactly_where_the_generator_gives_distinct_suppliers() {
        for suppliers in 1..=300 {
            let scale = f64::from(suppliers) / 10_000.0;
            let mut seen = HashSet::new();
            let distinct =
                PartSuppGenerator::new(scale, 1, 1).iter().all(|ps| seen.insert((ps.ps_partkey, ps.ps_suppkey)));
            assert_eq!(Scale::new(scale).is_ok(), distinct, "{scale}");
            assert!(scale < 0.03 || distinct, "{scale}");
        }
    }
}
