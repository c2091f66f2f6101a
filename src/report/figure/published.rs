//! Published values: looked up in the file of published figures and set beside what was measured.

use serde_json::Value;

use super::cells::AxisValues;
use super::data::{AxisValue, FigureData, Line, Mark};
use super::error::FigureError;
use super::quantity::drawable;
use super::spec::{FigureSpec, Published, Reference};

/// Puts the published values of a figure into its panels.
///
/// # Errors
/// [`FigureError::Spec`] for a key that the file does not have, or an x that stands nowhere on the axis. A series or panel
/// that the records do not have is a warning: a part of a campaign has its figures too, and the published value has
/// nothing to stand beside.
pub(super) fn place(
    spec: &FigureSpec,
    file: Option<&Value>,
    panel_axis: Option<&AxisValues>,
    data: &mut FigureData,
) -> Result<(), FigureError> {
    let mut labels: Vec<String> = Vec::new();
    for reference in &spec.reference {
        let text = match &reference.label {
            Some(label) => format!("published: {label}"),
            None => "published".to_owned(),
        };
        let label = labels.iter().position(|known| *known == text).unwrap_or_else(|| {
            labels.push(text.clone());
            labels.len() - 1
        });
        let quantity = reference.quantity.as_ref().and_then(|name| spec.y.iter().position(|y| y == name)).unwrap_or(0);
        let (x, at) = position(spec, reference, data)?;
        let series = match &reference.series {
            None => only_series(data, quantity),
            Some(name) => match series(name, data) {
                Ok(series) => Some(series),
                Err(missing) => {
                    data.warnings.push(missing);
                    continue;
                }
            },
        };
        let mark = Mark { x, at, quantity, ends: ends(spec, reference, file)?, label, text, series };
        let panels = match panels(spec, reference, panel_axis, data, quantity)? {
            Ok(panels) => panels,
            Err(missing) => {
                data.warnings.push(missing);
                continue;
            }
        };
        for panel in panels {
            if let Some(panel) = data.panels.get_mut(panel) {
                panel.published.push(mark.clone());
            }
        }
    }
    Ok(())
}

/// Where it stands on x.
fn position(spec: &FigureSpec, reference: &Reference, data: &FigureData) -> Result<(String, Option<f64>), FigureError> {
    let value = AxisValue::from(&reference.x);
    match (&data.x.categories, &value) {
        (Some(names), _) => {
            let text = value.text();
            let shown = spec.x.first().and_then(|axis| spec.value_label(axis, &text)).unwrap_or_else(|| text.clone());
            let at = names.iter().position(|name| *name == text || *name == shown);
            // A category without runs is not on the axis: the published value alone has nothing to stand beside.
            Ok((text, at.map(|at| at as f64)))
        }
        (None, AxisValue::Number(number)) => Ok((value.text(), drawable(*number))),
        (None, other) => {
            Err(spec.error(format!("a `reference` has x = \"{}\", and x is a number in this figure", other.text())))
        }
    }
}

/// The series of this name, or that there is none.
fn series(name: &str, data: &FigureData) -> Result<usize, String> {
    data.series.iter().position(|series| series.name == name).ok_or_else(|| {
        let known: Vec<&str> = data.series.iter().map(|series| series.name.as_str()).collect();
        format!("a published value is left out: it belongs to the series `{name}`, and there are {}", known.join("; "))
    })
}

/// The series of a quantity, where there are several quantities and one series of this one.
fn only_series(data: &FigureData, quantity: usize) -> Option<usize> {
    let lines = || data.panels.iter().flat_map(|panel| &panel.lines);
    let is_of = |line: &&Line| line.points.iter().any(|point| point.quantity == quantity);
    let series = lines().find(is_of)?.series;
    let is_only = lines().filter(is_of).all(|line| line.series == series);
    let has_others = lines().any(|line| line.series != series);
    (is_only && has_others).then_some(series)
}

/// The panels that a value belongs to, or that the figure does not have the one.
fn panels(
    spec: &FigureSpec,
    reference: &Reference,
    axis: Option<&AxisValues>,
    data: &FigureData,
    quantity: usize,
) -> Result<Result<Vec<usize>, String>, FigureError> {
    match (&reference.panel, axis) {
        _ if spec.panels_are_quantities() => Ok(Ok(vec![quantity])),
        (None, _) => Ok(Ok((0..data.panels.len()).collect())),
        (Some(panel), Some(axis)) => Ok(match axis.values.iter().position(|value| value.is(panel)) {
            Some(at) => Ok(vec![at]),
            None => {
                let known: Vec<String> = axis.values.iter().map(AxisValue::text).collect();
                let panel = AxisValue::from(panel).text();
                let known = known.join(", ");
                Err(format!("a published value is left out: it belongs to the panel `{panel}`, and there are {known}"))
            }
        }),
        (Some(_), None) => Err(spec.error("a `reference` has `panel`, and the figure has no `panels`")),
    }
}

fn ends(spec: &FigureSpec, reference: &Reference, file: Option<&Value>) -> Result<(f64, f64), FigureError> {
    let (low, high) = match (reference.y, &reference.key) {
        (Some(Published::Value(y)), _) => (y, y),
        (Some(Published::Range([low, high])), _) => (low, high),
        (None, Some(key)) => look_up(file, key).map_err(|problem| spec.error(problem))?,
        (None, None) => return Err(spec.error("a `reference` needs `y` or `key`")),
    };
    match (drawable(low), drawable(high)) {
        (Some(low), Some(high)) if low <= high => Ok((low, high)),
        (Some(low), Some(high)) => {
            Err(spec.error(format!("a `reference` has the range {low} to {high}: lower end first")))
        }
        _ => Err(spec.error(format!("a `reference` has {low} to {high}, which cannot be drawn"))),
    }
}

/// The number or the two ends of a range under a dotted key.
fn look_up(file: Option<&Value>, key: &str) -> Result<(f64, f64), String> {
    let mut value = file.ok_or_else(|| {
        format!("a `reference` has key `{key}`, and there is no file of published figures; give `y` instead")
    })?;
    for part in key.split('.') {
        let next = match value {
            Value::Object(table) => table.get(part),
            Value::Array(list) => part.parse::<usize>().ok().and_then(|at| list.get(at)),
            _ => None,
        };
        value = next.ok_or_else(|| {
            let known = match value {
                Value::Object(table) => table.keys().cloned().collect::<Vec<_>>().join(", "),
                Value::Array(list) => format!("0 to {}", list.len().saturating_sub(1)),
                _ => "nothing below it".to_owned(),
            };
            format!("the published figures have no `{key}`: at `{part}` there are {known}")
        })?;
    }
    let number = |value: &Value| value.as_f64();
    match value {
        Value::Array(list) => match list.as_slice() {
            [low, high] => number(low).zip(number(high)),
            _ => None,
        },
        value => number(value).map(|value| (value, value)),
    }
    .ok_or_else(|| {
        format!("published figure `{key}` is neither a number nor a range of two: name one, as in `{key}.0`")
    })
}
