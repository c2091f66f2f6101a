//! The narrow shape under the reader: submit reads, wait for completions.

use std::io;

use super::pool::Pool;

/// One read of contiguous bytes into the backend's pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRequest {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
    /// Where in the pool the bytes go, in bytes from its start.
    pub slot: usize,
    /// Comes back in the completion.
    pub token: u64,
}

/// The end of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The request's token.
    pub token: u64,
    /// Bytes read, or the errno.
    pub result: Result<u32, i32>,
}

/// What a backend is, as the kernel set it up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// `pread`, `uring` or `uring-sqpoll`.
    pub name: &'static str,
    /// Reads that may be in flight at once.
    pub in_flight_max: usize,
    /// Flags of the ring's setup, by name.
    pub ring_flags: Vec<String>,
    /// Entries of the submission queue.
    pub sq_entries: Option<u32>,
}

/// What only the backend itself can count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackendCounts {
    /// SQEs handed to the kernel.
    pub sqes: u64,
    /// `io_uring_enter` calls.
    pub enter_calls: u64,
    /// Of these, calls that had to wake a sleeping SQPOLL thread (`IORING_ENTER_SQ_WAKEUP`).
    pub wakeups: u64,
    /// CQEs reaped.
    pub cqes: u64,
    /// `pread` calls.
    pub pread_calls: u64,
}

/// How reads reach the kernel, for one open file.
///
/// A backend owns the pool and keeps it until the kernel can no longer write to it.
pub trait Backend: Send {
    /// Hands all of `requests` to the kernel, in order and as one batch where the kernel takes batches.
    ///
    /// # Errors
    /// An error means that none of `requests` will complete and the backend cannot be used further. A read
    /// that fails is not an error here: its completion carries the errno.
    fn submit(&mut self, requests: &[ReadRequest]) -> io::Result<()>;

    /// [`Backend::submit`], then [`Backend::wait`]; one system call where the kernel has one for both.
    ///
    /// # Errors
    /// Those of the two.
    fn submit_and_wait(&mut self, requests: &[ReadRequest], min: usize, out: &mut Vec<Completion>) -> io::Result<()> {
        self.submit(requests)?;
        self.wait(min, out)
    }

    /// Appends completions to `out`: whatever has ended, and at least `min` (or all in flight, if fewer are).
    ///
    /// # Errors
    /// The wait itself failed; reads in flight stay in flight.
    fn wait(&mut self, min: usize, out: &mut Vec<Completion>) -> io::Result<()>;

    /// Reads in flight.
    fn in_flight(&self) -> usize;

    /// What the kernel set up.
    fn capabilities(&self) -> &Capabilities;

    /// Counts so far.
    fn counts(&self) -> BackendCounts;

    /// The memory that reads go to.
    fn pool(&self) -> &Pool;

    /// The file's size now, in bytes.
    fn file_size(&self) -> io::Result<u64>;

    /// The SQPOLL thread, where there is one.
    fn sqpoll(&self) -> Option<super::report::SqpollReport> {
        None
    }
}

/// Checks what every backend requires of a request before the kernel sees it: that its bytes lie in the pool.
pub(super) fn check(request: &ReadRequest, pool: &Pool) -> io::Result<()> {
    if request.len == 0 || !pool.contains(request.slot, request.len as usize) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("read of {} bytes to slot {} outside a pool of {}", request.len, request.slot, pool.len()),
        ));
    }
    Ok(())
}
