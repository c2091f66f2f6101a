//! Whether an answer is the known one.
//!
//! The known answers are the specification's for scale 1, and for Q6 the exact sum that the data set's manifest carries.
//! How they are compared:
//!
//! - Text is compared without blanks at either end.
//! - A number that is known without decimals (a key, a count) must be equal. One that is known with decimals must round to the
//!   known one: it may differ by half a unit of the last printed place. That is narrower than TPC-H 2.1.3.5 allows
//!   (100 dollars for a sum, 1 % for an average or a ratio), and wide enough for floating-point addition in any order.
//! - Q6 must agree in all four decimals.
//! - Rows come in the order of the query's ORDER BY; rows that tie under it may come in any order among themselves.

use std::fmt;
use std::sync::LazyLock;

use crate::dataset::{Manifest, queries};
use crate::engine::Value;

/// What the comparison with the known answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is the known answer.
    Right,
    /// It is not; the text says what differs first.
    Wrong(String),
}

impl Verdict {
    /// Whether the answer is the known one.
    pub fn is_right(&self) -> bool {
        *self == Verdict::Right
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Right => f.write_str("the known answer"),
            Verdict::Wrong(why) => write!(f, "not the known answer: {why}"),
        }
    }
}

/// The number of the TPC-H query whose text in `tpch/queries` this is, whatever its comments, blanks and letter case outside
/// of quotes.
pub fn known_query(sql: &str) -> Option<u8> {
    static KNOWN: LazyLock<Vec<(u8, String)>> =
        LazyLock::new(|| (1..=22).filter_map(|number| Some((number, normalised(queries::query(number)?)))).collect());
    let sql = normalised(sql);
    KNOWN.iter().find(|(_, known)| *known == sql).map(|(number, _)| *number)
}

/// Compares the answer to a TPC-H query with the known one for the data set that was asked.
///
/// `None` where none is known: without a manifest, and at other scales than 1 for any query but Q6.
pub fn check(query: u8, manifest: Option<&Manifest>, rows: &[Vec<Value>]) -> Option<Verdict> {
    let manifest = manifest?;
    let q6_answer;
    let known = if query == 6 {
        q6_answer = format!("revenue\n{}\n", manifest.q6_revenue);
        q6_answer.as_str()
    } else if manifest.scale == 1.0 {
        queries::answer_sf1(query)?
    } else {
        return None;
    };
    Some(match compare(known, sort_columns(query), rows) {
        Ok(()) => Verdict::Right,
        Err(why) => Verdict::Wrong(why),
    })
}

/// The answer as a record keeps it: `|` between columns, a newline between rows.
///
/// Floating-point numbers have up to 15 significant digits, as SQLite itself prints them: enough for every sum of money here,
/// and few enough that the last bit, in which two orders of addition differ, does not show. NULL is `NULL`, bytes are `x'..'`.
pub fn format_rows(rows: &[Vec<Value>]) -> String {
    let lines: Vec<String> = rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|")).collect();
    lines.join("\n")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::Real(value) => {
            let rounded = format!("{value:.14e}").parse().unwrap_or(*value);
            format!("{rounded:?}")
        }
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("x'{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// Columns of the answer that the query's ORDER BY sorts by.
fn sort_columns(query: u8) -> &'static [usize] {
    match query {
        1 | 9 => &[0, 1],
        2 => &[0, 2, 1, 3],
        3 => &[1, 2],
        4 | 8 | 12 | 15 | 20 | 22 => &[0],
        5 | 11 => &[1],
        7 => &[0, 1, 2],
        10 => &[2],
        13 | 21 => &[1, 0],
        16 => &[3, 0, 1, 2],
        18 => &[4, 3],
        // One row each.
        _ => &[],
    }
}

/// Compares an answer with a known one that begins with a header line; `Err` says what differs first.
fn compare(known: &str, sort_columns: &[usize], rows: &[Vec<Value>]) -> Result<(), String> {
    let mut lines = known.lines().map(|line| line.split('|').collect::<Vec<_>>());
    let header = lines.next().unwrap_or_default();
    let known: Vec<Vec<&str>> = lines.collect();
    if known.len() != rows.len() {
        return Err(format!("{} rows are known and {} were answered", known.len(), rows.len()));
    }
    let key = |row: usize| sort_columns.iter().map(|column| known[row].get(*column)).collect::<Vec<_>>();
    let mut start = 0;
    while start < known.len() {
        let end = (start + 1..known.len()).find(|row| key(*row) != key(start)).unwrap_or(known.len());
        compare_tie(&header, &known[start..end], &rows[start..end], start)?;
        start = end;
    }
    Ok(())
}

/// Compares rows that tie: each known row must have a row of its own.
fn compare_tie(header: &[&str], known: &[Vec<&str>], rows: &[Vec<Value>], start: usize) -> Result<(), String> {
    let mut free: Vec<&Vec<Value>> = rows.iter().collect();
    for (offset, expected) in known.iter().enumerate() {
        match free.iter().position(|row| difference(header, expected, row).is_none()) {
            Some(position) => drop(free.swap_remove(position)),
            None if known.len() == 1 => {
                let why = difference(header, expected, free[0]).unwrap_or_default();
                return Err(format!("row {}: {why}", start + 1));
            }
            None => {
                let (first, last) = (start + 1, start + known.len());
                let expected = expected.join("|");
                return Err(format!(
                    "rows {first} to {last}, which tie: none is `{expected}` (known row {})",
                    first + offset
                ));
            }
        }
    }
    Ok(())
}

/// What differs first between a known row and an answered one.
fn difference(header: &[&str], known: &[&str], row: &[Value]) -> Option<String> {
    if known.len() != row.len() {
        return Some(format!("{} columns are known and {} were answered", known.len(), row.len()));
    }
    known.iter().zip(row).enumerate().find(|(_, (known, value))| !agrees(known, value)).map(
        |(column, (known, value))| {
            let name = header.get(column).copied().unwrap_or("?");
            format!("column {name} is known as `{known}`, and `{}` was answered", shown(value))
        },
    )
}

fn agrees(known: &str, value: &Value) -> bool {
    match value {
        Value::Null => known == "NULL",
        Value::Text(text) => text.trim() == known.trim(),
        Value::Integer(value) => {
            agrees_as_number(known, *value as f64) && (known.contains('.') || *value == parsed(known))
        }
        Value::Real(value) => agrees_as_number(known, *value),
        Value::Blob(_) => false,
    }
}

fn parsed(known: &str) -> i64 {
    known.parse().unwrap_or(i64::MIN)
}

/// Whether a number rounds to a known decimal; without decimals it must be equal.
fn agrees_as_number(known: &str, value: f64) -> bool {
    let Ok(expected) = known.parse::<f64>() else { return false };
    let half_a_place = match known.split_once('.') {
        Some((_, decimals)) => 0.5 * 0.1_f64.powi(i32::try_from(decimals.len()).unwrap_or(i32::MAX)),
        None => 0.0,
    };
    // The known decimal and the difference are themselves rounded to floating point.
    (value - expected).abs() <= half_a_place + 4.0 * f64::EPSILON * expected.abs()
}

/// A query's text without comments, with one blank between its words and signs, in lower case outside of quotes.
fn normalised(sql: &str) -> String {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map_or(rest.len(), |end| end + "/**/".len())
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            let length = match first {
                '\'' | '"' | '`' => quoted(rest, first),
                _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            let token = &rest[..length];
            tokens.push(if matches!(first, '\'' | '"' | '`') { token.to_owned() } else { token.to_lowercase() });
            length
        };
        rest = &rest[length..];
    }
    while tokens.last().is_some_and(|token| token == ";") {
        tokens.pop();
    }
    tokens.join(" ")
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// Length of a quoted text at the start, in bytes; a doubled quote does not end it.
fn quoted(text: &str, quote: char) -> usize {
    let mut position = 1;
    while let Some(end) = text[position..].find(quote) {
        position += end + 1;
        if !text[position..].starts_with(quote) {
            return position;
        }
        position += 1;
    }
    text.len()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "answer_tests.rs"]
mod tests;
