//! Why a data set could not be made or used.

use std::io;
use std::path::{Path, PathBuf};

use super::scale::ScaleError;

/// Why a data set could not be made or used: what, where, why and what to do.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The scale is refused.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// The page size is refused.
    #[error("page size {0} is not one that SQLite knows: give 512, 1024, 2048, 4096, 8192, 16384, 32768 or 65536")]
    PageSize(u32),
    /// The free space will not do.
    #[error(
        "not enough space in {folder}: {file} needs about {needed_mib} MiB and {available_mib} MiB are free; make room, \
         choose another place with --out, or a smaller --scale"
    )]
    NotEnoughSpace {
        /// Where it would go.
        folder: PathBuf,
        /// The data set's name.
        file: PathBuf,
        /// What it takes.
        needed_mib: u64,
        /// What is there.
        available_mib: u64,
    },
    /// The disk filled up while writing.
    #[error(
        "the disk filled up while {path} was being made ({why}); what had been written is removed again. Make room, choose \
         another place with --out, or a smaller --scale"
    )]
    DiskFull {
        /// The data set.
        path: PathBuf,
        /// What the system or SQLite said.
        why: String,
    },
    /// A system call failed.
    #[error("cannot {doing} {path}: {source}{remedy}")]
    Io {
        /// The verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
        /// What to do, with a leading semicolon, or nothing.
        remedy: &'static str,
    },
    /// SQLite failed.
    #[error(
        "cannot {doing} {path}: SQLite says: {source}; what had been written is removed again{}",
        io_remedy(source)
    )]
    Sqlite {
        /// The verb.
        doing: &'static str,
        /// The database.
        path: PathBuf,
        /// SQLite's reason.
        source: rusqlite::Error,
    },
    /// The database does not hold what was generated.
    #[error(
        "{path} came out wrong: {what} is {found} in the database and {expected} by integer arithmetic on the generated rows; \
         the file is removed again. Suspect memory, disk or a bug, and try once more"
    )]
    Wrong {
        /// The data set.
        path: PathBuf,
        /// The quantity.
        what: String,
        /// From the generator.
        expected: String,
        /// From SQLite.
        found: String,
    },
    /// A signal ended the work.
    #[error("stopped by {signal} while {path} was being made; nothing of it is left behind")]
    Interrupted {
        /// The signal's name.
        signal: &'static str,
        /// The data set.
        path: PathBuf,
    },
    /// There is no such file.
    #[error("{path} does not exist; make it with `ioscope dataset tpch`")]
    Missing {
        /// The data set.
        path: PathBuf,
    },
    /// There is a file, but nothing says what made it.
    #[error(
        "{path} exists, but its manifest {manifest} does not, so nothing says what made it; delete the file to have it made \
         anew, choose another name with --out, or query it with --db"
    )]
    NoManifest {
        /// The file.
        path: PathBuf,
        /// Where its manifest would be.
        manifest: PathBuf,
    },
    /// The manifest cannot be understood.
    #[error(
        "the manifest {manifest} cannot be used: {why}; delete {path} and the manifest to have them made anew, or choose another name with --out"
    )]
    BadManifest {
        /// The data set.
        path: PathBuf,
        /// Its manifest.
        manifest: PathBuf,
        /// Why not.
        why: String,
    },
    /// The file is not the one that is wanted.
    #[error(
        "{path} is not the data set that is wanted: its {what} is {found}, not {expected}; delete it and its manifest to have it \
         made anew, or choose another name with --out"
    )]
    Mismatch {
        /// The data set.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
    /// The generator's thread ended by a panic.
    #[error(
        "the generator failed while {path} was being made; what had been written is removed again. This is a bug: please report it"
    )]
    Generator {
        /// The data set.
        path: PathBuf,
    },
}

/// What to do about a failed read or write, of which SQLite does not pass on the system's reason.
fn io_remedy(source: &rusqlite::Error) -> &'static str {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::SystemIoFailure) => {
            ". Look for a limit on file sizes (ulimit -f), a quota, and errors of the device in the kernel's log"
        }
        _ => "",
    }
}

impl DatasetError {
    /// A failed system call; a full disk or quota is told apart.
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                DatasetError::DiskFull { path: path.to_owned(), why: source.to_string() }
            }
            kind => DatasetError::Io {
                doing,
                path: path.to_owned(),
                source,
                remedy: match kind {
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                        "; choose a place that you may write to with --out"
                    }
                    io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
                        "; give the name of a file with --out"
                    }
                    _ => "",
                },
            },
        }
    }

    /// A failure of SQLite; a full disk is told apart.
    pub(super) fn sqlite(doing: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) {
            DatasetError::DiskFull { path: path.to_owned(), why: source.to_string() }
        } else {
            DatasetError::Sqlite { doing, path: path.to_owned(), source }
        }
    }
}
