//! Turso's `IO` trait over the page reader: forwards to the platform's I/O, and takes over reads of the main
//! database file.
//!
//! It stays asynchronous: `pread` completes at once where the page was read ahead, else queues a read that `step`
//! waits for.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use turso_core::io::clock::{MonotonicInstant, WallClockInstant};
use turso_core::io::{FileId, FileSyncType, SharedWalLockKind, SharedWalMappedRegion};
use turso_core::{Buffer, Clock, Completion, CompletionError, File, IO, LimboError, OpenFlags, UnixIO};

use crate::page::config::ReaderConfig;
use crate::page::direct::DirectProof;
use crate::page::reader::{Fetch, Ticket};
use crate::page::report::ReaderReport;
use crate::page::{PageError, PageReader};

/// How the main database file is read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The path that Turso opens.
    pub path: String,
    /// Page size of the database, in bytes.
    pub page_size: u32,
    /// The reader's settings.
    pub reader: ReaderConfig,
    /// The proof that direct I/O calls for.
    pub proof: Option<DirectProof>,
}

/// The platform's I/O, but for reads of the main database file.
pub struct ScopeIo {
    platform: UnixIO,
    settings: Settings,
    shared: Arc<Shared>,
}

/// Readers of the main database file, one per thread that calls: Turso shares one file among all threads.
#[derive(Default)]
struct Shared {
    readers: Mutex<HashMap<ThreadId, Arc<Mutex<ThreadReader>>>>,
    error: Mutex<Option<PageError>>,
}

/// One thread's reader, and the reads that its `step` has to finish.
struct ThreadReader {
    reader: PageReader,
    waiting: Vec<Waiting>,
}

/// A page that Turso waits for.
struct Waiting {
    ticket: Ticket,
    inner: usize,
    position: u64,
    completion: Completion,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ScopeIo {
    /// # Errors
    /// The platform's I/O cannot be had.
    pub fn new(settings: Settings) -> turso_core::Result<ScopeIo> {
        Ok(ScopeIo { platform: UnixIO::new()?, settings, shared: Arc::default() })
    }

    /// The last failure of a reader, which Turso reduces to a kind.
    pub fn take_error(&self) -> Option<PageError> {
        lock(&self.shared.error).take()
    }

    /// Ends every reader and sums what they did; `None` if nothing was read.
    pub fn finish(&self) -> Option<ReaderReport> {
        let readers = std::mem::take(&mut *lock(&self.shared.readers));
        readers.into_values().map(|reader| lock(&reader).reader.report()).reduce(ReaderReport::plus)
    }
}

impl Shared {
    /// Every reader, the calling thread's first.
    fn readers(&self) -> Vec<Arc<Mutex<ThreadReader>>> {
        let readers = lock(&self.readers);
        let own = thread::current().id();
        let mut all: Vec<_> = readers.get(&own).cloned().into_iter().collect();
        all.extend(readers.iter().filter(|(id, _)| **id != own).map(|(_, reader)| Arc::clone(reader)));
        all
    }

    /// The calling thread's reader, made when it first asks.
    fn own(&self, settings: &Settings) -> Result<Arc<Mutex<ThreadReader>>, PageError> {
        let mut readers = lock(&self.readers);
        let id = thread::current().id();
        if let Some(reader) = readers.get(&id) {
            return Ok(Arc::clone(reader));
        }
        let reader =
            PageReader::open(settings.path.as_ref(), settings.page_size, &settings.reader, settings.proof.as_ref())?;
        let reader = Arc::new(Mutex::new(ThreadReader { reader, waiting: Vec::new() }));
        readers.insert(id, Arc::clone(&reader));
        Ok(reader)
    }

    /// Keeps `error` for the engine's message and gives Turso the kind.
    fn fail(&self, error: PageError) -> CompletionError {
        let kind = match &error {
            PageError::Io { source, .. } => source.kind(),
            _ => io::ErrorKind::Other,
        };
        *lock(&self.error) = Some(error);
        CompletionError::IOError(kind, "pread")
    }

    /// Completes `completion` with the outcome of its read.
    fn complete(&self, completion: &Completion, outcome: Result<usize, PageError>) {
        match outcome {
            // A read is at most a page or two, far below i32::MAX.
            Ok(bytes) => completion.complete(bytes as i32),
            Err(error) => completion.error(self.fail(error)),
        }
    }
}

impl ThreadReader {
    /// Takes every read that has come in. A page that failed while it was read ahead is read once more, alone.
    fn collect(&mut self, done: &mut Vec<(Completion, Result<usize, PageError>)>) {
        let mut index = 0;
        while index < self.waiting.len() {
            if !self.reader.is_ready(&self.waiting[index].ticket) {
                index += 1;
                continue;
            }
            let Waiting { ticket, inner, position, completion } = self.waiting.swap_remove(index);
            let buffer = completion.as_read().buf().as_mut_slice();
            let outcome = self.reader.take(ticket, inner, buffer).or_else(|_| self.reader.read_fresh(position, buffer));
            done.push((completion, outcome));
        }
    }

    /// Waits until at least one read that Turso waits for has come in.
    fn step(&mut self) -> Vec<(Completion, Result<usize, PageError>)> {
        let mut done = Vec::new();
        while done.is_empty() && !self.waiting.is_empty() {
            if let Err(error) = self.reader.wait(1) {
                // The ring is gone: every read that waits fails, the first with the reason.
                let mut reason = Some(error);
                for waiting in self.waiting.drain(..) {
                    let error = reason.take().unwrap_or(PageError::Config("the reader has failed".to_owned()));
                    done.push((waiting.completion, Err(error)));
                }
                break;
            }
            self.collect(&mut done);
        }
        done
    }
}

impl Clock for ScopeIo {
    fn current_time_monotonic(&self) -> MonotonicInstant {
        self.platform.current_time_monotonic()
    }

    fn current_time_wall_clock(&self) -> WallClockInstant {
        self.platform.current_time_wall_clock()
    }
}

impl IO for ScopeIo {
    fn open_file(&self, path: &str, flags: OpenFlags, direct: bool) -> turso_core::Result<Arc<dyn File>> {
        let file = self.platform.open_file(path, flags, direct)?;
        if path != self.settings.path {
            return Ok(file);
        }
        Ok(Arc::new(ScopeFile { file, settings: self.settings.clone(), shared: Arc::clone(&self.shared) }))
    }

    fn open_shared_wal_file(&self, path: &str) -> turso_core::Result<Arc<dyn File>> {
        self.platform.open_shared_wal_file(path)
    }

    fn remove_file(&self, path: &str) -> turso_core::Result<()> {
        self.platform.remove_file(path)
    }

    fn supports_shared_wal_coordination(&self) -> bool {
        self.platform.supports_shared_wal_coordination()
    }

    fn step(&self) -> turso_core::Result<()> {
        for reader in self.shared.readers() {
            let done = lock(&reader).step();
            // Completions run Turso's code, which may read on: no lock is held.
            let any = !done.is_empty();
            for (completion, outcome) in done {
                self.shared.complete(&completion, outcome);
            }
            if any {
                break;
            }
        }
        self.platform.step()
    }

    fn file_id(&self, path: &str) -> turso_core::Result<FileId> {
        self.platform.file_id(path)
    }
}

/// The main database file.
struct ScopeFile {
    file: Arc<dyn File>,
    settings: Settings,
    shared: Arc<Shared>,
}

impl ScopeFile {
    fn read(&self, position: u64, completion: &Completion) -> Result<Option<usize>, PageError> {
        let reader = self.shared.own(&self.settings)?;
        let mut reader = lock(&reader);
        let buffer = completion.as_read().buf().as_mut_slice();
        let unit_bytes = reader.reader.unit_bytes();
        let inner = (position % unit_bytes) as usize;
        if buffer.len() < self.settings.page_size as usize {
            // The header, by itself: it shows whether the file has changed.
            return reader.reader.read_fresh(position, buffer).map(Some);
        }
        if inner + buffer.len() > unit_bytes as usize {
            return reader.reader.read_at(position, buffer).map(Some);
        }
        match reader.reader.start_at(position)? {
            Fetch::Ready(ticket) => {
                let taken = reader.reader.take(ticket, inner, buffer);
                taken.or_else(|_| reader.reader.read_fresh(position, buffer)).map(Some)
            }
            Fetch::Pending(ticket) => {
                reader.waiting.push(Waiting { ticket, inner, position, completion: completion.clone() });
                Ok(None)
            }
            Fetch::Busy => Err(PageError::Config(
                "more reads at once than the reader has slots for; this is a defect of ioscope".to_owned(),
            )),
        }
    }
}

impl File for ScopeFile {
    fn lock_file(&self, exclusive: bool) -> turso_core::Result<()> {
        self.file.lock_file(exclusive)
    }

    fn unlock_file(&self) -> turso_core::Result<()> {
        self.file.unlock_file()
    }

    fn pread(&self, position: u64, completion: Completion) -> turso_core::Result<Completion> {
        match self.read(position, &completion) {
            Ok(None) => {}
            Ok(Some(bytes)) => self.shared.complete(&completion, Ok(bytes)),
            Err(error) => return Err(LimboError::CompletionError(self.shared.fail(error))),
        }
        Ok(completion)
    }

    fn pwrite(&self, position: u64, buffer: Arc<Buffer>, completion: Completion) -> turso_core::Result<Completion> {
        self.file.pwrite(position, buffer, completion)
    }

    fn sync(&self, completion: Completion, kind: FileSyncType) -> turso_core::Result<Completion> {
        self.file.sync(completion, kind)
    }

    fn pwritev(
        &self,
        position: u64,
        buffers: Vec<Arc<Buffer>>,
        completion: Completion,
    ) -> turso_core::Result<Completion> {
        self.file.pwritev(position, buffers, completion)
    }

    fn size(&self) -> turso_core::Result<u64> {
        self.file.size()
    }

    fn truncate(&self, len: u64, completion: Completion) -> turso_core::Result<Completion> {
        self.file.truncate(len, completion)
    }

    fn shared_wal_lock_byte(&self, offset: u64, exclusive: bool, kind: SharedWalLockKind) -> turso_core::Result<()> {
        self.file.shared_wal_lock_byte(offset, exclusive, kind)
    }

    fn shared_wal_try_lock_byte(
        &self,
        offset: u64,
        exclusive: bool,
        kind: SharedWalLockKind,
    ) -> turso_core::Result<bool> {
        self.file.shared_wal_try_lock_byte(offset, exclusive, kind)
    }

    fn shared_wal_unlock_byte(&self, offset: u64, kind: SharedWalLockKind) -> turso_core::Result<()> {
        self.file.shared_wal_unlock_byte(offset, kind)
    }

    fn shared_wal_set_len(&self, len: u64) -> turso_core::Result<()> {
        self.file.shared_wal_set_len(len)
    }

    fn shared_wal_map(&self, offset: u64, len: usize) -> turso_core::Result<Box<dyn SharedWalMappedRegion>> {
        self.file.shared_wal_map(offset, len)
    }
}
