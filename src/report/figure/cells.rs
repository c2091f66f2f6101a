//! Chosen records, grouped so that what is pooled in one point is one cell on one machine.

use std::collections::BTreeMap;

use serde_json::Value;

use super::data::AxisValue;
use super::error::FigureError;
use super::leaf;
use super::spec::FigureSpec;

/// The records that a figure shows and the axes that it shows them by.
pub(super) struct Chosen<'a> {
    /// The records that pass the filter, by cell and run.
    pub records: Vec<&'a Value>,
    /// The machines, each with the name that tells it apart; one machine has none.
    pub hosts: Vec<(&'a str, Option<String>)>,
}

/// Where a group of runs belongs: indices into the values of the figure's axes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Value of the panels' axis.
    pub panel: usize,
    /// Values of the series' axes.
    pub series: Vec<usize>,
    /// The machine.
    pub host: usize,
    /// Values of the x axes, or the number of the cell.
    pub x: Vec<usize>,
}

/// An axis and the values that the chosen records have on it, in the order in which they are shown.
pub(super) struct AxisValues {
    /// The axis' name.
    pub name: String,
    /// Its values.
    pub values: Vec<AxisValue>,
}

impl<'a> Chosen<'a> {
    /// Applies the filter.
    ///
    /// # Errors
    /// [`FigureError::Spec`] for an axis that no record has.
    pub fn choose(spec: &FigureSpec, records: &'a [Value]) -> Result<Chosen<'a>, FigureError> {
        let panels = spec.panels.iter().filter(|_| !spec.panels_are_quantities());
        for name in spec.filter.keys().chain(&spec.series).chain(panels) {
            check_axis(spec, records, name)?;
        }
        let passes = |record: &&Value| {
            spec.filter.iter().all(|(axis, values)| {
                let value = AxisValue::of(leaf::axis(record, axis));
                values.all().iter().any(|scalar| value.is(scalar))
            })
        };
        let mut records: Vec<&Value> = records.iter().filter(passes).collect();
        // The order in which runs finished must not matter.
        records.sort_by_cached_key(|r| (identity(r), leaf::is_counted(r), leaf::run(r), r.to_string()));
        let mut names: Vec<&str> = records.iter().map(|r| leaf::host(r)).collect();
        names.sort_unstable();
        names.dedup();
        let hosts = match names.as_slice() {
            [only] => vec![(*only, None)],
            several => several.iter().map(|host| (*host, Some(format!("host {}", short(host, several))))).collect(),
        };
        Ok(Chosen { records, hosts })
    }

    /// The values on one axis.
    pub fn values(&self, spec: &FigureSpec, name: &str) -> AxisValues {
        let mut values: Vec<AxisValue> = Vec::new();
        for record in &self.records {
            let value = AxisValue::of(leaf::axis(record, name));
            if !values.iter().any(|known| known.text() == value.text()) {
                values.push(value);
            }
        }
        let rank = |value: &AxisValue| {
            spec.filter.get(name).and_then(|listed| listed.all().iter().position(|scalar| value.is(scalar)))
        };
        values.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.order(b)));
        AxisValues { name: name.to_owned(), values }
    }

    /// The records by place. `x` is empty where x is a measured quantity: then each cell is a place of its own.
    ///
    /// # Errors
    /// [`FigureError::Pooled`] where a place would hold runs of two cells.
    pub fn places(
        &self,
        spec: &FigureSpec,
        panel: Option<&AxisValues>,
        series: &[AxisValues],
        x: &[AxisValues],
    ) -> Result<BTreeMap<Place, Vec<&'a Value>>, FigureError> {
        let mut cells: Vec<String> = self.records.iter().map(|r| identity(r)).collect();
        cells.dedup();
        let mut places: BTreeMap<Place, Vec<&'a Value>> = BTreeMap::new();
        for record in &self.records {
            // The records are sorted by cell.
            let cell = || cells.binary_search(&identity(record)).unwrap_or(0);
            let place = Place {
                panel: panel.map_or(0, |axis| axis.index(record)),
                series: series.iter().map(|axis| axis.index(record)).collect(),
                host: self.hosts.iter().position(|(host, _)| *host == leaf::host(record)).unwrap_or(0),
                x: if x.is_empty() { vec![cell()] } else { x.iter().map(|axis| axis.index(record)).collect() },
            };
            places.entry(place).or_default().push(record);
        }
        for runs in places.values() {
            if let Some(axes) = differing(runs) {
                return Err(FigureError::Pooled { figure: spec.name.clone(), axes });
            }
        }
        Ok(places)
    }
}

impl AxisValues {
    /// Where a record's value stands.
    pub fn index(&self, record: &Value) -> usize {
        let text = AxisValue::of(leaf::axis(record, &self.name)).text();
        self.values.iter().position(|value| value.text() == text).unwrap_or(0)
    }

    /// What the legend says of a value: text speaks for itself, a number needs its axis.
    pub fn say(&self, spec: &FigureSpec, index: usize) -> String {
        let Some(value) = self.values.get(index) else { return String::new() };
        let text = value.text();
        match (spec.value_label(&self.name, &text), value) {
            (Some(label), _) => label,
            (None, AxisValue::Text(text)) => text.clone(),
            (None, AxisValue::Null) => format!("{}: none", self.spoken(spec)),
            (None, AxisValue::Bool(_) | AxisValue::Number(_)) => format!("{} {text}", self.spoken(spec)),
        }
    }

    fn spoken(&self, spec: &FigureSpec) -> String {
        spec.labels.get(&self.name).cloned().unwrap_or_else(|| self.name.replace('_', " "))
    }
}

/// What makes two records of one cell: all that was asked, or the cell's name where nothing is recorded as asked.
fn identity(record: &Value) -> String {
    let asked = record.get("asked").map(ToString::to_string).unwrap_or_default();
    format!("{} {asked}", leaf::text(record, "cell").unwrap_or_default())
}

/// The axes in which records differ, with their values.
pub(super) fn differing(records: &[&Value]) -> Option<String> {
    let first = identity(records.first()?);
    if records.iter().all(|record| identity(record) == first) {
        return None;
    }
    let mut names: Vec<String> = records.iter().flat_map(|record| leaf::axis_names(record)).collect();
    names.push("cell".to_owned());
    names.sort_unstable();
    names.dedup();
    let described = |name: &String| {
        let mut values: Vec<String> = records.iter().map(|r| AxisValue::of(leaf::axis(r, name)).text()).collect();
        values.sort_unstable();
        values.dedup();
        (values.len() > 1).then(|| format!("`{name}` ({})", values.join(", ")))
    };
    // The cell's name follows from the axes: it is worth saying only where they do not tell.
    let axes: Vec<String> = names.iter().filter(|name| *name != "cell").filter_map(described).collect();
    if axes.is_empty() { described(&"cell".to_owned()) } else { Some(axes.join(", ")) }
}

fn check_axis(spec: &FigureSpec, records: &[Value], name: &str) -> Result<(), FigureError> {
    if records.is_empty() || records.iter().any(|record| leaf::axis(record, name).is_some()) {
        return Ok(());
    }
    let mut known: Vec<String> = records.iter().flat_map(leaf::axis_names).collect();
    known.sort_unstable();
    known.dedup();
    Err(spec.error(format!("no record has an axis `{name}`; there are {}", known.join(", "))))
}

/// The first six characters of a machine's digest, or all where that does not tell machines apart.
fn short<'a>(host: &'a str, all: &[&str]) -> &'a str {
    let start = |host: &'a str| host.char_indices().nth(6).map_or(host, |(at, _)| &host[..at]);
    let is_unique = all.iter().filter(|other| other.starts_with(start(host))).count() == 1;
    if is_unique { start(host) } else { host }
}
