//! A figure as data: one `[[figure]]` table of an experiment's file.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::error::FigureError;

/// Least and greatest height of a figure, in millimetres.
const HEIGHT_MM: std::ops::RangeInclusive<f64> = 30.0..=240.0;
/// Most quantities of one figure.
const QUANTITIES_MAX: usize = 8;

/// What a figure shows, of which runs, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Name of its files, without extension: letters, digits, `-` and `_`.
    pub name: String,
    /// A short title, drawn above it.
    pub title: String,
    /// The caption that goes below it in a text; not drawn.
    #[serde(default)]
    pub caption: String,
    /// How the data are drawn.
    pub kind: Kind,
    /// Axes of `asked` (several are joined into categories), or one measured quantity. Not for a timeline.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub x: Vec<String>,
    /// Quantities: leaf names of the record, dotted paths where a leaf name is not unique, or derived ones such as
    /// `merged_percent`. For a timeline: names in the samples, one panel each.
    #[serde(deserialize_with = "one_or_many")]
    pub y: Vec<String>,
    /// Axes of `asked` whose values become series.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// Axis to the values that are shown, in the order in which they are shown. `"null"` means not asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, Values>,
    /// An axis, or `quantity`, that splits the figure into small multiples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panels: Option<String>,
    /// Logarithmic x (to base 2 where all values are powers of two). A zero stands apart, left of a break in the axis.
    #[serde(default)]
    pub log_x: bool,
    /// Logarithmic y. A zero stands apart, below a break in the axis.
    #[serde(default)]
    pub log_y: bool,
    /// Label of the x axis, without the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_label: Option<String>,
    /// Label of the y axis, without the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_label: Option<String>,
    /// Unit of x: one that the quantity can be converted to, or any text for an axis of `asked` or a bare count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_unit: Option<String>,
    /// Unit of y: one that the quantity can be converted to, or any text for a bare count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_unit: Option<String>,
    /// What is written for a value of an axis, for an axis or for a quantity: `uring-sqpoll = "SQPOLL"`. A value that
    /// stands on several axes can be named with its axis: `"cpus=0" = "one CPU"`. An empty text leaves it out of a name. A
    /// name that several axes make together can be given another one as a whole: `"SQPOLL, second CPU" = "SQPOLL, own CPU"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Published values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference: Vec<Reference>,
    /// Width on paper.
    #[serde(default)]
    pub width: Width,
    /// Height on paper, in millimetres, 30 to 240; by default what the panels need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height_mm: Option<f64>,
    /// The run that a timeline shows; by default the one whose wall time is the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// A line that is stamped on the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How data are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Points, joined by lines where x is a number. Those of one x whose error bars would cover each other
    /// stand side by side.
    Line,
    /// A bar for each point, those of one x side by side.
    Bars,
    /// One bar for each x (and series), made of all the quantities.
    Stacked,
    /// The samples of one run over time, one panel for each quantity.
    Timeline,
}

/// Width on paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// One column: 85 mm.
    #[default]
    Column,
    /// The page: 178 mm.
    Page,
}

impl Width {
    /// In millimetres.
    pub fn mm(self) -> f64 {
        match self {
            Width::Column => 85.0,
            Width::Page => 178.0,
        }
    }
}

/// A value of an axis, as it is written in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
}

/// One value or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// One.
    One(Scalar),
    /// Several.
    Many(Vec<Scalar>),
}

impl Values {
    /// All of them.
    pub fn all(&self) -> &[Scalar] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Many(values) => values,
        }
    }
}

/// A published value, in the quantity's own unit (that of its leaf name).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Where it stands on x: a number, or the value of the x axis (several axes: what is
    /// written below the bar).
    pub x: Scalar,
    /// The value, or the two ends of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<Published>,
    /// Where the value stands in the file of published figures, for instance `article.readahead.window_32.sqes`; the
    /// first of a list is `NAME.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What is published, for the legend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The quantity it is a value of; needed where the figure shows several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// The name of the series, as in the legend, that it is to be compared with: it takes its colour, and among bars its place.
    /// By default that of its quantity, where that has one series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// The value of the panels' axis whose panel it belongs to; by default every panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<Scalar>,
}

/// A published number or range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Published {
    /// A number.
    Value(f64),
    /// Lower and upper end.
    Range([f64; 2]),
}

impl FigureSpec {
    /// Checks what can be known without records.
    ///
    /// # Errors
    /// [`FigureError::Spec`], with what to write instead.
    pub fn check(&self) -> Result<(), FigureError> {
        let Some(problem) = self.problem() else { return Ok(()) };
        Err(self.error(problem))
    }

    /// An error of this figure.
    pub(super) fn error(&self, problem: impl Into<String>) -> FigureError {
        FigureError::Spec { figure: self.name.clone(), problem: problem.into() }
    }

    /// What is written for a value of an axis, where the specification says.
    pub(super) fn value_label(&self, axis: &str, value: &str) -> Option<String> {
        self.labels.get(&format!("{axis}={value}")).or_else(|| self.labels.get(value)).cloned()
    }

    /// The name that several words make: those that are not empty, or what the specification says of them as a whole.
    pub(super) fn name_of(&self, words: Vec<String>) -> String {
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let name = words.join(", ");
        self.labels.get(&name).cloned().unwrap_or(name)
    }

    /// Whether panels are quantities.
    pub(super) fn panels_are_quantities(&self) -> bool {
        self.kind == Kind::Timeline || self.panels.as_deref() == Some("quantity")
    }

    fn problem(&self) -> Option<String> {
        let say = |text: &str| Some(text.to_owned());
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || self.name.len() > 100 || !self.name.chars().all(plain) {
            return say("`name` becomes a file's name: use 1 to 100 letters, digits, `-` and `_`");
        }
        if self.y.is_empty() || self.y.len() > QUANTITIES_MAX {
            return Some(format!("`y` names {} quantities: name 1 to {QUANTITIES_MAX}", self.y.len()));
        }
        if let Some(height) = self.height_mm
            && !HEIGHT_MM.contains(&height)
        {
            return Some(format!("`height_mm` is {height}: use {} to {}", HEIGHT_MM.start(), HEIGHT_MM.end()));
        }
        if self.kind == Kind::Timeline {
            if !self.x.is_empty() || self.panels.is_some() || self.log_x || !self.reference.is_empty() {
                return say("a timeline has time for x and a panel for each y: leave out `x`, `panels`, `log_x` and \
                            `reference`");
            }
        } else if self.x.is_empty() {
            return say("`x` is missing: name an axis such as `window`, or a measured quantity");
        }
        if matches!(self.kind, Kind::Bars | Kind::Stacked) && (self.log_x || self.log_y) {
            return say(
                "a bar's length means nothing on a logarithmic axis: use kind = \"line\", or leave out `log_x` \
                        and `log_y`",
            );
        }
        if self.kind == Kind::Stacked && (self.panels_are_quantities() || !self.reference.is_empty()) {
            return say("stacked bars are made of the quantities: `panels` must be an axis, and `reference` be empty");
        }
        if self.run.is_some() && self.kind != Kind::Timeline {
            return say("`run` is for kind = \"timeline\" only: other kinds show all runs of a cell");
        }
        self.reference.iter().find_map(|reference| self.problem_of_reference(reference))
    }

    fn problem_of_reference(&self, reference: &Reference) -> Option<String> {
        if reference.y.is_some() == reference.key.is_some() {
            return Some("a `reference` needs either `y` or `key`, and not both".to_owned());
        }
        match &reference.quantity {
            Some(name) if !self.y.contains(name) => {
                Some(format!("a `reference` has quantity `{name}`, which is not in `y` ({})", self.y.join(", ")))
            }
            None if self.y.len() > 1 => Some(format!("a `reference` needs `quantity`, one of {}", self.y.join(", "))),
            _ => None,
        }
    }
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a name or a list of names")]
    enum Names {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::Many(names) => names,
    })
}
