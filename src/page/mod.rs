//! How pages are read: a page reader over a narrow backend, readahead policies, `pread` and io_uring.

pub mod accounted;
pub mod backend;
pub mod blocks;
pub mod config;
pub mod descriptor;
pub mod direct;
mod frames;
pub mod layout;
pub mod open;
pub mod policy;
pub mod pool;
pub mod pread;
pub mod reader;
pub mod report;
mod sqpoll_thread;
pub mod uring;

pub use blocks::BlockReader;
pub use reader::PageReader;

/// Why a page reader could not be opened or could not read.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A system call failed.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// On which file.
        path: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A setting is out of range.
    #[error("{0}")]
    Config(String),
    /// Direct I/O was required of a file for which no transfer has proven it.
    #[error("direct I/O on {path} is not proven")]
    Unproven {
        /// The file.
        path: String,
    },
    /// Direct I/O cannot be had.
    #[error("direct I/O on {path}: {what}")]
    Direct {
        /// The file.
        path: String,
        /// Why not, and what to do.
        what: String,
    },
    /// The ring could not be set up.
    #[error(transparent)]
    Ring(#[from] uring::RingError),
}

impl PageError {
    pub(crate) fn io(what: &str, path: impl AsRef<std::path::Path>, source: std::io::Error) -> PageError {
        PageError::Io { what: what.to_owned(), path: path.as_ref().display().to_string(), source }
    }
}
