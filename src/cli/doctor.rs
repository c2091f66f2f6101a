//! `ioscope doctor`: what this machine can measure, what it cannot, what that costs and what mends it.

mod check;
mod counters;
mod machine;
mod ring;
mod storage;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

pub use check::{Check, State, render, verdict};

/// Look at the machine: what can be measured here, what cannot, what that costs, and the command that mends it.
///
/// Exit code 0: the main job (a query over io_uring with direct I/O) can run, perhaps with counters missing; 1: it cannot.
#[derive(Debug, Clone, clap::Args)]
pub struct DoctorArgs {
    /// The database to be measured; without it, the folder `data` or else the current one is looked at.
    #[arg(long, value_name = "FILE")]
    pub db: Option<PathBuf>,
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subject {
    /// The database, if one was named.
    db: Option<PathBuf>,
    /// The folder in which it lies, or the data set would be made; it exists.
    folder: PathBuf,
}

impl Subject {
    fn of(args: &DoctorArgs) -> anyhow::Result<Subject> {
        let wanted = match &args.db {
            Some(db) if db.is_dir() => db.clone(),
            Some(db) => std::path::absolute(db)?.parent().unwrap_or(Path::new("/")).to_owned(),
            None => PathBuf::from("data"),
        };
        let folder = wanted.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Ok(Subject { db: args.db.clone(), folder: folder.to_owned() })
    }

    /// The database where it exists, else the folder.
    fn place(&self) -> &Path {
        self.db.as_deref().filter(|db| db.is_file()).unwrap_or(&self.folder)
    }
}

/// Looks at the machine.
///
/// # Errors
///
/// The current folder cannot be read.
pub fn checks(args: &DoctorArgs) -> anyhow::Result<Vec<Check>> {
    Ok(examine(&Subject::of(args)?))
}

/// Looks at the machine, prints one line a check and a verdict to stdout, and answers the exit code.
pub fn run(args: &DoctorArgs) -> anyhow::Result<i32> {
    let checks = checks(args)?;
    let mut stdout = std::io::stdout().lock();
    let can_run = write(&checks, &mut stdout)?;
    Ok(if can_run { 0 } else { 1 })
}

/// Writes one line a check and a verdict, in colour on a terminal unless NO_COLOR is set; whether the main job can run.
///
/// # Errors
///
/// The stream's.
pub fn write(checks: &[Check], out: &mut (impl Write + IsTerminal)) -> std::io::Result<bool> {
    let colour = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let (sentence, can_run) = verdict(checks);
    writeln!(out, "{}\n{sentence}", render(checks, colour))?;
    Ok(can_run)
}

/// Every check, in the order of a page's way: machine, ring, storage, counters.
fn examine(subject: &Subject) -> Vec<Check> {
    let mut checks = machine::checks(subject);
    checks.extend(ring::checks());
    checks.extend(storage::checks(subject));
    checks.extend(counters::checks(subject));
    checks
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_folder_of_a_database_to_be_made_is_the_nearest_that_exists() {
        let root = tempfile::tempdir().unwrap();
        let db = root.path().join("not/there.db");
        let subject = Subject::of(&DoctorArgs { db: Some(db) }).unwrap();
        assert_eq!(subject.folder, root.path());
        assert_eq!(subject.place(), root.path());
    }

    #[test]
    fn a_machine_is_examined_without_panic_and_each_trouble_says_its_cost() {
        let root = tempfile::tempdir_in(".").unwrap();
        let db = root.path().join("x.db");
        std::fs::write(&db, [b"SQLite format 3\0".as_slice(), &[0; 8192]].concat()).unwrap();
        let before = std::fs::read(&db).unwrap();
        let checks = examine(&Subject::of(&DoctorArgs { db: Some(db.clone()) }).unwrap());
        for check in &checks {
            assert_eq!(check.state == State::Ok, check.cost.is_empty(), "{check:?}");
            assert!(!check.found.is_empty(), "{check:?}");
        }
        assert_eq!(std::fs::read(&db).unwrap(), before);
        let names: Vec<_> = std::fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["x.db"], "the folder is left as it was");
    }

    #[test]
    fn a_database_that_is_not_there_stops_the_main_job() {
        let root = tempfile::tempdir_in(".").unwrap();
        let subject = Subject::of(&DoctorArgs { db: Some(root.path().join("missing.db")) }).unwrap();
        let (sentence, can_run) = verdict(&examine(&subject));
        assert!(!can_run && sentence.contains("database"), "{sentence}");
    }
}
