//! What runs are made with, and how it differs from what earlier ones were made with.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::campaign::{DataIdentity, MadeWith, Plan};
use crate::dataset;
use crate::measure::environment::{Environment, Fnv};

/// This very program, even if its file has been replaced since.
const SELF: &str = "/proc/self/exe";
/// Offset of the counter of committed changes in a database's header
/// (<https://sqlite.org/fileformat2.html#file_change_counter>).
const CHANGE_COUNTER_OFFSET: u64 = 24;

impl MadeWith {
    /// This program, this machine, and this database.
    ///
    /// It opens and closes the database, which drops the POSIX locks that this process holds on it: call it while no
    /// engine has it open.
    pub fn now(database: &Path) -> io::Result<MadeWith> {
        Ok(MadeWith {
            ioscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            binary_digest: digest_of_file(Path::new(SELF))?,
            data: DataIdentity::of(database)?,
            environment: Environment::read(Some(database)),
        })
    }

    /// What has changed since, in words; empty if nothing has.
    pub fn changes_to(&self, now: &MadeWith) -> Vec<String> {
        let mut changes = Vec::new();
        if self.binary_digest != now.binary_digest {
            changes.push(format!(
                "the program: ioscope {} ({}) then, {} ({}) now",
                self.ioscope_version, self.binary_digest, now.ioscope_version, now.binary_digest
            ));
        }
        changes.extend(self.data.changes_to(&now.data));
        let (then, now) = (&self.environment, &now.environment);
        if then.host != now.host {
            changes.push("the machine: another host".to_owned());
        }
        if then.id != now.id {
            let settings = then.settings().into_iter().zip(now.settings()).filter(|(then, now)| then != now);
            let named: Vec<String> = settings
                .map(|((name, then), (_, now))| format!("the machine: {name} {then} then, {now} now"))
                .collect();
            if named.is_empty() {
                changes.push(format!("the machine: environment {} then, {} now", then.id, now.id));
            }
            changes.extend(named);
        }
        changes
    }
}

impl DataIdentity {
    fn of(database: &Path) -> io::Result<DataIdentity> {
        let file = File::open(database)?;
        let metadata = file.metadata()?;
        let mut counter = [0; 4];
        let counter =
            file.read_exact_at(&mut counter, CHANGE_COUNTER_OFFSET).ok().map(|()| u32::from_be_bytes(counter));
        drop(file);
        Ok(DataIdentity {
            path: database.to_string_lossy().into_owned(),
            manifest: dataset::manifest_of(database),
            size_bytes: metadata.len(),
            modified_unix_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
            change_counter: counter,
        })
    }

    /// Why this is another content, as far as can be seen without reading it all; on another machine the times of the
    /// file say nothing.
    pub fn content_changes_to(&self, now: &DataIdentity) -> Vec<String> {
        let mut changes = Vec::new();
        if self.size_bytes != now.size_bytes {
            changes.push(format!("the data: {} bytes then, {} now", self.size_bytes, now.size_bytes));
        }
        match (&self.manifest, &now.manifest) {
            (Some(then), Some(now)) if then != now => {
                changes.push("the data: made otherwise (the manifests differ)".to_owned());
            }
            (Some(_), None) => changes.push("the data: its manifest is gone, or no longer fits it".to_owned()),
            (None, Some(_)) => changes.push("the data: it had no manifest then".to_owned()),
            _ => {}
        }
        if self.change_counter != now.change_counter {
            changes.push("the data: it has been written to (the change counter in its header differs)".to_owned());
        }
        changes
    }

    fn changes_to(&self, now: &DataIdentity) -> Vec<String> {
        let mut changes = self.content_changes_to(now);
        // With a manifest the content is known; without one, a write that SQLite's counter misses shows here.
        if changes.is_empty() && self.manifest.is_none() && self.modified_unix_ns != now.modified_unix_ns {
            changes.push("the data: it has been written to (its time of modification differs)".to_owned());
        }
        changes
    }
}

impl Plan {
    /// What has changed since, in words; empty if nothing has.
    pub fn changes_to(&self, now: &Plan) -> Vec<String> {
        let mut changes = Vec::new();
        let mut differs = |name: &str, then: String, now: String| {
            if then != now {
                changes.push(format!("the plan: {name} {then} then, {now} now"));
            }
        };
        let timeout = |plan: &Plan| plan.timeout_s.map_or("none".to_owned(), |s| format!("{s} s"));
        differs("data", self.data.clone(), now.data.clone());
        differs("counters", self.counters.to_string(), now.counters.to_string());
        differs("seed", self.seed.to_string(), now.seed.to_string());
        differs("warmup", self.warmup.to_string(), now.warmup.to_string());
        differs("timeout", timeout(self), timeout(now));
        differs("number of runs", self.order.len().to_string(), now.order.len().to_string());
        if self.workload != now.workload {
            changes.push("the plan: another workload".to_owned());
        }
        let gone: Vec<&str> = cells_beyond(self, now);
        let new: Vec<&str> = cells_beyond(now, self);
        for (what, cells) in [("cells that are no longer in it", gone), ("new cells", new)] {
            if !cells.is_empty() {
                changes.push(format!("the plan: {what}: {}", cells.join(", ")));
            }
        }
        if changes.is_empty() && self != now {
            changes.push("the plan: order, exclusions or ratios".to_owned());
        }
        changes
    }
}

fn cells_beyond<'a>(plan: &'a Plan, other: &Plan) -> Vec<&'a str> {
    let has = |name: &str| other.cells.iter().any(|cell| cell.name == name);
    plan.cells.iter().map(|cell| cell.name.as_str()).filter(|name| !has(name)).collect()
}

fn digest_of_file(path: &Path) -> io::Result<String> {
    let mut from = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut hash = Fnv::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(format!("fnv1a64:{}", hash.hex())),
            bytes => hash.write(&buffer[..bytes]),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn made_with(content: &[u8]) -> MadeWith {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        MadeWith { data: DataIdentity::of(file.path()).unwrap(), ..blank() }
    }

    fn blank() -> MadeWith {
        let data = DataIdentity {
            path: String::new(),
            manifest: None,
            size_bytes: 1,
            modified_unix_ns: 0,
            change_counter: None,
        };
        let mut environment = Environment::default();
        environment.id = environment.digest();
        MadeWith { ioscope_version: "0.1.0".to_owned(), binary_digest: "fnv1a64:0".to_owned(), data, environment }
    }

    #[test]
    fn each_change_is_named() {
        let then = blank();
        assert_eq!(then.changes_to(&then), Vec::<String>::new());
        let mut now = blank();
        now.binary_digest = "fnv1a64:1".to_owned();
        now.data.size_bytes = 2;
        now.environment.scheduler = Some("none".to_owned());
        now.environment.host = Some("other".to_owned());
        now.environment.id = now.environment.digest();
        assert_eq!(
            then.changes_to(&now),
            [
                "the program: ioscope 0.1.0 (fnv1a64:0) then, 0.1.0 (fnv1a64:1) now",
                "the data: 1 bytes then, 2 now",
                "the machine: another host",
                "the machine: scheduler null then, none now",
            ]
        );
    }

    #[test]
    fn a_database_that_was_written_to_is_another() {
        let mut content = [7; 100];
        let then = made_with(&content);
        content[27] += 1;
        let now = made_with(&content);
        let changes = then.changes_to(&now);
        assert_eq!(changes, ["the data: it has been written to (the change counter in its header differs)"]);
        // On another machine the time of modification is no sign of another content.
        let copy = DataIdentity { modified_unix_ns: 5, ..then.data.clone() };
        assert_eq!(then.data.content_changes_to(&copy), Vec::<String>::new());
        assert_eq!(then.data.changes_to(&copy).len(), 1);
    }

    #[test]
    fn the_digest_of_this_program_is_that_of_its_bytes() {
        let bytes = std::fs::read(SELF).unwrap();
        assert_eq!(digest_of_file(Path::new(SELF)).unwrap(), super::super::campaign::digest(&bytes));
    }
}
