//! How pages are read: a page reader over a narrow backend, readahead policies, `pread` and io_uring.

pub mod config;
pub mod direct;
pub mod report;

/// Why a page reader could not be opened or could not read.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted, on which file.
        what: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
}
