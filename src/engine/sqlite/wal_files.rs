//! The -wal and -shm files that a read-only connection to a WAL database leaves behind.
//!
//! SQLite creates both when it reads a database in WAL mode, and a read-only connection cannot remove them: that takes
//! an exclusive lock. A query must leave the folder as it was, so what was not there before is removed here, under
//! the very lock that SQLite would take (unixLock in os_unix.c): it excludes every other connection.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};

/// First of SQLite's lock bytes (PENDING_BYTE), and how many there are (PENDING, RESERVED and 510 of SHARED).
const LOCK_BYTES: (i64, i64) = (0x4000_0000, 512);

/// Which of the two files were there before the database was opened.
#[derive(Debug)]
pub struct WalFiles {
    database: PathBuf,
    missing: Vec<PathBuf>,
}

impl WalFiles {
    /// Looks before the database is opened.
    pub fn before(database: &Path) -> WalFiles {
        let sibling = |suffix: &str| {
            let mut name = OsString::from(database);
            name.push(suffix);
            PathBuf::from(name)
        };
        let missing = ["-wal", "-shm"].into_iter().map(sibling).filter(|path| !path.exists()).collect();
        WalFiles { database: database.to_owned(), missing }
    }

    /// Removes what came since, after the last connection of this process is closed. Leaves it where another process
    /// has the database open (it is theirs then), where a -wal holds frames, and where the database may not be locked.
    pub fn sweep(self) {
        let left: Vec<&PathBuf> = self.missing.iter().filter(|path| path.exists()).collect();
        if left.is_empty() {
            return;
        }
        // The lock ends with this descriptor.
        let Ok(file) = File::options().read(true).write(true).open(&self.database) else { return };
        let lock = libc::flock {
            l_type: libc::F_WRLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: LOCK_BYTES.0,
            l_len: LOCK_BYTES.1,
            l_pid: 0,
        };
        if fcntl(&file, FcntlArg::F_SETLK(&lock)).is_err() {
            return;
        }
        let empty_or_shm = |path: &&PathBuf| {
            !path.as_os_str().as_encoded_bytes().ends_with(b"-wal") || fs::metadata(path).is_ok_and(|m| m.len() == 0)
        };
        if left.iter().all(empty_or_shm) {
            for path in left {
                // Somebody else removed it, or may: then there is nothing to do.
                let _ = fs::remove_file(path);
            }
        }
    }
}
