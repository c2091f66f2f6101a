//! The matrix of an experiment: lists of values on each axis, the cells of their product, and what is left out of it.

use std::str::FromStr;

use crate::engine::{EngineBackend, EngineKind};
use crate::experiment::record::CacheState;
use crate::page::config::{
    Delivery, Direct, GAP_MAX_PAGES, IN_FLIGHT_MAX, PolicyKind, PoolKind, Submit, UnknownValue, WINDOW_MAX_PAGES,
};

/// The values asked for on each axis, in the order in which cells are to be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Who answers.
    pub engine: Vec<EngineKind>,
    /// How the engine reads.
    pub backend: Vec<EngineBackend>,
    /// Whether reads bypass the page cache.
    pub direct: Vec<Direct>,
    /// State of the page cache at the start.
    pub cache: Vec<CacheState>,
    /// Which pages are read ahead.
    pub policy: Vec<PolicyKind>,
    /// Pages fetched at once.
    pub window: Vec<u32>,
    /// How a batch becomes SQEs.
    pub submit: Vec<Submit>,
    /// Batches in flight.
    pub in_flight: Vec<u32>,
    /// Unwanted pages that a run may read through.
    pub gap: Vec<u32>,
    /// The memory behind the frames.
    pub pool: Vec<PoolKind>,
    /// How a page comes to the engine.
    pub delivery: Vec<Delivery>,
}

impl Default for Matrix {
    fn default() -> Self {
        Matrix {
            engine: vec![EngineKind::Turso, EngineKind::Sqlite],
            backend: vec![EngineBackend::Uring],
            direct: vec![Direct::Disabled],
            cache: vec![CacheState::Cold],
            policy: vec![PolicyKind::Sequential],
            window: vec![DEFAULT.window],
            submit: vec![DEFAULT.submit],
            in_flight: vec![DEFAULT.in_flight],
            gap: vec![DEFAULT.gap],
            pool: vec![DEFAULT.pool],
            delivery: vec![DEFAULT.delivery],
        }
    }
}

/// Values that a cell's name does not mention.
const DEFAULT: Cell = Cell {
    engine: EngineKind::Sqlite,
    backend: EngineBackend::Uring,
    direct: Direct::Disabled,
    cache: CacheState::Cold,
    policy: PolicyKind::Sequential,
    window: 32,
    submit: Submit::PerPage,
    in_flight: 4,
    gap: 8,
    pool: PoolKind::Normal,
    delivery: Delivery::Copy,
};

/// One combination of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Who answers.
    pub engine: EngineKind,
    /// How the engine reads.
    pub backend: EngineBackend,
    /// Whether reads bypass the page cache.
    pub direct: Direct,
    /// State of the page cache at the start.
    pub cache: CacheState,
    /// Which pages are read ahead.
    pub policy: PolicyKind,
    /// Pages fetched at once.
    pub window: u32,
    /// How a batch becomes SQEs.
    pub submit: Submit,
    /// Batches in flight.
    pub in_flight: u32,
    /// Unwanted pages that a run may read through.
    pub gap: u32,
    /// The memory behind the frames.
    pub pool: PoolKind,
    /// How a page comes to the engine.
    pub delivery: Delivery,
}

impl Cell {
    /// Whether ioscope's reader reads, and not the engine's own I/O.
    pub fn has_reader(&self) -> bool {
        !matches!(self.backend, EngineBackend::Builtin | EngineBackend::BuiltinUring)
    }

    /// The cell's name: the same combination has the same name in every experiment. Values that are the default
    /// are not mentioned, nor are axes that do not matter.
    pub fn name(&self) -> String {
        let mut name = format!("{}-{}", self.engine, self.backend);
        let mut add = |part: String| {
            name.push('-');
            name.push_str(&part);
        };
        if self.direct == Direct::Required {
            add("direct".to_owned());
        }
        if self.has_reader() {
            add(format!("w{}", self.window));
            if self.window > 0 {
                if self.submit != DEFAULT.submit {
                    add(self.submit.to_string());
                }
                if self.in_flight != DEFAULT.in_flight {
                    add(format!("x{}", self.in_flight));
                }
                if self.gap != DEFAULT.gap {
                    add(format!("gap{}", self.gap));
                }
                if self.pool != DEFAULT.pool {
                    add(self.pool.to_string());
                }
                if self.delivery != DEFAULT.delivery {
                    add(self.delivery.to_string());
                }
            }
        }
        if self.cache != DEFAULT.cache {
            add(self.cache.to_string());
        }
        name
    }

    /// Why this combination makes no sense: what is combined, and the reason.
    fn refusal(&self, path_is_utf8: bool) -> Option<LeftOut> {
        let left_out = |what: String, why: &str| Some(LeftOut { what, why: why.to_owned() });
        if self.engine == EngineKind::Turso
            && self.delivery == Delivery::ZeroCopy
            && self.has_reader()
            && self.window > 0
        {
            return left_out(
                "turso x zero-copy".to_owned(),
                "Turso reads into buffers of its own, so that pages are always copied to it",
            );
        }
        if self.engine == EngineKind::Sqlite && self.backend == EngineBackend::BuiltinUring {
            return left_out(
                format!("{} x {}", self.engine, self.backend),
                "SQLite has no io_uring of its own; its own I/O is 'builtin'",
            );
        }
        if self.engine == EngineKind::Turso && !path_is_utf8 {
            return left_out(
                self.engine.to_string(),
                "Turso takes paths as UTF-8 text and this database's path is not; rename it, or ask sqlite alone",
            );
        }
        if self.direct == Direct::Required && !self.has_reader() {
            return left_out(
                format!("{} x direct required", self.backend),
                "an engine's own I/O goes through the page cache; its cells are those with direct disabled",
            );
        }
        if self.direct == Direct::Required && self.cache == CacheState::Warm {
            return left_out(
                "direct required x cache warm".to_owned(),
                "direct reads bypass the page cache, so a warm one changes nothing; their cells are those with cache cold",
            );
        }
        None
    }

    /// The same cell with the first listed value on every axis that does not matter for it.
    fn canonical(mut self, matrix: &Matrix) -> Cell {
        fn first<T: Copy>(list: &[T], otherwise: T) -> T {
            list.first().copied().unwrap_or(otherwise)
        }
        if !self.has_reader() {
            self.window = first(&matrix.window, self.window);
        }
        if !self.has_reader() || self.window == 0 {
            self.policy = first(&matrix.policy, self.policy);
            self.submit = first(&matrix.submit, self.submit);
            self.in_flight = first(&matrix.in_flight, self.in_flight);
            self.gap = first(&matrix.gap, self.gap);
            self.pool = first(&matrix.pool, self.pool);
            self.delivery = first(&matrix.delivery, self.delivery);
        }
        self
    }
}

/// A combination that is left out of the product.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// The values that do not go together.
    pub what: String,
    /// Why.
    pub why: String,
}

/// The cells of an experiment, and what was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells {
    /// The cells, in the order of the lists; no two with the same name.
    pub cells: Vec<Cell>,
    /// What was left out, each reason once.
    pub left_out: Vec<LeftOut>,
}

/// The product of the axes of each matrix, one matrix after the other. `path_is_utf8` says whether the database's
/// path is text, which Turso needs.
pub fn expand(matrices: &[Matrix], path_is_utf8: bool) -> Cells {
    let mut plan = Cells::default();
    let mut names = std::collections::BTreeSet::new();
    for matrix in matrices {
        for cell in product(matrix) {
            if let Some(left_out) = cell.refusal(path_is_utf8) {
                if !plan.left_out.contains(&left_out) {
                    plan.left_out.push(left_out);
                }
                continue;
            }
            let cell = cell.canonical(matrix);
            if names.insert(cell.name()) {
                plan.cells.push(cell);
            }
        }
    }
    plan
}

/// All combinations, the last axis fastest.
fn product(matrix: &Matrix) -> Vec<Cell> {
    fn cross<T: Copy>(cells: Vec<Cell>, values: &[T], set: impl Fn(&mut Cell, T)) -> Vec<Cell> {
        let mut crossed = Vec::with_capacity(cells.len() * values.len());
        for cell in cells {
            for &value in values {
                let mut cell = cell;
                set(&mut cell, value);
                crossed.push(cell);
            }
        }
        crossed
    }
    let mut cells = vec![DEFAULT];
    cells = cross(cells, &matrix.engine, |c, v| c.engine = v);
    cells = cross(cells, &matrix.backend, |c, v| c.backend = v);
    cells = cross(cells, &matrix.direct, |c, v| c.direct = v);
    cells = cross(cells, &matrix.cache, |c, v| c.cache = v);
    cells = cross(cells, &matrix.policy, |c, v| c.policy = v);
    cells = cross(cells, &matrix.window, |c, v| c.window = v);
    cells = cross(cells, &matrix.submit, |c, v| c.submit = v);
    cells = cross(cells, &matrix.in_flight, |c, v| c.in_flight = v);
    cells = cross(cells, &matrix.gap, |c, v| c.gap = v);
    cells = cross(cells, &matrix.pool, |c, v| c.pool = v);
    cross(cells, &matrix.delivery, |c, v| c.delivery = v)
}

/// Why a value on an axis is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// A name that the axis does not have.
    #[error("{source}{suggestion}")]
    Unknown {
        /// The name, and the known ones.
        source: UnknownValue,
        /// `; did you mean ...?`, or nothing.
        suggestion: String,
    },
    /// A number that is none, or out of range.
    #[error("{axis} '{value}' is out of range; a whole number from {min} to {max}")]
    Range {
        /// The axis.
        axis: &'static str,
        /// What was given.
        value: String,
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// Not of the form AXIS=VALUE,...
    #[error("'{0}' is not of the form AXIS=VALUE,VALUE")]
    Form(String),
}

/// Reads the name of one value.
pub fn parse_value<T: FromStr<Err = UnknownValue>>(text: &str) -> Result<T, AxisError> {
    text.parse().map_err(|source: UnknownValue| {
        let suggestion = nearest(&source.value, source.known.split(", "));
        AxisError::Unknown { suggestion, source }
    })
}

/// Reads a number of one axis.
pub fn parse_number(axis: &'static str, text: &str, min: u32, max: u32) -> Result<u32, AxisError> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|n| digits && (min..=max).contains(n));
    number.ok_or_else(|| AxisError::Range { axis, value: text.to_owned(), min, max })
}

/// Reads a value of `--window`.
pub fn parse_window(text: &str) -> Result<u32, AxisError> {
    parse_number("window", text, 0, WINDOW_MAX_PAGES)
}

/// Reads a value of `--in-flight`.
pub fn parse_in_flight(text: &str) -> Result<u32, AxisError> {
    parse_number("in-flight", text, 1, IN_FLIGHT_MAX)
}

/// Reads a value of `--gap`.
pub fn parse_gap(text: &str) -> Result<u32, AxisError> {
    parse_number("gap", text, 0, GAP_MAX_PAGES)
}

/// The axes of a matrix, as flags name them.
pub const AXES: &str = "engine, backend, direct, cache, policy, window, submit, in-flight, gap, pool, delivery";

impl Matrix {
    /// A copy of this matrix with some axes replaced: `text` is like `backend=builtin cache=cold,warm`.
    pub fn with(&self, text: &str) -> Result<Matrix, AxisError> {
        fn list<T>(text: &str, parse: impl Fn(&str) -> Result<T, AxisError>) -> Result<Vec<T>, AxisError> {
            text.split(',').map(|value| parse(value.trim())).collect()
        }
        let mut matrix = self.clone();
        for assignment in text.split_whitespace() {
            let (axis, values) = assignment.split_once('=').ok_or_else(|| AxisError::Form(assignment.to_owned()))?;
            match axis {
                "engine" => matrix.engine = list(values, parse_value)?,
                "backend" => matrix.backend = list(values, parse_value)?,
                "direct" => matrix.direct = list(values, parse_value)?,
                "cache" => matrix.cache = list(values, parse_value)?,
                "policy" => matrix.policy = list(values, parse_value)?,
                "window" => matrix.window = list(values, parse_window)?,
                "submit" => matrix.submit = list(values, parse_value)?,
                "in-flight" => matrix.in_flight = list(values, parse_in_flight)?,
                "gap" => matrix.gap = list(values, parse_gap)?,
                "pool" => matrix.pool = list(values, parse_value)?,
                "delivery" => matrix.delivery = list(values, parse_value)?,
                unknown => {
                    let source = UnknownValue { axis: "axis", value: unknown.to_owned(), known: AXES.to_owned() };
                    return Err(AxisError::Unknown { suggestion: nearest(unknown, AXES.split(", ")), source });
                }
            }
        }
        Ok(matrix)
    }
}

/// `; did you mean 'x'?` for the known name nearest to `text`, or nothing if none is near.
pub fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> String {
    let text = text.to_lowercase();
    let near = known.map(|name| (edit_distance(&text, name), name)).min();
    match near {
        Some((distance, name)) if distance <= 2 && distance < name.chars().count() => {
            format!("; did you mean '{name}'?")
        }
        _ => String::new(),
    }
}

/// Levenshtein's distance, in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
