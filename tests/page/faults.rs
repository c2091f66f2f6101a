//! Faults behind the Backend trait: what kernels do, on demand.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ioscope::page::backend::{Backend, BackendCounts, Capabilities, Completion, ReadRequest};
use ioscope::page::config::{ReaderConfig, Submit};
use ioscope::page::descriptor::Descriptor;
use ioscope::page::layout::Layout;
use ioscope::page::pool::Pool;
use ioscope::page::pread::PreadBackend;
use ioscope::page::report::ReaderReport;
use ioscope::page::{PageError, PageReader};
use proptest::prelude::*;

use crate::sample::{Random, compare, file_of, walk};

/// What goes wrong, each in per cent of reads.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub short: u64,
    pub interrupted: u64,
    pub again: u64,
    pub reorder: bool,
    /// Completions are held back until somebody waits.
    pub late: bool,
    /// Reads that touch this byte fail with EIO: how many times.
    pub bad_byte: Option<(u64, u32)>,
    pub alignment: u64,
    pub seed: u64,
}

/// A pread backend that does to reads what a kernel may do.
pub struct Faulty {
    inner: PreadBackend,
    faults: Faults,
    random: Random,
    held: Vec<Completion>,
    failures_left: u32,
    interruptions: Arc<AtomicU64>,
    requests: HashMap<u64, ReadRequest>,
}

impl Faulty {
    /// Over a pool of `pool_bytes`; EINTR and EAGAIN that were handed out are counted in `interruptions`.
    pub fn new(path: &std::path::Path, pool: Pool, faults: Faults, interruptions: &Arc<AtomicU64>) -> Faulty {
        Faulty {
            inner: PreadBackend::new(Arc::new(Descriptor::open(path, false).unwrap()), pool),
            faults,
            random: Random(faults.seed),
            held: Vec::new(),
            failures_left: faults.bad_byte.map_or(0, |(_, times)| times),
            interruptions: Arc::clone(interruptions),
            requests: HashMap::new(),
        }
    }

    fn distort(&mut self, mut completion: Completion) -> Completion {
        let request = self.requests[&completion.token];
        let dice = self.random.below(100);
        if let Some((byte, _)) = self.faults.bad_byte
            && (request.offset..request.offset + u64::from(request.len)).contains(&byte)
            && self.failures_left > 0
        {
            self.failures_left -= 1;
            completion.result = Err(libc::EIO);
        } else if dice < self.faults.interrupted {
            completion.result = Err(libc::EINTR);
        } else if dice < self.faults.interrupted + self.faults.again {
            completion.result = Err(libc::EAGAIN);
        } else if dice < self.faults.interrupted + self.faults.again + self.faults.short
            && let Ok(bytes) = completion.result
        {
            // A short read ends where the device's blocks do.
            let part = self.random.below(u64::from(bytes) + 1) / self.faults.alignment * self.faults.alignment;
            completion.result = Ok(part as u32);
        }
        completion
    }
}

impl Backend for Faulty {
    fn submit(&mut self, requests: &[ReadRequest]) -> io::Result<()> {
        for request in requests {
            assert_eq!(request.offset % self.faults.alignment, 0, "{request:?}");
            assert_eq!(u64::from(request.len) % self.faults.alignment, 0, "{request:?}");
            assert_eq!(request.slot as u64 % self.faults.alignment, 0, "{request:?}");
            assert!(self.held.iter().all(|held| held.token != request.token), "a token is in flight twice");
            let (start, end) = (request.slot, request.slot + request.len as usize);
            let overlaps = |other: &ReadRequest| other.slot < end && start < other.slot + other.len as usize;
            assert!(
                !self.held.iter().any(|held| overlaps(&self.requests[&held.token])),
                "bytes of the pool are reused before the read into them has ended"
            );
            self.requests.insert(request.token, *request);
        }
        self.inner.submit(requests)?;
        let mut done = Vec::new();
        self.inner.wait(0, &mut done)?;
        for completion in done {
            let distorted = self.distort(completion);
            self.held.push(distorted);
        }
        Ok(())
    }

    fn wait(&mut self, min: usize, out: &mut Vec<Completion>) -> io::Result<()> {
        if min == 0 && self.faults.late {
            return Ok(());
        }
        let mut count = if self.faults.late { min.min(self.held.len()) } else { self.held.len() };
        while count > 0 {
            let index = if self.faults.reorder { self.random.below(self.held.len() as u64) as usize } else { 0 };
            let completion = self.held.remove(index);
            if matches!(completion.result, Err(libc::EINTR | libc::EAGAIN)) {
                self.interruptions.fetch_add(1, Ordering::Relaxed);
            }
            out.push(completion);
            count -= 1;
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.held.len()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn counts(&self) -> BackendCounts {
        self.inner.counts()
    }

    fn pool(&self) -> &Pool {
        self.inner.pool()
    }

    fn file_size(&self) -> io::Result<u64> {
        self.inner.file_size()
    }
}

fn reader(path: &std::path::Path, config: &ReaderConfig, faults: Faults) -> PageReader {
    counting_reader(path, config, faults).0
}

/// A reader over faults, and the number of EINTR and EAGAIN that it has met.
fn counting_reader(path: &std::path::Path, config: &ReaderConfig, faults: Faults) -> (PageReader, Arc<AtomicU64>) {
    let interruptions = Arc::new(AtomicU64::new(0));
    let layout = Layout::of(config, 4096, faults.alignment as u32).unwrap();
    let pool = Pool::new(layout.pool_bytes, config.pool).unwrap();
    let faulty = Faulty::new(path, pool, faults, &interruptions);
    let reader = PageReader::with_backend(Box::new(faulty), layout, config, ReaderReport::default()).unwrap();
    (reader, interruptions)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn bytes_survive_short_reads_interruptions_and_reordering(
        short in 0_u64..40, interrupted in 0_u64..20, again in 0_u64..20, reorder: bool, late: bool, seed: u64,
        window in 0_u32..70, in_flight in 1_u32..6, gap in 0_u32..9, coalesced: bool,
        alignment in prop::sample::select(vec![1_u64, 512, 4096, 16_384]), tail in 0_usize..5000,
    ) {
        let (file, bytes) = file_of(4096 * 300 + tail);
        let submit = if coalesced { Submit::Coalesced } else { Submit::PerPage };
        let config = ReaderConfig { window, in_flight, gap, submit, ..ReaderConfig::default() };
        let faults = Faults { short, interrupted, again, reorder, late, alignment, seed, bad_byte: None };
        let (mut reader, interruptions) = counting_reader(file.path(), &config, faults);
        let pages = bytes.len().div_ceil(4096) as u64;
        compare(&mut reader, 4096, &bytes, &walk(pages, &mut Random(seed)), &format!("{faults:?} {config:?}"));
        prop_assert_eq!(reader.report().retries, interruptions.load(Ordering::Relaxed));
    }
}

#[test]
fn a_bad_page_fails_whoever_asks_for_it_and_nobody_else() {
    let (file, bytes) = file_of(4096 * 200);
    for submit in [Submit::PerPage, Submit::Coalesced] {
        for window in [0, 32] {
            let config = ReaderConfig { window, submit, ..ReaderConfig::default() };
            let faults = Faults { alignment: 1, bad_byte: Some((4096 * 77 + 5, u32::MAX)), ..Faults::default() };
            let mut reader = reader(file.path(), &config, faults);
            let before: Vec<u64> = (0..77).collect();
            compare(&mut reader, 4096, &bytes, &before, "before the bad page");
            let error = reader.read_at(4096 * 77, &mut [0; 4096]).unwrap_err();
            assert!(matches!(&error, PageError::Io { source, .. } if source.raw_os_error() == Some(libc::EIO)));
            assert!(error.to_string().contains("page 78"), "{error}");
            let after: Vec<u64> = (78..200).collect();
            compare(&mut reader, 4096, &bytes, &after, "after the bad page");
        }
    }
}

#[test]
fn a_page_that_failed_while_it_was_read_ahead_is_read_again() {
    let (file, bytes) = file_of(4096 * 200);
    for submit in [Submit::PerPage, Submit::Coalesced] {
        let config = ReaderConfig { submit, ..ReaderConfig::default() };
        let faults = Faults { alignment: 1, bad_byte: Some((4096 * 77 + 5, 1)), ..Faults::default() };
        let mut reader = reader(file.path(), &config, faults);
        compare(&mut reader, 4096, &bytes, &(0..200).collect::<Vec<_>>(), "a passing fault");
    }
}

#[test]
fn a_read_that_is_interrupted_for_ever_is_an_error_in_the_end() {
    let (file, _) = file_of(4096 * 4);
    for (faults, errno) in [
        (Faults { interrupted: 100, alignment: 1, ..Faults::default() }, libc::EINTR),
        (Faults { again: 100, alignment: 1, ..Faults::default() }, libc::EAGAIN),
        // The file goes on, and nothing of it comes.
        (Faults { short: 100, alignment: 4096, ..Faults::default() }, libc::EIO),
    ] {
        let config = ReaderConfig { window: 0, ..ReaderConfig::default() };
        let mut reader = reader(file.path(), &config, faults);
        let error = match reader.read_at(0, &mut [0; 4096]) {
            Err(PageError::Io { source, .. }) => source.raw_os_error(),
            // A short read may by chance be the whole page.
            Ok(4096) if faults.short > 0 => continue,
            other => panic!("{faults:?}: {other:?}"),
        };
        assert_eq!(error, Some(errno), "{faults:?}");
    }
}
