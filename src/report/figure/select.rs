//! From records to the points of a figure: which runs, which values, what is pooled. Nothing here knows of paper.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cells::{AxisValues, Chosen, Place};
use super::data::{AxisValue, FigureData, Line, Look, Panel, SeriesName, XAxis};
use super::error::FigureError;
use super::estimate::{estimate, note_failures};
use super::leaf;
use super::published;
use super::quantity::{self, Quantity};
use super::spec::{FigureSpec, Kind};
use super::unit::{Family, Unit};

/// Most series of one figure: more cannot be told apart.
pub(super) const SERIES_MAX: usize = 12;
/// Most panels of one figure.
pub(super) const PANELS_MAX: usize = 12;
/// Most categories on one axis.
pub(super) const CATEGORIES_MAX: usize = 60;

/// The data of a figure of any kind but a timeline. `seed` is that of the bootstrap, `reference` the file of published
/// figures.
///
/// # Errors
/// [`FigureError::Spec`] for names that no record has, [`FigureError::Pooled`] where cells would be pooled.
pub(super) fn select(
    spec: &FigureSpec,
    records: &[Value],
    seed: u64,
    reference: Option<&Value>,
) -> Result<FigureData, FigureError> {
    let chosen = Chosen::choose(spec, records)?;
    let quantities = quantities(spec, &chosen)?;
    let axes = Axes::of(spec, &chosen)?;
    let places = chosen.places(spec, axes.panel.as_ref(), &axes.series, &axes.x)?;

    let keys: Vec<(Vec<usize>, usize)> = {
        let mut keys: Vec<_> = places.keys().map(|place| (place.series.clone(), place.host)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    };
    let split = match spec.kind {
        Kind::Stacked => Split::Stack,
        _ if spec.panels_are_quantities() => Split::Panels,
        _ => Split::Series,
    };
    let series = series_names(spec, &chosen, &axes, &keys, &quantities, split);
    if series.len() > SERIES_MAX {
        return Err(spec.error(format!(
            "there are {} series, and more than {SERIES_MAX} cannot be told apart: use `filter` or `panels`",
            series.len()
        )));
    }

    let (x, categories) = axes.x_axis(spec, &chosen, &places);
    if categories.len() > CATEGORIES_MAX {
        return Err(spec.error(format!(
            "there are {} categories on x, at most {CATEGORIES_MAX} fit: use `filter` or `panels`",
            categories.len()
        )));
    }
    let mut panels = empty_panels(spec, &axes, &quantities, split, series.len())?;
    let mut warnings = Vec::new();
    for (place, runs) in &places {
        note_failures(runs, &mut warnings);
        let key = keys.iter().position(|(s, h)| *s == place.series && *h == place.host).unwrap_or(0);
        for (q, quantity) in quantities.iter().enumerate() {
            let (panel, series) = match split {
                Split::Stack => (place.panel, q),
                Split::Panels => (q, key),
                Split::Series => (place.panel, key * quantities.len() + q),
            };
            let mut point = estimate(quantity, runs, seed);
            point.quantity = q;
            point.host = chosen.hosts.get(place.host).map_or(String::new(), |(host, _)| (*host).to_owned());
            match &x.categories {
                Some(names) => {
                    let at = categories.iter().position(|category| *category == axes.category_key(spec, place));
                    point.at = at.map(|at| at as f64);
                    point.x = at.and_then(|at| names.get(at)).cloned().unwrap_or_default();
                }
                None => {
                    point.at = axes.number(place, runs);
                    point.x = point.at.map_or(String::new(), |at| at.to_string());
                }
            }
            if let Some(line) = panels.get_mut(panel).and_then(|panel| panel.lines.get_mut(series)) {
                line.points.push(point);
            }
        }
    }
    for line in panels.iter_mut().flat_map(|panel| &mut panel.lines) {
        line.points.sort_by(|a, b| a.at.unwrap_or(f64::NAN).total_cmp(&b.at.unwrap_or(f64::NAN)));
    }

    let mut data = FigureData { x, quantities, series, panels, warnings, no_data: None };
    published::place(spec, reference, axes.panel.as_ref(), &mut data)?;
    data.no_data = no_data(spec, &chosen, &data);
    Ok(data)
}

/// What becomes of several quantities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    /// Each has a panel.
    Panels,
    /// Each is a series.
    Series,
    /// They are stacked.
    Stack,
}

/// The axes of a figure and their values.
struct Axes {
    panel: Option<AxisValues>,
    series: Vec<AxisValues>,
    x: Vec<AxisValues>,
    /// Set where x is a measured quantity.
    x_quantity: Option<Quantity>,
}

impl Axes {
    fn of(spec: &FigureSpec, chosen: &Chosen<'_>) -> Result<Axes, FigureError> {
        let values = |name: &String| chosen.values(spec, name);
        let is_axis = |name: &String| {
            let text = |r: &&Value| matches!(leaf::axis(r, name), Some(Value::String(_)));
            chosen.records.iter().any(|r| leaf::axis_names(r).contains(name)) || chosen.records.iter().any(text)
        };
        let mut x_axes = spec.x.clone();
        let mut x_quantity = None;
        if !chosen.records.is_empty() && !x_axes.iter().all(is_axis) {
            let x = Quantity::new(&spec.x[0], spec.labels.get(&spec.x[0]).map(String::as_str));
            if spec.x.len() > 1 || spec.kind != Kind::Line || !x.is_known(&chosen.records) {
                return Err(spec.error(format!(
                    "no record has an axis {}; a measured quantity can be x of kind = \"line\" only, and alone",
                    x_axes
                        .iter()
                        .filter(|name| !is_axis(name))
                        .map(|n| format!("`{n}`"))
                        .collect::<Vec<_>>()
                        .join(", ")
                )));
            }
            x_quantity = Some(x);
            x_axes.clear();
        }
        // A stack has its series side by side, as bars of their own.
        let mut series: Vec<AxisValues> = spec.series.iter().map(values).collect();
        let mut x: Vec<AxisValues> = x_axes.iter().map(values).collect();
        if spec.kind == Kind::Stacked {
            x.append(&mut series);
        }
        let panel = spec.panels.as_ref().filter(|_| !spec.panels_are_quantities()).map(values);
        Ok(Axes { panel, series, x, x_quantity })
    }

    /// Whether x is a number.
    fn is_numeric(&self, spec: &FigureSpec) -> bool {
        let numbers = |axis: &AxisValues| axis.values.iter().all(|value| value.number().is_some_and(f64::is_finite));
        self.x_quantity.is_some() || (spec.kind == Kind::Line && self.x.len() == 1 && self.x.iter().all(numbers))
    }

    fn category(&self, spec: &FigureSpec, chosen: &Chosen<'_>, place: &Place) -> String {
        let host = chosen.hosts.get(place.host).and_then(|(_, name)| name.clone());
        let one_number = self.x.len() == 1;
        let word = |(axis, at): (&AxisValues, &usize)| match axis.values.get(*at) {
            // Under an axis that has its name, the number is enough.
            Some(value @ AxisValue::Number(_)) if one_number => {
                spec.value_label(&axis.name, &value.text()).unwrap_or(value.text())
            }
            _ => axis.say(spec, *at),
        };
        let words = self.x.iter().zip(&place.x).filter(|(axis, _)| one_number || axis.values.len() > 1).map(word);
        spec.name_of(words.chain(host.filter(|_| spec.kind == Kind::Stacked)).collect())
    }

    /// Where a place stands on a numeric x.
    fn number(&self, place: &Place, runs: &[&Value]) -> Option<f64> {
        match &self.x_quantity {
            Some(quantity) => estimate(quantity, runs, 0).estimate.map(|estimate| estimate.median),
            None => self.x.first()?.values.get(*place.x.first()?)?.number(),
        }
    }

    /// What makes a category. Machines share one, except where each bar is a stack.
    fn category_key(&self, spec: &FigureSpec, place: &Place) -> (Vec<usize>, usize) {
        (place.x.clone(), if spec.kind == Kind::Stacked { place.host } else { 0 })
    }

    /// The x axis, and the keys of its categories.
    fn x_axis<V>(
        &self,
        spec: &FigureSpec,
        chosen: &Chosen<'_>,
        places: &BTreeMap<Place, V>,
    ) -> (XAxis, Vec<(Vec<usize>, usize)>) {
        let name = spec.x.first().map_or("", String::as_str);
        let quantity = match &self.x_quantity {
            Some(quantity) => quantity.clone(),
            None => {
                let unit = if self.is_numeric(spec) { quantity::axis_unit(name) } else { Unit::of_name("") };
                let word = |name: &String| match spec.labels.get(name) {
                    Some(label) => label.clone(),
                    None => unit.strip(name).replace('_', " "),
                };
                let label = spec.x.iter().map(word).collect::<Vec<_>>().join(", ");
                Quantity { name: name.to_owned(), label, unit }
            }
        };
        if self.is_numeric(spec) {
            let joined = self.x_quantity.is_none();
            return (XAxis { quantity, categories: None, joined }, Vec::new());
        }
        let mut keys: Vec<_> = places.keys().map(|place| (self.category_key(spec, place), place)).collect();
        keys.sort();
        keys.dedup_by(|a, b| a.0 == b.0);
        let names = keys.iter().map(|(_, place)| self.category(spec, chosen, place)).collect();
        (XAxis { quantity, categories: Some(names), joined: false }, keys.into_iter().map(|(key, _)| key).collect())
    }
}

/// The quantities of a figure, each known to some record.
pub(super) fn quantities(spec: &FigureSpec, chosen: &Chosen<'_>) -> Result<Vec<Quantity>, FigureError> {
    let quantities: Vec<Quantity> =
        spec.y.iter().map(|name| Quantity::new(name, spec.labels.get(name).map(String::as_str))).collect();
    for quantity in &quantities {
        if !chosen.records.is_empty() && !quantity.is_known(&chosen.records) {
            let mut known: Vec<String> = chosen.records.iter().flat_map(|r| leaf::quantity_names(r)).collect();
            known.extend(quantity::derived_names().map(str::to_owned));
            known.sort_unstable();
            known.dedup();
            return Err(spec.error(format!("no record has `{}`; there are {}", quantity.name, known.join(", "))));
        }
        if let Some((first, problem)) = quantities.first().zip(unlike(&quantities[0], quantity))
            && !spec.panels_are_quantities()
        {
            return Err(spec.error(format!(
                "`{}` and `{}` cannot share an axis ({problem}): use panels = \"quantity\"",
                first.name, quantity.name
            )));
        }
    }
    Ok(quantities)
}

fn unlike(a: &Quantity, b: &Quantity) -> Option<String> {
    let name = |q: &Quantity| if q.unit.text.is_empty() { "a count".to_owned() } else { q.unit.text.to_owned() };
    (a.unit != b.unit).then(|| format!("{} and {}", name(a), name(b)))
}

fn series_names(
    spec: &FigureSpec,
    chosen: &Chosen<'_>,
    axes: &Axes,
    keys: &[(Vec<usize>, usize)],
    quantities: &[Quantity],
    split: Split,
) -> Vec<SeriesName> {
    let alike = |mark| Look { color: mark, dash: mark, mark };
    if split == Split::Stack {
        return quantities
            .iter()
            .enumerate()
            .map(|(q, quantity)| SeriesName { name: quantity.label.clone(), look: alike(q) })
            .collect();
    }
    let as_series = if split == Split::Series { quantities } else { &quantities[..1] };
    let mut names = Vec::new();
    for (values, host) in keys {
        let mut words: Vec<String> = Vec::new();
        for (axis, at) in axes.series.iter().zip(values) {
            // What all series share goes without saying.
            if axis.values.len() > 1 || (axes.series.len() == 1 && as_series.len() == 1) {
                words.push(axis.say(spec, *at));
            }
        }
        // A label of nothing is how a specification leaves out what is usual.
        words.retain(|word| !word.is_empty());
        words.extend(chosen.hosts.get(*host).and_then(|(_, name)| name.clone()));
        for quantity in as_series {
            let mut words = words.clone();
            if as_series.len() > 1 || words.is_empty() {
                words.push(quantity.label.clone());
            }
            names.push(SeriesName { name: spec.name_of(words), look: alike(names.len()) });
        }
    }
    // The first axis shows as colour, what stands beside it as dash pattern.
    let colors = axes.series.first().map_or(1, |axis| axis.values.len());
    if spec.kind == Kind::Line && colors > 1 && colors < names.len() {
        let keys = keys.iter().flat_map(|(values, _)| std::iter::repeat_n(values, as_series.len()));
        let mut seen = vec![0; colors];
        for (at, (name, values)) in names.iter_mut().zip(keys).enumerate() {
            let color = values.first().copied().unwrap_or(0);
            if let Some(dash) = seen.get_mut(color) {
                name.look = Look { color, dash: *dash, mark: at };
                *dash += 1;
            }
        }
    }
    names
}

fn empty_panels(
    spec: &FigureSpec,
    axes: &Axes,
    quantities: &[Quantity],
    split: Split,
    series: usize,
) -> Result<Vec<Panel>, FigureError> {
    let lines: Vec<Line> = (0..series).map(|series| Line { series, points: Vec::new() }).collect();
    let panel = |title: Option<String>, y: Quantity| Panel { title, y, lines: lines.clone(), published: Vec::new() };
    let mut shared = quantities[0].clone();
    if quantities.len() > 1 {
        // The legend names the quantities; the axis can only say what they have in common.
        shared.label = if shared.unit.text.is_empty() { "count".to_owned() } else { "time".to_owned() };
        if !matches!(shared.unit.family, Family::Time | Family::Plain) {
            shared.label = shared.unit.text.to_owned();
            shared.unit = Unit::of_name("");
        }
    }
    if let Some(label) = &spec.y_label {
        shared.label = label.clone();
    }
    let panels: Vec<Panel> = match (split, &axes.panel) {
        (Split::Panels, _) => quantities.iter().map(|quantity| panel(None, quantity.clone())).collect(),
        (_, Some(axis)) => (0..axis.values.len().max(1))
            .map(|at| panel(Some(axis.say(spec, at)).filter(|title| !title.is_empty()), shared.clone()))
            .collect(),
        (_, None) => vec![panel(None, shared)],
    };
    if panels.len() > PANELS_MAX {
        return Err(spec.error(format!("there are {} panels, at most {PANELS_MAX} fit: use `filter`", panels.len())));
    }
    Ok(panels)
}

/// Why nothing can be drawn, where that is so.
pub(super) fn no_data(spec: &FigureSpec, chosen: &Chosen<'_>, data: &FigureData) -> Option<String> {
    if data.points().any(|point| point.estimate.is_some() && point.at.is_some()) {
        return None;
    }
    if chosen.records.is_empty() {
        let filter: Vec<&str> = spec.filter.keys().map(String::as_str).collect();
        return Some(match filter.as_slice() {
            [] => "there are no records".to_owned(),
            axes => format!("no record passes the filter on {}", axes.join(", ")),
        });
    }
    let reason = data.points().find_map(|point| point.reason.clone());
    Some(reason.unwrap_or_else(|| "x was not measured".to_owned()))
}
