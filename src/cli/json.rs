//! `--json FILE`: one record a line, appended as soon as its run has ended.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::experiment::record::Record;

/// Longest first line that is looked at, in bytes.
const LINE_MAX_BYTES: u64 = 64 << 20;

/// Where records go.
#[derive(Debug)]
pub enum JsonLines {
    /// To a file, at its end.
    File(JsonFile),
    /// To standard output.
    Stdout,
}

/// A file of JSON Lines that is open for appending.
#[derive(Debug)]
pub struct JsonFile {
    path: PathBuf,
    file: File,
    /// Made by us, and nothing is in it yet: removed again if it stays so.
    is_new: bool,
}

/// Why records cannot be appended to a file.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The system refused.
    #[error("--json {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// It holds something else.
    #[error("--json {}: the file exists and its first line is no JSON object, so records are not appended to it", .0.display())]
    NotJsonLines(PathBuf),
}

impl JsonLines {
    /// Opens `path` for appending; `-` is standard output. A file that holds something else is left alone.
    pub fn open(path: &Path) -> Result<JsonLines, JsonError> {
        if path == Path::new("-") {
            return Ok(JsonLines::Stdout);
        }
        let fail = |source| JsonError::Io { path: path.to_owned(), source };
        let existing = match std::fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        if existing.as_ref().is_some_and(|m| m.is_file() && m.len() > 0) && !begins_with_object(path).map_err(fail)? {
            return Err(JsonError::NotJsonLines(path.to_owned()));
        }
        let is_file = existing.as_ref().is_none_or(Metadata::is_file);
        // Reading is needed to see whether the last line was finished; a pipe or a device is only written.
        let file = File::options().append(true).read(is_file).create(true).open(path).map_err(fail)?;
        Ok(JsonLines::File(JsonFile { path: path.to_owned(), file, is_new: existing.is_none() }))
    }

    /// Appends one record as one line. If that fails, what was written of the line is taken back.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        match self {
            JsonLines::File(file) => file.append(line),
            JsonLines::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(&line)?;
                stdout.flush()
            }
        }
    }
}

impl JsonFile {
    fn append(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        let before = self.file.metadata()?;
        if before.is_file() && before.len() > 0 {
            let mut last = [0];
            self.file.read_exact_at(&mut last, before.len() - 1)?;
            if last != *b"\n" {
                // A line that a crash had cut: keep it from swallowing this record.
                line.insert(0, b'\n');
            }
        }
        let written = self.file.write_all(&line);
        if written.is_err() && before.is_file() {
            let _ = self.file.set_len(before.len());
        }
        self.is_new &= written.is_err();
        written
    }
}

impl Drop for JsonFile {
    fn drop(&mut self) {
        if self.is_new && self.file.metadata().is_ok_and(|m| m.is_file() && m.len() == 0) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn begins_with_object(path: &Path) -> io::Result<bool> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?).take(LINE_MAX_BYTES).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&line).is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::record::tests::blank;

    #[test]
    fn records_are_appended_and_a_cut_line_does_not_swallow_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        JsonLines::open(&path).unwrap().append(&blank()).unwrap();
        let one = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{one}{{\"cut")).unwrap();
        let mut again = JsonLines::open(&path).unwrap();
        again.append(&blank()).unwrap();
        again.append(&blank()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{one}{{\"cut\n{one}{one}"));
    }

    #[test]
    fn a_file_that_holds_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("q.sql");
        std::fs::write(&path, "SELECT 1;\n").unwrap();
        assert!(matches!(JsonLines::open(&path), Err(JsonError::NotJsonLines(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "SELECT 1;\n");
        assert!(matches!(JsonLines::open(folder.path()), Err(JsonError::Io { .. })));
        assert!(matches!(JsonLines::open(&folder.path().join("no/such")), Err(JsonError::Io { .. })));
    }

    #[test]
    fn a_file_that_stays_empty_is_not_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        std::fs::write(&old, "").unwrap();
        drop((JsonLines::open(&new).unwrap(), JsonLines::open(&old).unwrap()));
        assert!(!new.exists() && old.exists());
    }

    #[test]
    fn a_full_device_is_an_error() {
        if !Path::new("/dev/full").exists() {
            crate::skipped!("a_full_device_is_an_error: no /dev/full");
            return;
        }
        let error = JsonLines::open(Path::new("/dev/full")).unwrap().append(&blank()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
