//! Several folders of one campaign, put together: each machine's records stay its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::campaign::{Campaign, RunId, Source};
use super::folder::{self, EXPERIMENT_FILE, Folder, FolderError};
use super::record::Record;
use super::records::Problem;

/// Why folders cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Two folders are of different experiments.
    #[error("{} and {} are of different experiments: {}", .first.display(), .other.display(), .what.join("; "))]
    Different {
        /// The first folder.
        first: PathBuf,
        /// The folder that does not fit.
        other: PathBuf,
        /// What differs, in words.
        what: Vec<String>,
    },
    /// A run was made twice, with different outcomes.
    #[error("{run} was made twice: in {} and in {}", .first.display(), .other.display())]
    Twice {
        /// The run.
        run: RunId,
        /// Where it was met first.
        first: PathBuf,
        /// Where it was met again.
        other: PathBuf,
    },
    /// There is something in the new folder.
    #[error("{} holds a campaign already", .0.display())]
    Exists(PathBuf),
}

impl MergeError {
    /// What to do.
    pub fn help(&self) -> &'static str {
        match self {
            MergeError::Folder(error) => error.help(),
            MergeError::Different { .. } => {
                "merge the shards of one plan; `ioscope compare` sets two campaigns side by side"
            }
            MergeError::Twice { .. } => "which of the two counts is yours to say: leave one of the folders out",
            MergeError::Exists(_) => "--out names a new folder",
        }
    }
}

/// What came of a merge.
#[derive(Debug)]
pub struct Merged {
    /// The campaign of the new folder.
    pub campaign: Campaign,
    /// Records that it holds.
    pub records: usize,
    /// Records by host; `None` is a host that could not be told.
    pub hosts: BTreeMap<Option<String>, usize>,
    /// Runs of the plan of which there is no record.
    pub missing: Vec<RunId>,
    /// What is wrong with lines that were skipped, by folder.
    pub problems: Vec<(PathBuf, Problem)>,
    /// What a reader of the results has to know.
    pub warnings: Vec<String>,
}

/// One of the folders.
struct Part {
    folder: PathBuf,
    campaign: Campaign,
    records: Vec<Record>,
}

/// Puts `folders`, of which there is at least one, together in the new folder `out`.
pub fn merge(folders: &[PathBuf], out: &Path, now_unix_s: u64) -> Result<Merged, MergeError> {
    let mut problems = Vec::new();
    let parts = folders.iter().map(|path| part(path, &mut problems)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = parts.first() else { return Err(FolderError::NoCampaign(PathBuf::new()).into()) };
    let mut warnings = Vec::new();
    for other in &parts[1..] {
        check_same(first, other, &mut warnings)?;
    }
    let records = union(&parts)?;
    let missing = first.campaign.plan.order.iter().filter(|run| !records.contains_key(*run)).cloned().collect();

    let text_file = first.folder.join(EXPERIMENT_FILE);
    let text = std::fs::read_to_string(&text_file).map_err(|source| FolderError::Io {
        doing: "read",
        path: text_file.clone(),
        source,
    })?;
    let campaign = Campaign {
        shard: None,
        changes: Vec::new(),
        sources: parts.iter().flat_map(Part::sources).collect(),
        created_unix_s: now_unix_s,
        ..first.campaign.clone()
    };
    // In the order of the folders: within each, that of time.
    let mut ordered = Vec::new();
    let mut hosts = BTreeMap::new();
    let mut left = records;
    for record in parts.iter().flat_map(|part| &part.records) {
        if left.remove(&RunId::of(record)).is_some() {
            *hosts.entry(record.environment.host.clone()).or_insert(0) += 1;
            ordered.push(record.clone());
        }
    }
    if folder::read_campaign(out)?.is_some() {
        return Err(MergeError::Exists(out.to_owned()));
    }
    let mut folder = Folder::lock(out)?;
    // Records first: a folder without a plan is none, so a merge that was killed leaves nothing that looks whole.
    folder.write_merged(&text, &campaign, &ordered)?;
    Ok(Merged { campaign, records: ordered.len(), hosts, missing, problems, warnings })
}

fn part(path: &Path, problems: &mut Vec<(PathBuf, Problem)>) -> Result<Part, MergeError> {
    folder::check_unused(path)?;
    let campaign = folder::read_campaign(path)?.ok_or_else(|| FolderError::NoCampaign(path.to_owned()))?;
    let read = folder::read_records(path)?;
    problems.extend(read.problems.into_iter().map(|problem| (path.to_owned(), problem)));
    Ok(Part { folder: path.to_owned(), campaign, records: read.records })
}

impl Part {
    /// Where its records come from: of a merged folder, from its own sources.
    fn sources(&self) -> Vec<Source> {
        if !self.campaign.sources.is_empty() {
            return self.campaign.sources.clone();
        }
        vec![Source {
            folder: self.folder.to_string_lossy().into_owned(),
            shard: self.campaign.shard,
            made_with: self.campaign.made_with.clone(),
            changes: self.campaign.changes.clone(),
            records: self.records.len(),
        }]
    }
}

/// Whether two folders measured the same thing; what may differ is noted.
fn check_same(first: &Part, other: &Part, warnings: &mut Vec<String>) -> Result<(), MergeError> {
    let (a, b) = (&first.campaign, &other.campaign);
    let mut what = Vec::new();
    if a.about.name != b.about.name {
        what.push(format!("'{}' and '{}'", a.about.name, b.about.name));
    } else if a.experiment_digest != b.experiment_digest {
        what.push("their files differ".to_owned());
    }
    if a.plan_digest != b.plan_digest {
        what.extend(
            a.plan
                .changes_to(&b.plan)
                .into_iter()
                .map(|change| change.replace(" then, ", " in the first, ").replace(" now", " in the other")),
        );
    }
    what.extend(a.made_with.data.content_changes_to(&b.made_with.data));
    if !what.is_empty() {
        return Err(MergeError::Different { first: first.folder.clone(), other: other.folder.clone(), what });
    }
    if a.made_with.binary_digest != b.made_with.binary_digest {
        let (first, other) = (first.folder.display(), other.folder.display());
        warnings.push(format!("{first} and {other} were made with different programs: see `sources` in campaign.json"));
    }
    Ok(())
}

/// Where each run was made; the same record twice counts once.
fn union(parts: &[Part]) -> Result<BTreeMap<RunId, (&Path, &Record)>, MergeError> {
    let mut records: BTreeMap<RunId, (&Path, &Record)> = BTreeMap::new();
    for part in parts {
        for record in &part.records {
            let run = RunId::of(record);
            match records.get(&run) {
                Some((first, known)) if *known != record => {
                    return Err(MergeError::Twice { run, first: first.to_path_buf(), other: part.folder.clone() });
                }
                Some(_) => {}
                None => {
                    records.insert(run, (&part.folder, record));
                }
            }
        }
    }
    Ok(records)
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
