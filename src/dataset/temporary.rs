//! Files on their way to their final name.
//!
//! A temporary file lies in the folder of the final one, is named `NAME.generating-PID-N`, is locked (flock(2)) by its
//! owner, and is removed when its owner gives up. One whose owner was killed is unlocked, and the next one to make the same
//! file removes it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

const MARK: &str = ".generating-";

/// The folder that a file lies in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file under its temporary name; removed when dropped before [`Temporary::rename`].
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl Temporary {
    /// Creates an empty file beside `target`.
    ///
    /// # Errors
    ///
    /// The system's reason not to.
    pub fn create(target: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut name = OsString::from(target.file_name().ok_or(io::ErrorKind::IsADirectory)?);
            name.push(format!("{MARK}{}-{number}", std::process::id()));
            let path = folder_of(target).join(name);
            let file = match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                // A process in another namespace may have the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other?,
            };
            let temporary = Temporary { path, file, kept: false };
            temporary.file.lock()?;
            // Between creating and locking, somebody may have taken it for an abandoned one.
            if temporary.file.metadata()?.nlink() > 0 {
                return Ok(temporary);
            }
        }
    }

    /// Its temporary name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file. SQLite's locks are of another kind (fcntl(2)), and nobody else opens the file under this name.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its final name. With `replace` unset, fails with `AlreadyExists` where the name is taken.
    ///
    /// # Errors
    ///
    /// The system's reason not to; the file is removed then.
    pub fn rename(mut self, target: &Path, replace: bool) -> io::Result<()> {
        let renamed = if replace {
            std::fs::rename(&self.path, target)
        } else {
            match renameat2(AT_FDCWD, &self.path, AT_FDCWD, target, RenameFlags::RENAME_NOREPLACE) {
                // Some file systems do not know the flag: link(2) does not replace either.
                Err(nix::Error::EINVAL | nix::Error::ENOSYS) => std::fs::hard_link(&self.path, target),
                other => {
                    self.kept = other.is_ok();
                    return other.map_err(io::Error::from);
                }
            }
        };
        self.kept = replace && renamed.is_ok();
        renamed
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // The only thing left to do with an error here would be to leave the file, which is what happens.
            let _removed = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes temporary files of `target` whose owners no longer live.
///
/// # Errors
///
/// Where the folder cannot be read. A file that cannot be opened or removed is left.
pub fn remove_abandoned(target: &Path) -> io::Result<()> {
    let Some(name) = target.file_name() else { return Ok(()) };
    let mut prefix = name.as_bytes().to_vec();
    prefix.extend_from_slice(MARK.as_bytes());
    for entry in std::fs::read_dir(folder_of(target))? {
        let entry = entry?;
        if !entry.file_name().as_bytes().starts_with(&prefix) {
            continue;
        }
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _removed = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_given_up_is_removed_and_what_is_renamed_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.db");
        drop(Temporary::create(&target).unwrap());
        assert!(names(folder.path()).is_empty());
        Temporary::create(&target).unwrap().rename(&target, false).unwrap();
        assert_eq!(names(folder.path()), ["a.db"]);
        let refused = Temporary::create(&target).unwrap().rename(&target, false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        Temporary::create(&target).unwrap().rename(&target, true).unwrap();
        assert_eq!(names(folder.path()), ["a.db"]);
    }

    #[test]
    fn only_what_nobody_works_on_is_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.db");
        let alive = Temporary::create(&target).unwrap();
        std::fs::write(folder.path().join("a.db.generating-1-0"), "killed").unwrap();
        std::fs::write(folder.path().join("b.db.generating-1-0"), "of another file").unwrap();
        remove_abandoned(&target).unwrap();
        let mut left =
            vec![alive.path().file_name().unwrap().to_str().unwrap().to_owned(), "b.db.generating-1-0".into()];
        left.sort();
        assert_eq!(names(folder.path()), left);
    }
}
