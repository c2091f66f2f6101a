//! A folder of results, read: the campaign, its runs, and the b-trees of the database.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::run::{LineError, Run};
use crate::measure::environment::Environment;
use crate::workload::btrees::Btrees;

/// Newest layout of `campaign.json` that is understood.
pub const CAMPAIGN_SCHEMA_MAX: u64 = 1;
/// The campaign's file within its folder.
pub const CAMPAIGN_FILE: &str = "campaign.json";
/// The records within the folder.
pub const RUNS_FILE: &str = "runs.jsonl";

/// What a report needs of `campaign.json`; whatever else is in it does not matter here, and what an older
/// version did not write is left at its default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Campaign {
    /// Version of the layout.
    pub schema: u64,
    /// What is said about the experiment.
    pub about: About,
    /// Digest of the experiment's file.
    pub experiment_digest: String,
    /// Digest of the plan.
    pub plan_digest: String,
    /// What is measured, and in which order.
    pub plan: Plan,
    /// What the command line said instead of the experiment's file.
    pub overrides: Overrides,
    /// What the runs were made with.
    pub made_with: MadeWith,
    /// Changes that were accepted on the way.
    pub changes: Vec<Change>,
    /// Folders that were merged into this one.
    pub sources: Vec<Source>,
}

/// What the command line said instead of the experiment's file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// Made for a look only.
    pub quick: bool,
    /// Timed runs of each cell.
    pub runs: Option<u32>,
    /// Scale of the data set.
    pub scale: Option<f64>,
}

impl Campaign {
    /// What report and figures of a campaign say that was made for a look only; `None` for any other.
    pub fn quick_mark(&self) -> Option<String> {
        let Overrides { quick, runs, scale } = &self.overrides;
        let scale = scale.map_or_else(String::new, |scale| format!(", scale {scale}"));
        let runs = runs.map_or_else(String::new, |runs| format!(", {runs} runs"));
        quick.then(|| format!("quick look{scale}{runs}: no result"))
    }
}

/// What is said about an experiment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// What is expected, and why.
    pub hypothesis: Option<String>,
    /// Published values that it is set beside.
    pub reference: Vec<Reference>,
    /// The figures to draw, as its file describes them.
    pub figures: Vec<Value>,
}

/// One section of the published values.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// Its path, such as `article.readahead`.
    pub section: String,
    /// Its values.
    pub values: Value,
    /// What the publication says of itself.
    pub source: Value,
}

/// What is measured, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// The data that is asked, in words.
    pub data: String,
    /// What is asked.
    pub workload: Value,
    /// Which runs are counted: `none`, `all` or `both`.
    pub counters: String,
    /// Time between two samples of a run, in milliseconds.
    pub sample: Option<u64>,
    /// Rounds that are made first and kept apart.
    pub warmup: u32,
    /// Seed of the order, and of the bootstrap.
    pub seed: u64,
    /// How long a run may take, in seconds.
    pub timeout_s: Option<f64>,
    /// The cells, in order.
    pub cells: Vec<PlannedCell>,
    /// What is left out, and why.
    pub left_out: Vec<LeftOut>,
    /// Which cells are set against which.
    pub ratios: Vec<Pairs>,
    /// All runs.
    pub order: Vec<RunId>,
}

/// One cell of the plan.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PlannedCell {
    /// Its name.
    pub name: String,
    /// Timed runs (counted ones, where every run is counted).
    pub runs: u32,
}

/// What is left out of the plan.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// The values that do not go together.
    pub what: String,
    /// Why.
    pub why: String,
}

/// Cells that are set against others.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Pairs {
    /// What the quotients show.
    pub title: String,
    /// Each cell with its baseline.
    pub pairs: Vec<Pair>,
}

/// A cell and the one that it is compared with.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Pair {
    /// The numerator's name.
    pub cell: String,
    /// The denominator's name.
    pub baseline: String,
}

/// What a planned run is known by.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct RunId {
    /// The cell's name.
    pub cell: String,
    /// The run's number.
    pub run: u32,
    /// Whether counters are on.
    pub counted: bool,
}

/// What the runs were made with.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MadeWith {
    /// Version of ioscope.
    pub ioscope_version: String,
    /// Digest of the program's file.
    pub binary_digest: String,
    /// The database.
    pub data: DataIdentity,
    /// The machine and its settings.
    pub environment: Environment,
}

/// By what a database is known again.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DataIdentity {
    /// Its path, for people.
    pub path: String,
    /// What made it, where that is known.
    pub manifest: Option<BTreeMap<String, Value>>,
    /// Size, in bytes.
    pub size_bytes: u64,
    /// Counter of committed changes in its header.
    pub change_counter: Option<u32>,
}

/// A change that was accepted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Change {
    /// Records that were there before it.
    pub records_before: usize,
    /// What changed, in words.
    pub what: Vec<String>,
}

/// A folder that was merged.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Source {
    /// Its path, for people.
    pub folder: String,
    /// What its runs were made with.
    pub made_with: MadeWith,
    /// Changes that were accepted there.
    pub changes: Vec<Change>,
    /// Records that came from it.
    pub records: usize,
}

/// A folder of results.
#[derive(Debug, Clone, Default)]
pub struct Study {
    /// The campaign.
    pub campaign: Campaign,
    /// Its runs, in the order in which they ended.
    pub runs: Vec<Run>,
    /// Lines that are no runs: their numbers from 1, and why.
    pub skipped: Vec<(usize, String)>,
    /// The b-trees of the database.
    pub btrees: Option<Btrees>,
    /// Why `btrees` is missing or not to be used.
    pub btrees_missing: Option<String>,
}

/// Why there is nothing to report on.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// No folder.
    #[error("{} is no folder; `ioscope run FILE.toml` makes one and says where", .0.display())]
    NoFolder(PathBuf),
    /// A file is missing.
    #[error("{} has no {name}, so it holds no campaign; `ioscope run FILE.toml` makes one", .folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The file.
        name: &'static str,
    },
    /// The system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {what}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl Study {
    /// Reads a folder.
    ///
    /// # Errors
    /// [`StudyError`]. A line of the records that cannot be read is no error: it is kept in `skipped`.
    pub fn load(folder: &Path) -> Result<Study, StudyError> {
        if !folder.is_dir() {
            return Err(StudyError::NoFolder(folder.to_owned()));
        }
        let (campaign, runs) = (read(folder, CAMPAIGN_FILE)?, read(folder, RUNS_FILE)?);
        let mut study = Study::parse(&campaign, &runs)
            .map_err(|(name, what)| StudyError::Content { path: folder.join(name), what })?;
        match Btrees::load(folder) {
            Ok(Some(btrees)) => study.take(btrees),
            Ok(None) => study.btrees_missing = Some("the folder has no btrees.json".to_owned()),
            Err(error) => study.btrees_missing = Some(error.to_string()),
        }
        Ok(study)
    }

    /// Reads the contents of the two files; the error names the file and what is wrong with it.
    fn parse(campaign: &[u8], runs: &[u8]) -> Result<Study, (&'static str, String)> {
        let campaign = parse_campaign(campaign).map_err(|what| (CAMPAIGN_FILE, what))?;
        let (runs, skipped) = parse_runs(runs, &campaign.about.name).map_err(|what| (RUNS_FILE, what))?;
        Ok(Study { campaign, runs, skipped, ..Study::default() })
    }

    /// Keeps a map of b-trees that is of the database that was asked.
    fn take(&mut self, btrees: Btrees) {
        let asked =
            self.runs.iter().filter_map(|run| run.environment.file_bytes).find(|bytes| *bytes != btrees.file_bytes);
        match asked {
            Some(bytes) => {
                let of = btrees.file_bytes;
                self.btrees_missing =
                    Some(format!("btrees.json is of a database of {of} bytes, and the runs asked one of {bytes}"));
            }
            None => self.btrees = Some(btrees),
        }
    }

    /// Planned runs of which there is no record.
    pub fn missing_runs(&self) -> Vec<&RunId> {
        let made: BTreeSet<(&str, u32, bool)> =
            self.runs.iter().map(|run| (run.cell.as_str(), run.run, run.counted)).collect();
        self.campaign.plan.order.iter().filter(|id| !made.contains(&(id.cell.as_str(), id.run, id.counted))).collect()
    }
}

/// The records of a study as they stand in its folder, without the lines that were skipped and without their longest
/// lists, which no figure shows.
///
/// # Errors
/// [`StudyError`]: the file has gone since the study was read.
pub fn values(folder: &Path, study: &Study) -> Result<Vec<Value>, StudyError> {
    let text = read(folder, RUNS_FILE)?;
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    let kept = lines.filter(|(index, _)| !study.skipped.iter().any(|(line, _)| *line == index + 1));
    let mut values: Vec<Value> = kept.filter_map(|(_, line)| serde_json::from_slice(line).ok()).collect();
    for pages in values.iter_mut().filter_map(|value| value.get_mut("pages")?.as_object_mut()) {
        pages.remove("pages_wasted_ranges");
    }
    Ok(values)
}

fn read(folder: &Path, name: &'static str) -> Result<Vec<u8>, StudyError> {
    let path = folder.join(name);
    std::fs::read(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => StudyError::Missing { folder: folder.to_owned(), name },
        _ => StudyError::Io { path, source },
    })
}

fn parse_campaign(text: &[u8]) -> Result<Campaign, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("it is no JSON: {error}"))?;
    match value.get("schema").and_then(Value::as_u64) {
        None => return Err("it has no `schema`, so it is no campaign of ioscope's".to_owned()),
        Some(schema) if schema > CAMPAIGN_SCHEMA_MAX => {
            return Err(format!(
                "its schema is {schema}, and this ioscope knows {CAMPAIGN_SCHEMA_MAX}: use a newer ioscope"
            ));
        }
        Some(_) => {}
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

type Lines = (Vec<Run>, Vec<(usize, String)>);

fn parse_runs(text: &[u8], experiment: &str) -> Result<Lines, String> {
    let (mut runs, mut skipped): Lines = Default::default();
    let mut seen: BTreeMap<(String, u32, bool, Option<String>), usize> = BTreeMap::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match Run::parse(line) {
            Err(LineError::Newer(schema)) => return Err(format!("line {number}: {}", LineError::Newer(schema))),
            Err(LineError::Malformed(what)) => skipped.push((number, what)),
            Ok(run) if run.experiment != experiment => {
                skipped.push((number, format!("it is of experiment '{}', not '{experiment}'", run.experiment)));
            }
            Ok(run) => {
                let id = (run.cell.clone(), run.run, run.counted, run.environment.host.clone());
                let first = *seen.entry(id).or_insert(number);
                if first == number {
                    runs.push(run);
                } else {
                    skipped.push((number, format!("it repeats run {} of {} in line {first}", run.run, run.cell)));
                }
            }
        }
    }
    Ok((runs, skipped))
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::record::Record;

    /// A study as it would be read from these files.
    pub(in crate::report) fn study(campaign: &Value, records: &[Record], btrees: Option<Btrees>) -> Study {
        let lines: Vec<String> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let mut study = Study::parse(campaign.to_string().as_bytes(), lines.join("\n").as_bytes()).unwrap();
        btrees.into_iter().for_each(|btrees| study.take(btrees));
        study
    }

    fn folder(campaign: &str, runs: &[u8]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(CAMPAIGN_FILE), campaign).unwrap();
        std::fs::write(folder.path().join(RUNS_FILE), runs).unwrap();
        folder
    }

    const CAMPAIGN: &str = r#"{"schema": 1, "about": {"name": "e"}, "of a later version": {}}"#;

    #[test]
    fn lines_that_are_no_runs_are_skipped_and_told() {
        let record = crate::experiment::record::tests::blank();
        let line = serde_json::to_string(&record).unwrap();
        let other = line.replace(r#""experiment":"e""#, r#""experiment":"f""#);
        let second = line.replace(r#""run":1"#, r#""run":2"#);
        let mut text = format!("{line}\n{}\n\n{line}\n{other}\n{second}", &line[..99]).into_bytes();
        text.extend_from_slice(b"\n\xff\xfe\n");
        let study = Study::load(folder(CAMPAIGN, &text).path()).unwrap();
        assert_eq!(study.runs.iter().map(|run| run.run).collect::<Vec<_>>(), [1, 2]);
        let skipped: Vec<(usize, &str)> = study.skipped.iter().map(|(line, why)| (*line, why.as_str())).collect();
        assert_eq!(
            skipped[..3],
            [
                (2, "it is cut: the JSON ends early"),
                (4, "it repeats run 1 of sqlite-uring-w32 in line 1"),
                (5, "it is of experiment 'f', not 'e'"),
            ]
        );
        assert!(skipped[3].0 == 7 && skipped.len() == 4, "{skipped:?}");
    }

    #[test]
    fn what_is_newer_or_missing_is_an_error_that_says_so() {
        let record = serde_json::to_string(&crate::experiment::record::tests::blank()).unwrap();
        let newer = record.replace(r#""schema":1"#, r#""schema":99"#);
        let error = |folder: &Path| Study::load(folder).unwrap_err().to_string();
        let text = error(folder(CAMPAIGN, newer.as_bytes()).path());
        assert!(
            text.ends_with("runs.jsonl: line 1: its schema is 99, and this ioscope knows 1: use a newer ioscope"),
            "{text}"
        );
        let text = error(folder(r#"{"schema": 2}"#, b"").path());
        assert!(text.contains("campaign.json: its schema is 2"), "{text}");
        assert!(error(folder("{}", b"").path()).contains("it has no `schema`"));
        assert!(error(folder("[", b"").path()).contains("campaign.json: it is no JSON"));
        assert!(error(folder(r#"{"schema": 1, "plan": 7}"#, b"").path()).contains("campaign.json: invalid type"));
        assert!(error(Path::new("/nowhere/at/all")).contains("is no folder"));
        let empty = tempfile::tempdir().unwrap();
        assert!(error(empty.path()).contains("has no campaign.json"));
        std::fs::write(empty.path().join(CAMPAIGN_FILE), CAMPAIGN).unwrap();
        assert!(error(empty.path()).contains("has no runs.jsonl"));
    }

    #[test]
    fn a_map_of_another_database_is_not_used() {
        let mut record = crate::experiment::record::tests::blank();
        record.environment.file_bytes = Some(8192);
        let campaign: Value = serde_json::from_str(CAMPAIGN).unwrap();
        let btrees = Btrees { schema: 1, file_bytes: 4096, page_size_bytes: 4096, btrees: Vec::new() };
        let refused = study(&campaign, std::slice::from_ref(&record), Some(btrees.clone()));
        assert!(refused.btrees.is_none() && refused.btrees_missing.unwrap().contains("4096 bytes"));
        let taken = study(&campaign, &[record], Some(Btrees { file_bytes: 8192, ..btrees }));
        assert!(taken.btrees.is_some() && taken.btrees_missing.is_none());
    }
}
