//! A campaign's folder: locked by the runner at work, and written so that no kill and no full disk leaves anything half.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::campaign::{CAMPAIGN_SCHEMA, Campaign};
use super::record::Record;
use super::records::{self, Flaw, Records};

/// The experiment's file, byte for byte.
pub const EXPERIMENT_FILE: &str = "experiment.toml";
/// The plan, and what it is carried out with.
pub const CAMPAIGN_FILE: &str = "campaign.json";
/// The records.
pub const RUNS_FILE: &str = "runs.jsonl";
/// Records of warm-up runs.
pub const WARMUP_FILE: &str = "warmup.jsonl";
/// Records of failed runs that were made again.
pub const FAILED_FILE: &str = "failed.jsonl";
/// Bytes of lines that were cut.
pub const TORN_FILE: &str = "runs.torn";
/// Locked by the runner at work.
pub const LOCK_FILE: &str = "lock";
/// Ending of a file on its way to its name.
const UNFINISHED: &str = ".unfinished";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A runner is at work in it.
    #[error("{} is in use by another runner{}", .folder.display(), .pid.as_ref().map_or_else(String::new, |pid| format!(", process {pid}")))]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// Its process, as the lock file names it.
        pid: Option<String>,
    },
    /// It holds something that is no campaign.
    #[error("{} is no results folder: it holds {what} and no {CAMPAIGN_FILE}", .folder.display())]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// The name of something in it.
        what: String,
    },
    /// It holds no campaign.
    #[error("{} is no results folder: {CAMPAIGN_FILE} is missing", .0.display())]
    NoCampaign(PathBuf),
    /// Its plan cannot be understood.
    #[error("{}: {why}", .file.display())]
    BadCampaign {
        /// The file.
        file: PathBuf,
        /// Why not.
        why: String,
    },
    /// A record is of a later layout.
    #[error("{}: {what}", .file.display())]
    Newer {
        /// The file.
        file: PathBuf,
        /// Which line, and what to do.
        what: String,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl FolderError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError {
        move |source| FolderError::Io { doing, path: path.to_owned(), source }
    }

    /// What to do.
    pub fn help(&self) -> &'static str {
        match self {
            FolderError::InUse { .. } => "wait for it or end it; --out names another folder",
            FolderError::Foreign { .. } => "--out names another folder",
            FolderError::NoCampaign(_) => "give a folder that `ioscope run` or `ioscope merge` has made",
            FolderError::BadCampaign { .. } => {
                "use the ioscope that wrote it, or start anew in another folder with --out"
            }
            FolderError::Newer { .. } => "start anew in another folder with --out",
            FolderError::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "make room, or choose another place with --out"
                }
                _ => "choose a place that you may write to with --out",
            },
        }
    }
}

/// Reads the plan of a folder without locking it; `None` where there is none.
pub fn read_campaign(folder: &Path) -> Result<Option<Campaign>, FolderError> {
    let file = folder.join(CAMPAIGN_FILE);
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => return Ok(None),
        Err(error) => return Err(FolderError::io("read", &file)(error)),
    };
    parse_campaign(&text).map(Some).map_err(|why| FolderError::BadCampaign { file, why })
}

/// The layout's version is looked at first, since another version may have other fields.
fn parse_campaign(text: &[u8]) -> Result<Campaign, String> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema: u32,
    }
    let Version { schema } = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if schema > CAMPAIGN_SCHEMA {
        return Err(format!("it has layout {schema}, and this ioscope knows layouts up to {CAMPAIGN_SCHEMA}"));
    }
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

/// Reads the records of a folder without locking it; none where there is no file of them.
pub fn read_records(folder: &Path) -> Result<Records, FolderError> {
    let file = folder.join(RUNS_FILE);
    let read = match records::read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Records::default(),
        other => other.map_err(FolderError::io("read", &file))?,
    };
    match read.newer() {
        Some(problem) => Err(FolderError::Newer { file, what: problem.to_string() }),
        None => Ok(read),
    }
}

/// Whether a runner is at work in a folder, which is not locked by the question.
pub fn check_unused(folder: &Path) -> Result<(), FolderError> {
    match File::open(folder.join(LOCK_FILE)) {
        Ok(mut lock) => match lock.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Err(in_use(folder, &mut lock)),
            _ => Ok(()),
        },
        Err(_) => Ok(()),
    }
}

fn in_use(folder: &Path, lock: &mut File) -> FolderError {
    let mut pid = String::new();
    let _ = lock.read_to_string(&mut pid);
    let pid = Some(pid.trim().to_owned()).filter(|pid| !pid.is_empty());
    FolderError::InUse { folder: folder.to_owned(), pid }
}

/// A folder that this process has locked. The lock ends with this value or with the process, however that ends; child
/// processes never have it, because its descriptor is closed on exec.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
    made: bool,
    begun: bool,
}

impl Folder {
    /// Locks a folder, which is made where it is missing.
    pub fn lock(path: &Path) -> Result<Folder, FolderError> {
        check_own(path)?;
        let made = !path.exists();
        fs::create_dir_all(path).map_err(FolderError::io("make the folder", path))?;
        let file = path.join(LOCK_FILE);
        loop {
            let mut lock = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&file)
                .map_err(FolderError::io("open", &file))?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(in_use(path, &mut lock)),
                Err(TryLockError::Error(error)) => return Err(FolderError::io("lock", &file)(error)),
            }
            // Between opening and locking, its owner may have removed it.
            if lock.metadata().is_ok_and(|metadata| metadata.nlink() == 0) {
                continue;
            }
            let pid = format!("{}\n", std::process::id());
            lock.set_len(0).and_then(|()| lock.write_all(pid.as_bytes())).map_err(FolderError::io("write", &file))?;
            let begun = path.join(CAMPAIGN_FILE).exists();
            return Ok(Folder { path: path.to_owned(), _lock: lock, made, begun });
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The plan in it.
    pub fn campaign(&self) -> Result<Option<Campaign>, FolderError> {
        read_campaign(&self.path)
    }

    /// Writes the experiment's file and the plan.
    pub fn write_campaign(&mut self, experiment: &str, campaign: &Campaign) -> Result<(), FolderError> {
        self.write(EXPERIMENT_FILE, experiment.as_bytes())?;
        let mut text = serde_json::to_vec_pretty(campaign)
            .map_err(|error| FolderError::io("write", &self.path.join(CAMPAIGN_FILE))(error.into()))?;
        text.push(b'\n');
        self.write(CAMPAIGN_FILE, &text)?;
        self.begun = true;
        Ok(())
    }

    /// Gives a file this content, or leaves it as it was.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        let (file, unfinished) = (self.path.join(name), self.path.join(format!("{name}{UNFINISHED}")));
        let written = File::create(&unfinished)
            .and_then(|mut new| new.write_all(content).and_then(|()| new.sync_all()))
            .and_then(|()| fs::rename(&unfinished, &file))
            .and_then(|()| File::open(&self.path)?.sync_all());
        written.map_err(|error| {
            let _ = fs::remove_file(&unfinished);
            FolderError::io("write", &file)(error)
        })
    }

    /// Opens the records for appending. What a crash had left of a last line is moved to `runs.torn`: it is among the
    /// problems that are answered, and its run counts as not made.
    pub fn open_runs(&self) -> Result<(RunLog, Records), FolderError> {
        let read = read_records(&self.path)?;
        let log = RunLog::open(&self.path.join(RUNS_FILE))?;
        if read.problems.iter().any(|problem| problem.what == Flaw::Cut) {
            self.set_torn_aside(&log, read.whole_bytes).map_err(FolderError::io("mend", &log.path))?;
        }
        let _ = File::open(&self.path).and_then(|folder| folder.sync_all());
        Ok((log, read))
    }

    fn set_torn_aside(&self, log: &RunLog, whole_bytes: u64) -> io::Result<()> {
        let mut torn = Vec::new();
        let mut file = File::open(&log.path)?;
        file.seek(SeekFrom::Start(whole_bytes))?;
        file.read_to_end(&mut torn)?;
        torn.push(b'\n');
        let mut aside = File::options().append(true).create(true).open(self.path.join(TORN_FILE))?;
        aside.write_all(&torn)?;
        aside.sync_all()?;
        log.file.set_len(whole_bytes)?;
        log.file.sync_all()
    }

    /// Opens the records of warm-up runs.
    pub fn open_warmup(&self) -> Result<RunLog, FolderError> {
        RunLog::open(&self.path.join(WARMUP_FILE))
    }

    /// Moves the records of failed runs to `failed.jsonl`, so that they can be made again; answers the others.
    pub fn set_failed_aside(&self, records: Vec<Record>) -> Result<Vec<Record>, FolderError> {
        let (failed, kept): (Vec<Record>, Vec<Record>) = records.into_iter().partition(|record| record.error.is_some());
        let mut log = RunLog::open(&self.path.join(FAILED_FILE))?;
        for record in &failed {
            log.append(record).map_err(FolderError::io("write", &log.path))?;
        }
        self.write_runs(&kept)?;
        Ok(kept)
    }

    /// Writes a whole campaign, the plan last: until it is there, the folder is none.
    pub fn write_merged(
        &mut self,
        experiment: &str,
        campaign: &Campaign,
        records: &[Record],
    ) -> Result<(), FolderError> {
        let written = self.write_runs(records).and_then(|()| self.write_campaign(experiment, campaign));
        if written.is_err() {
            for name in [RUNS_FILE, EXPERIMENT_FILE] {
                let _ = fs::remove_file(self.path.join(name));
            }
        }
        written
    }

    /// Writes all records at once.
    fn write_runs(&self, records: &[Record]) -> Result<(), FolderError> {
        let mut lines = Vec::new();
        for record in records {
            lines.extend(line_of(record).map_err(FolderError::io("write", &self.path.join(RUNS_FILE)))?);
        }
        self.write(RUNS_FILE, &lines)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.begun {
            // Nothing came of it: leave nothing behind. Still locked, so that nobody else is meant.
            let _ = fs::remove_file(self.path.join(LOCK_FILE));
            if self.made {
                let _ = fs::remove_dir(&self.path);
            }
        }
    }
}

/// Refuses a folder that holds other things than a campaign.
fn check_own(folder: &Path) -> Result<(), FolderError> {
    if folder.join(CAMPAIGN_FILE).exists() || !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(FolderError::io("read the folder", folder))? {
        let name = entry.map_err(FolderError::io("read the folder", folder))?.file_name();
        let unfinished = name.as_encoded_bytes().ends_with(UNFINISHED.as_bytes());
        if !unfinished && name != OsStr::new(LOCK_FILE) && name != OsStr::new(EXPERIMENT_FILE) {
            let what = name.to_string_lossy().into_owned();
            return Err(FolderError::Foreign { folder: folder.to_owned(), what });
        }
    }
    Ok(())
}

fn line_of(record: &Record) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

/// A file of records that is open for appending.
#[derive(Debug)]
pub struct RunLog {
    path: PathBuf,
    file: File,
}

impl RunLog {
    fn open(path: &Path) -> Result<RunLog, FolderError> {
        let file = File::options().read(true).append(true).create(true).open(path);
        Ok(RunLog { path: path.to_owned(), file: file.map_err(FolderError::io("open", path))? })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one record as one line and waits until it is on the disk. If that fails, what was written of the line is
    /// taken back.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        let line = line_of(record)?;
        let before = self.file.metadata()?.len();
        // Of a regular file, one write(2) takes the whole line unless the disk is full.
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if written.is_err() {
            let _ = self.file.set_len(before);
        }
        written
    }

    /// Ends an unfinished last line, so that it does not swallow the next one.
    pub fn end_line(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let mut last = [b'\n'];
        if length > 0 {
            self.file.read_exact_at(&mut last, length - 1)?;
        }
        if last == *b"\n" { Ok(()) } else { self.file.write_all(b"\n") }
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
