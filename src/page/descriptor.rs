//! The reader's own descriptors, closed only when that cannot hurt.
//!
//! Closing *any* descriptor of a file drops all POSIX locks that the process holds on it (fcntl(2), "Record
//! locks"), the engine's among them. So a descriptor whose file some connection still has open is parked,
//! and reused or closed when the last such connection is gone.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Device and inode: what POSIX locks belong to.
pub type FileId = (u64, u64);

#[derive(Default)]
struct Inode {
    connections: usize,
    parked: Vec<(bool, File)>,
}

static REGISTRY: LazyLock<Mutex<HashMap<FileId, Inode>>> = LazyLock::new(Mutex::default);

fn registry() -> MutexGuard<'static, HashMap<FileId, Inode>> {
    // The map is valid between any two statements, so a panic elsewhere cannot have broken it.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection of this process that has a file open, and perhaps locked. While one lives, no
/// [`Descriptor`] of that file is closed.
#[derive(Debug)]
pub struct Connection {
    id: FileId,
}

impl Connection {
    /// Registers a connection to the file at `path`. The engine must have it open already, and close it before
    /// this value is dropped.
    ///
    /// # Errors
    /// Those of stat(2).
    pub fn register(path: &Path) -> io::Result<Connection> {
        let metadata = std::fs::metadata(path)?;
        let id = (metadata.dev(), metadata.ino());
        registry().entry(id).or_default().connections += 1;
        Ok(Connection { id })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut registry = registry();
        if let Some(inode) = registry.get_mut(&self.id) {
            inode.connections -= 1;
            if inode.connections == 0 {
                registry.remove(&self.id);
            }
        }
    }
}

/// An open file that the reader reads.
#[derive(Debug)]
pub struct Descriptor {
    file: Option<File>,
    direct: bool,
    id: FileId,
}

impl Descriptor {
    /// Opens `path` read-only, with `O_DIRECT` where `direct`.
    ///
    /// # Errors
    /// Those of open(2); `EINVAL` means that the file system has no direct I/O.
    pub fn open(path: &Path, direct: bool) -> io::Result<Descriptor> {
        // stat first: a descriptor opened and dropped on the way would drop locks.
        let metadata = std::fs::metadata(path)?;
        let id = (metadata.dev(), metadata.ino());
        if let Some(inode) = registry().get_mut(&id)
            && let Some(index) = inode.parked.iter().position(|(parked_direct, _)| *parked_direct == direct)
        {
            return Ok(Descriptor { file: Some(inode.parked.swap_remove(index).1), direct, id });
        }
        let file = OpenOptions::new().read(true).custom_flags(if direct { libc::O_DIRECT } else { 0 }).open(path)?;
        let metadata = file.metadata()?;
        Ok(Descriptor { file: Some(file), direct, id: (metadata.dev(), metadata.ino()) })
    }

    /// Which file this is.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Whether the kernel has `O_DIRECT` set on the open file (fcntl(2), F_GETFL).
    pub fn is_direct(&self) -> bool {
        nix::fcntl::fcntl(self.as_fd(), nix::fcntl::FcntlArg::F_GETFL).is_ok_and(|flags| flags & libc::O_DIRECT != 0)
    }

    /// The file's size now, in bytes.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.file().metadata()?.len())
    }

    /// The open file.
    pub fn file(&self) -> &File {
        match &self.file {
            Some(file) => file,
            // `file` is taken by `drop` alone.
            None => unreachable!("a descriptor in use has its file"),
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file().as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.file().as_raw_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if let Some(file) = self.file.take()
            && let Some(inode) = registry().get_mut(&self.id)
        {
            inode.parked.push((self.direct, file));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_outlives_the_connections_and_is_reused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let is_open = |fd: RawFd| std::fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|p| p == file.path());
        let first = Connection::register(file.path()).unwrap();
        let second = Connection::register(file.path()).unwrap();
        let descriptor = Descriptor::open(file.path(), false).unwrap();
        let fd = descriptor.as_raw_fd();
        drop(descriptor);
        drop(first);
        assert!(is_open(fd), "parked while a connection lives");
        let again = Descriptor::open(file.path(), false).unwrap();
        assert_eq!(again.as_raw_fd(), fd, "the parked one is reused");
        drop(again);
        drop(second);
        assert!(!is_open(fd), "closed with the last connection");
    }
}
