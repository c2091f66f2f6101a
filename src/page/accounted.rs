//! The one wrapper around every backend: it counts, and it finishes what the kernel left half done.
//!
//! Short reads before the end of the file, EINTR and EAGAIN are submitted again here, so that backends cannot
//! differ in how they are measured or in what they promise.

use std::io;

use super::backend::{Backend, Capabilities, Completion, ReadRequest};
use super::pool::Pool;
use super::report::ReaderReport;

/// How often one read is submitted again before its error is believed.
const ATTEMPTS_MAX: u32 = 64;

/// A read under way: the caller's request, and how far it has come.
#[derive(Debug, Clone, Copy)]
struct Pending {
    request: ReadRequest,
    done: u32,
    attempts: u32,
}

/// A backend whose completions are whole: each carries the bytes asked for, or fewer at the end of the file only,
/// or an errno that trying again did not cure.
pub struct Accounted {
    backend: Box<dyn Backend>,
    alignment: u32,
    pending: Vec<Pending>,
    free: Vec<u32>,
    again: Vec<ReadRequest>,
    outgoing: Vec<ReadRequest>,
    incoming: Vec<Completion>,
    short_reads: u64,
    retries: u64,
    bytes: u64,
    // Whether an earlier submission failed: what was handed over then may or may not complete.
    broken: bool,
}

impl Accounted {
    /// Wraps `backend`; `alignment` is what offset, length and slot of a read must be a multiple of, in bytes.
    pub fn new(backend: Box<dyn Backend>, alignment: u32) -> Accounted {
        Accounted {
            backend,
            alignment: alignment.max(1),
            pending: Vec::new(),
            free: Vec::new(),
            again: Vec::new(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            short_reads: 0,
            retries: 0,
            bytes: 0,
            broken: false,
        }
    }

    /// Hands `requests` to the backend as one batch.
    ///
    /// # Errors
    /// The backend's; after one, every further call fails.
    pub fn submit(&mut self, requests: &[ReadRequest]) -> io::Result<()> {
        self.enlist(requests)?;
        let result = self.backend.submit(&self.outgoing);
        self.note(result)
    }

    /// Hands `requests` over and waits for at least `min` whole completions, of these or of earlier reads.
    ///
    /// # Errors
    /// The backend's.
    pub fn submit_and_wait(
        &mut self,
        requests: &[ReadRequest],
        min: usize,
        out: &mut Vec<Completion>,
    ) -> io::Result<()> {
        self.enlist(requests)?;
        let result = self.backend.submit_and_wait(&self.outgoing, min, &mut self.incoming);
        self.note(result)?;
        self.finish(min, out)
    }

    /// Appends whole completions to `out`: at least `min`, or all in flight if fewer are.
    ///
    /// # Errors
    /// The backend's.
    pub fn wait(&mut self, min: usize, out: &mut Vec<Completion>) -> io::Result<()> {
        self.usable()?;
        self.backend.wait(min, &mut self.incoming)?;
        self.finish(min, out)
    }

    /// Reads in flight.
    pub fn in_flight(&self) -> usize {
        self.pending.len() - self.free.len()
    }

    /// What the kernel set up.
    pub fn capabilities(&self) -> &Capabilities {
        self.backend.capabilities()
    }

    /// The memory that reads go to.
    pub fn pool(&self) -> &Pool {
        self.backend.pool()
    }

    /// The file's size now, in bytes.
    pub fn file_size(&self) -> io::Result<u64> {
        self.backend.file_size()
    }

    /// Writes the counts and modes that this layer and the backend know into `report`.
    pub fn report(&self, report: &mut ReaderReport) {
        let counts = self.backend.counts();
        let capabilities = self.backend.capabilities();
        report.backend = capabilities.name.to_owned();
        report.ring_flags = capabilities.ring_flags.clone();
        report.sq_entries = capabilities.sq_entries;
        report.sqes = counts.sqes;
        report.enter_calls = counts.enter_calls;
        report.wakeups = counts.wakeups;
        report.cqes = counts.cqes;
        report.pread_calls = counts.pread_calls;
        report.short_reads = self.short_reads;
        report.retries = self.retries;
        report.bytes_read = self.bytes;
        report.sqpoll = self.backend.sqpoll();
        report.pool_bytes = self.backend.pool().len() as u64;
        report.pool_huge_bytes = self.backend.pool().huge_bytes();
    }

    fn usable(&self) -> io::Result<()> {
        if self.broken {
            Err(io::Error::other("an earlier submission failed; the reader has to be reopened"))
        } else {
            Ok(())
        }
    }

    fn note(&mut self, result: io::Result<()>) -> io::Result<()> {
        self.broken |= result.is_err();
        result
    }

    /// Books `requests` and leaves them, under our own tokens, in `outgoing`.
    fn enlist(&mut self, requests: &[ReadRequest]) -> io::Result<()> {
        self.usable()?;
        self.outgoing.clear();
        for &request in requests {
            let entry = Pending { request, done: 0, attempts: 0 };
            let index = match self.free.pop() {
                Some(index) => {
                    self.pending[index as usize] = entry;
                    index
                }
                None => {
                    self.pending.push(entry);
                    self.pending.len() as u32 - 1
                }
            };
            self.bytes += u64::from(request.len);
            self.outgoing.push(ReadRequest { token: u64::from(index), ..request });
        }
        Ok(())
    }

    /// Settles what came in; waits on until `min` reads are whole.
    fn finish(&mut self, min: usize, out: &mut Vec<Completion>) -> io::Result<()> {
        let before = out.len();
        loop {
            let mut incoming = std::mem::take(&mut self.incoming);
            for completion in incoming.drain(..) {
                if let Some(whole) = self.settle(completion)? {
                    out.push(whole);
                }
            }
            self.incoming = incoming;
            let missing = min.saturating_sub(out.len() - before).min(self.in_flight());
            if self.again.is_empty() && missing == 0 {
                return Ok(());
            }
            let again = std::mem::take(&mut self.again);
            let result = self.backend.submit_and_wait(&again, missing, &mut self.incoming);
            self.note(result)?;
        }
    }

    /// One completion of the backend: a whole one for the caller, or a request to submit again.
    fn settle(&mut self, completion: Completion) -> io::Result<Option<Completion>> {
        let index = completion.token as usize;
        let Some(pending) = self.pending.get_mut(index) else {
            return Err(io::Error::other(format!("a completion with the unknown token {}", completion.token)));
        };
        let request = pending.request;
        pending.attempts += 1;
        let result = match completion.result {
            Err(libc::EINTR | libc::EAGAIN) if pending.attempts < ATTEMPTS_MAX => {
                self.retries += 1;
                None
            }
            Err(errno) => Some(Err(errno)),
            Ok(bytes) => {
                let reached = pending.done.saturating_add(bytes).min(request.len);
                let at_end = || self.backend.file_size().map(|size| request.offset + u64::from(reached) >= size);
                if reached == request.len || at_end()? {
                    Some(Ok(reached))
                } else if pending.attempts < ATTEMPTS_MAX {
                    // Direct reads continue at an aligned offset only: the bytes behind it are read twice.
                    pending.done = reached - reached % self.alignment;
                    self.short_reads += 1;
                    None
                } else {
                    // The file is longer than what can be read of it.
                    Some(Err(libc::EIO))
                }
            }
        };
        match result {
            Some(result) => {
                self.free.push(index as u32);
                Ok(Some(Completion { token: request.token, result }))
            }
            None => {
                let done = pending.done;
                let rest = request.len - done;
                self.bytes += u64::from(rest);
                self.again.push(ReadRequest {
                    offset: request.offset + u64::from(done),
                    len: rest,
                    slot: request.slot + done as usize,
                    token: index as u64,
                });
                Ok(None)
            }
        }
    }
}
