//! The synchronous backend: one `pread(2)` a request, completed inside the submission.
#![expect(unsafe_code, reason = "borrows pool memory mutably")]

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::backend::{Backend, BackendCounts, Capabilities, Completion, ReadRequest, check};
use super::descriptor::Descriptor;
use super::pool::Pool;

/// One `pread(2)` per request.
pub struct PreadBackend {
    file: Arc<Descriptor>,
    pool: Pool,
    done: Vec<Completion>,
    counts: BackendCounts,
    capabilities: Capabilities,
}

impl PreadBackend {
    /// Reads `file` into `pool`.
    pub fn new(file: Arc<Descriptor>, pool: Pool) -> PreadBackend {
        let capabilities = Capabilities { name: "pread", in_flight_max: usize::MAX, ..Capabilities::default() };
        PreadBackend { file, pool, done: Vec::new(), counts: BackendCounts::default(), capabilities }
    }
}

impl Backend for PreadBackend {
    fn submit(&mut self, requests: &[ReadRequest]) -> io::Result<()> {
        for request in requests {
            check(request, &self.pool)?;
        }
        for request in requests {
            self.counts.pread_calls += 1;
            // SAFETY: in bounds by `check`; this backend has nothing in flight, and `&mut self` excludes readers.
            let buffer = unsafe { self.pool.slice_mut(request.slot..request.slot + request.len as usize) };
            let result = match self.file.file().read_at(buffer, request.offset) {
                // A read is at most `len`, which is a u32.
                Ok(bytes) => Ok(bytes as u32),
                Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
            };
            self.done.push(Completion { token: request.token, result });
        }
        Ok(())
    }

    fn wait(&mut self, _min: usize, out: &mut Vec<Completion>) -> io::Result<()> {
        out.append(&mut self.done);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.done.len()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn counts(&self) -> BackendCounts {
        self.counts
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn file_size(&self) -> io::Result<u64> {
        self.file.size()
    }
}
