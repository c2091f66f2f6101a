//! Opens a file for reading and puts a backend on it: one way for every reader.

use std::path::Path;
use std::sync::Arc;

use super::PageError;
use super::backend::Backend;
use super::config::{BackendKind, Direct, ReaderConfig};
use super::descriptor::Descriptor;
use super::direct::DirectProof;
use super::pool::Pool;
use super::pread::PreadBackend;
use super::report::ReaderReport;
use super::uring::{RingSetup, UringBackend};

/// A file that is open as asked, before anything reads it.
#[derive(Debug)]
pub struct OpenFile {
    descriptor: Arc<Descriptor>,
    path: String,
    report: ReaderReport,
}

impl OpenFile {
    /// Opens `path` read-only; with `direct = required` the proof has to be of this very file.
    ///
    /// # Errors
    /// [`PageError`]: open(2), or direct I/O without a proof.
    pub fn open(path: &Path, direct: Direct, proof: Option<&DirectProof>) -> Result<OpenFile, PageError> {
        let required = direct == Direct::Required;
        let descriptor =
            Arc::new(Descriptor::open(path, required).map_err(|source| PageError::io("open", path, source))?);
        let mut report = ReaderReport { alignment_bytes: 1, ..ReaderReport::default() };
        let path = path.display().to_string();
        if required {
            let proof = proof.filter(|proof| proof.file == descriptor.id() && descriptor.is_direct());
            let Some(proof) = proof else { return Err(PageError::Unproven { path }) };
            report.direct = true;
            report.direct_proof = Some(proof.how.clone());
            report.alignment_bytes = proof.offset_alignment_bytes;
        }
        Ok(OpenFile { descriptor, path, report })
    }

    /// What offset and length of a read have to be a multiple of, in bytes.
    pub fn alignment_bytes(&self) -> u32 {
        self.report.alignment_bytes
    }

    /// The file's size now, in bytes.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn size(&self) -> Result<u64, PageError> {
        self.descriptor.size().map_err(|source| PageError::io("stat", &self.path, source))
    }

    /// Puts the backend of `config` on the file, over a pool of `pool_bytes`, with room for `in_flight_max` reads.
    /// Answers it together with a report of the modes known so far, and the path for messages.
    ///
    /// # Errors
    /// [`PageError`]: memory for the pool, io_uring_setup(2).
    pub fn backend(
        self,
        config: &ReaderConfig,
        pool_bytes: usize,
        in_flight_max: usize,
    ) -> Result<(Box<dyn Backend>, ReaderReport, String), PageError> {
        let pool = Pool::new(pool_bytes, config.pool)
            .map_err(|source| PageError::io("map the pool for", &self.path, source))?;
        let sqpoll = (config.backend == BackendKind::UringSqpoll).then_some((config.sqpoll_idle_ms, config.sqpoll_cpu));
        let backend: Box<dyn Backend> = match config.backend {
            BackendKind::Pread => Box::new(PreadBackend::new(self.descriptor, pool)),
            BackendKind::Uring | BackendKind::UringSqpoll => {
                Box::new(UringBackend::new(self.descriptor, pool, RingSetup { in_flight_max, sqpoll })?)
            }
        };
        Ok((backend, self.report, self.path))
    }
}
