//! Folders, databases and runs of the program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ioscope::experiment::record::Record;

/// A folder of its own on the disk of the build folder, where direct I/O can usually be had; /tmp may be a tmpfs.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name.as_ref());
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A database with a table `t` of 2000 rows.
    pub fn database(&self, name: impl AsRef<OsStr>, page_size: u32) -> PathBuf {
        let path = self.path().join(name.as_ref());
        fill(&path, page_size);
        path
    }

    /// `ioscope` with this folder as working folder.
    pub fn ioscope(&self, arguments: &[&str]) -> Run {
        self.ioscope_os(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    pub fn ioscope_os(&self, arguments: &[OsString]) -> Run {
        Run::of(self.command().args(arguments).output().unwrap())
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ioscope"));
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// The same for a test that sends signals: whoever started the tests may have them ignored (nohup, a job in the
    /// background), and a program keeps that.
    pub fn interruptible(&self) -> Command {
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_ioscope")]);
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Names and contents of all files.
    pub fn contents(&self) -> BTreeMap<OsString, Vec<u8>> {
        let entries = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap_or_default())).collect()
    }

    pub fn records(&self, name: &str) -> Vec<Record> {
        records(&std::fs::read_to_string(self.path().join(name)).unwrap())
    }
}

pub fn records(lines: &str) -> Vec<Record> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sum of `a` over all rows of [`Folder::database`].
pub const SUM: i64 = 2000 * 2001 / 2;
pub const SUM_SQL: &str = "SELECT sum(a) FROM t";

fn fill(path: &Path, page_size: u32) {
    let database = rusqlite::Connection::open(path).unwrap();
    database.pragma_update(None, "page_size", page_size).unwrap();
    database
        .execute_batch(
            "CREATE TABLE t(a INTEGER, s TEXT);
             WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2000)
             INSERT INTO t SELECT x, printf('%0200d', x) FROM c;",
        )
        .unwrap();
}

/// What a run of the program left.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn of(output: Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let run = Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        assert!(!run.stderr.contains("panicked"), "{run:#?}");
        run
    }

    /// Expects success.
    pub fn ok(self) -> Run {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// Expects one error on stderr that contains each of `parts`, and nothing on stdout.
    pub fn refused(self, code: i32, parts: &[&str]) -> Run {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.stdout, "", "{self:#?}");
        assert_eq!(self.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{self:#?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {self:#?}");
        }
        self
    }
}

/// Whether a ring can be set up here; says on stderr that `test` is skipped if not.
pub fn has_ring(test: &str) -> bool {
    match io_uring::IoUring::new(2) {
        Ok(_) => true,
        Err(error) => {
            ioscope::skipped!("{test}: io_uring cannot be set up: {error}");
            false
        }
    }
}
