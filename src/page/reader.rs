//! The page reader: gives the pages of one open file, and reads ahead of whoever asks.

mod view;

use std::io;
use std::path::Path;

use super::PageError;
use super::accounted::Accounted;
use super::backend::{Backend, Completion, ReadRequest};
use super::config::{ReaderConfig, Submit};
use super::direct::DirectProof;
use super::frames::{Frames, UnitStatus};
use super::layout::Layout;
use super::open::OpenFile;
use super::policy::{Policy, Sequential};
use super::report::ReaderReport;

/// Marks the token of a single read; the low bits are its slot.
const SINGLE: u64 = 1 << 63;
/// Low half of a frame's token when one read fills the whole frame.
const WHOLE_FRAME: u64 = u32::MAX as u64;

/// A unit that was asked for.
#[derive(Debug)]
pub enum Fetch {
    /// Its bytes can be taken at once.
    Ready(Ticket),
    /// Its bytes are on their way: [`PageReader::wait`], then try again.
    Pending(Ticket),
    /// No slot is free until some pending ticket is taken.
    Busy,
}

/// A claim on the bytes of one unit. It has to be taken with [`PageReader::take`].
#[derive(Debug)]
#[must_use]
pub struct Ticket {
    unit: u64,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Frame(usize),
    Single(usize),
}

/// A slot for one unit that nobody read ahead.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Single {
    Free,
    Reading,
    /// Being read, and nobody waits for it.
    Abandoned,
    Ended(Result<u32, i32>),
}

/// Reads the pages of one open file.
pub struct PageReader {
    backend: Accounted,
    policy: Box<dyn Policy>,
    frames: Frames,
    singles: Vec<Single>,
    queued: Vec<ReadRequest>,
    completions: Vec<Completion>,
    layout: Layout,
    submit: Submit,
    size: u64,
    page_size: u64,
    report: ReaderReport,
    path: String,
}

impl PageReader {
    /// Opens `path` for reading in pages of `page_size` bytes.
    ///
    /// # Errors
    /// [`PageError`]: settings out of range, open(2), io_uring_setup(2), or direct I/O without a proof for
    /// this very file.
    pub fn open(
        path: &Path,
        page_size: u32,
        config: &ReaderConfig,
        proof: Option<&DirectProof>,
    ) -> Result<PageReader, PageError> {
        PageReader::open_holding(path, page_size, config, proof, 0)
    }

    /// As [`PageReader::open`], with room for `held_pages` pages whose tickets the caller keeps while it asks for
    /// further ones.
    ///
    /// # Errors
    /// As for [`PageReader::open`].
    pub fn open_holding(
        path: &Path,
        page_size: u32,
        config: &ReaderConfig,
        proof: Option<&DirectProof>,
        held_pages: u32,
    ) -> Result<PageReader, PageError> {
        let file = OpenFile::open(path, config.direct, proof)?;
        let layout = Layout::holding(config, page_size, file.alignment_bytes(), held_pages)?;
        let (backend, report, path) = file.backend(config, layout.pool_bytes, layout.in_flight_max)?;
        let mut reader = PageReader::with_backend(backend, layout, config, report)?;
        reader.path = path;
        Ok(reader)
    }

    /// A reader over any backend, whose pool must hold `layout.pool_bytes`. This is how faults are injected.
    ///
    /// # Errors
    /// The file's size cannot be had.
    pub fn with_backend(
        backend: Box<dyn Backend>,
        layout: Layout,
        config: &ReaderConfig,
        report: ReaderReport,
    ) -> Result<PageReader, PageError> {
        let backend = Accounted::new(backend, layout.alignment);
        let size = backend.file_size().map_err(|e| PageError::io("stat", "the database", e))?;
        if backend.pool().len() < layout.pool_bytes {
            return Err(PageError::Config(format!("a pool of {} bytes for {layout:?}", backend.pool().len())));
        }
        Ok(PageReader {
            policy: Box::new(Sequential::new(layout.window_units, config.in_flight, layout.gap_units)),
            frames: Frames::new(layout.frames, layout.frame_bytes()),
            singles: vec![Single::Free; layout.singles],
            queued: Vec::new(),
            completions: Vec::new(),
            submit: config.submit,
            size,
            page_size: u64::from(layout.page_size),
            layout,
            backend,
            report,
            path: String::new(),
        })
    }

    /// The file's size when the reader last looked, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of a unit: what one read may not be smaller than.
    pub fn unit_bytes(&self) -> u64 {
        self.layout.unit_bytes()
    }

    /// Reads the bytes at `offset` into `buffer`, waiting for them. Returns how many there were: fewer than asked
    /// for at the end of the file only.
    ///
    /// # Errors
    /// The kernel's errno for a page that was asked for. A page that failed while it was read ahead is read again.
    pub fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, PageError> {
        self.each_unit(offset, buffer, |reader, unit, inner, part| {
            let ticket = reader.fetch_unit(unit)?;
            reader.take(ticket, inner, part)
        })
    }

    /// Reads the bytes at `offset` anew, whatever was read ahead, and without telling the policy. For the few
    /// bytes by which an engine sees whether the file has changed.
    ///
    /// # Errors
    /// As for [`PageReader::read_at`].
    pub fn read_fresh(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, PageError> {
        self.each_unit(offset, buffer, |reader, unit, inner, part| reader.read_alone(unit, inner, part))
    }

    /// Asks for the unit that holds the byte at `offset`, without waiting. A unit is a page, or the file's alignment
    /// where that is larger.
    ///
    /// # Errors
    /// The submission failed; reads that fail show when the ticket is taken.
    pub fn start_at(&mut self, offset: u64) -> Result<Fetch, PageError> {
        self.start(self.layout.unit_of(offset))
    }

    /// Whether a ticket's bytes are there.
    pub fn is_ready(&self, ticket: &Ticket) -> bool {
        match ticket.place {
            Place::Frame(index) => self.frames.get(index).status(ticket.unit) != UnitStatus::Reading,
            Place::Single(index) => self.singles[index] != Single::Reading,
        }
    }

    /// Submits what is queued and waits for at least `min` reads, of whatever page.
    ///
    /// # Errors
    /// The ring cannot be used any more.
    pub fn wait(&mut self, min: usize) -> Result<(), PageError> {
        let mut completions = std::mem::take(&mut self.completions);
        let result = if self.queued.is_empty() {
            self.backend.wait(min, &mut completions)
        } else {
            self.backend.submit_and_wait(&self.queued, min, &mut completions)
        };
        self.queued.clear();
        for completion in completions.drain(..) {
            self.absorb(completion);
        }
        self.completions = completions;
        result.map_err(|e| self.error("wait for reads", 0, e))
    }

    /// Drops every page read ahead: others may have written since. Also looks at the file's size anew.
    ///
    /// # Errors
    /// The file's size cannot be had.
    pub fn invalidate(&mut self) -> Result<(), PageError> {
        self.frames.invalidate();
        self.policy.forget();
        self.size = self.backend.file_size().map_err(|e| self.error("stat", 0, e))?;
        Ok(())
    }

    /// Counts so far, and the modes in force.
    pub fn report(&self) -> ReaderReport {
        let mut report = self.report.clone();
        self.backend.report(&mut report);
        let per_unit = self.layout.pages_per_unit();
        report.pages_wasted = self.frames.wasted() * per_unit;
        // Pages are numbered from 1.
        let pages = |units: std::ops::Range<u64>| units.start * per_unit + 1..units.end * per_unit + 1;
        report.pages_wasted_ranges = self.frames.wasted_ranges().map(|units| units.into_iter().map(pages).collect());
        report
    }

    /// Runs `read` for each unit that `offset..offset + buffer.len()` touches; stops at the end of the file.
    fn each_unit(
        &mut self,
        offset: u64,
        buffer: &mut [u8],
        mut read: impl FnMut(&mut Self, u64, usize, &mut [u8]) -> Result<usize, PageError>,
    ) -> Result<usize, PageError> {
        let unit_bytes = self.layout.unit_bytes();
        let mut done = 0;
        while done < buffer.len() {
            let at = offset.saturating_add(done as u64);
            let inner = self.layout.within_unit(at);
            let want = (unit_bytes as usize - inner).min(buffer.len() - done);
            let count = read(self, self.layout.unit_of(at), inner, &mut buffer[done..done + want])?;
            done += count;
            if count < want {
                break;
            }
        }
        Ok(done)
    }

    /// Asks for a unit: finds it in a frame, or queues a read of it; then reads ahead.
    fn start(&mut self, unit: u64) -> Result<Fetch, PageError> {
        if unit >= self.end_unit() {
            self.size = self.backend.file_size().map_err(|e| self.error("stat", 0, e))?;
        }
        self.report.pages_asked += 1;
        self.policy.asked(unit);
        let mut place = self.find(unit, true);
        if place.is_none() {
            // A stream that starts with this very unit reads it as part of its first batch.
            self.read_ahead();
            place = self.find(unit, false);
        }
        let Some((place, ready)) = place else {
            let Some(index) = self.queue_single(unit) else { return Ok(Fetch::Busy) };
            return Ok(Fetch::Pending(Ticket { unit, place: Place::Single(index) }));
        };
        self.read_ahead();
        let ticket = Ticket { unit, place };
        if !ready {
            return Ok(Fetch::Pending(ticket));
        }
        if !self.queued.is_empty() {
            let result = self.backend.submit(&self.queued);
            self.queued.clear();
            if let Err(error) = result {
                return Err(self.error("submit reads", 0, error));
            }
        }
        Ok(Fetch::Ready(ticket))
    }

    /// The frame that holds `unit` and has not failed to read it, pinned, and whether the unit is there.
    fn find(&mut self, unit: u64, ahead: bool) -> Option<(Place, bool)> {
        let index = self.frames.find(unit)?;
        let status = self.frames.get(index).status(unit);
        if status == UnitStatus::Failed {
            return None;
        }
        let first = self.frames.ask(index, unit);
        if ahead {
            self.report.pages_from_window += 1;
        } else if first {
            // Read because it was asked for, not ahead of that.
            self.report.pages_prefetched -= 1;
        }
        self.frames.get_mut(index).pins += 1;
        Some((Place::Frame(index), status != UnitStatus::Reading))
    }

    /// Queues the batches that the policy wants and frames are free for.
    fn read_ahead(&mut self) {
        let end = self.end_unit();
        while let Some(mut units) = self.policy.next(end) {
            if let Some(index) = self.frames.find(units.start) {
                // Already there, from an earlier stream.
                units.end = units.end.min(self.frames.get(index).units.end);
                self.policy.started(&units);
                continue;
            }
            let count = units.end - units.start;
            let reads = if self.submit == Submit::Coalesced { 1 } else { count as usize };
            if self.backend.in_flight() + self.queued.len() + reads > self.backend.capabilities().in_flight_max {
                break;
            }
            let policy = &self.policy;
            let Some(index) = self.frames.take(units.clone(), |range| policy.expects(range)) else { break };
            self.report.pages_prefetched += count * self.layout.pages_per_unit();
            self.queue_frame(index);
            self.policy.started(&units);
        }
    }

    fn queue_frame(&mut self, index: usize) {
        let unit_bytes = self.layout.unit_bytes();
        let frame = self.frames.get_mut(index);
        let first = frame.units.start;
        let count = frame.units.end - first;
        let token = (index as u64) << 32;
        if self.submit == Submit::Coalesced {
            frame.pending = 1;
            let len = (count * unit_bytes) as u32;
            self.queued.push(ReadRequest {
                offset: first * unit_bytes,
                len,
                slot: frame.slot,
                token: token | WHOLE_FRAME,
            });
            return;
        }
        frame.pending = count as u32;
        self.queued.extend((0..count).map(|position| ReadRequest {
            offset: (first + position) * unit_bytes,
            len: unit_bytes as u32,
            slot: frame.slot + (position * unit_bytes) as usize,
            token: token | position,
        }));
    }

    fn queue_single(&mut self, unit: u64) -> Option<usize> {
        let index = self.singles.iter().position(|single| *single == Single::Free)?;
        self.singles[index] = Single::Reading;
        self.queued.push(ReadRequest {
            offset: unit * self.layout.unit_bytes(),
            len: self.layout.unit_bytes() as u32,
            slot: self.layout.single_slot(index),
            token: SINGLE | index as u64,
        });
        Some(index)
    }

    /// Reads a unit by itself, waiting for it.
    fn read_alone(&mut self, unit: u64, inner: usize, buffer: &mut [u8]) -> Result<usize, PageError> {
        let Some(index) = self.queue_single(unit) else {
            let offset = unit * self.layout.unit_bytes();
            return Err(self.error("read", offset, io::Error::from_raw_os_error(libc::EBUSY)));
        };
        while self.singles[index] == Single::Reading {
            self.wait(1)?;
        }
        self.take(Ticket { unit, place: Place::Single(index) }, inner, buffer)
    }

    fn absorb(&mut self, completion: Completion) {
        let low = completion.token & u64::from(u32::MAX);
        if completion.token & SINGLE != 0 {
            let single = &mut self.singles[low as usize];
            *single = if *single == Single::Abandoned { Single::Free } else { Single::Ended(completion.result) };
            return;
        }
        let frame = self.frames.get_mut((completion.token >> 32) as usize);
        let (first, count) =
            if low == WHOLE_FRAME { (0, (frame.units.end - frame.units.start) as usize) } else { (low as usize, 1) };
        frame.complete(first, count, self.layout.unit_bytes() as u32, completion.result);
    }

    fn end_unit(&self) -> u64 {
        self.layout.units_of(self.size)
    }

    fn error(&self, what: &str, offset: u64, source: io::Error) -> PageError {
        let page = offset / self.page_size + 1;
        PageError::io(&format!("{what}, page {page} of"), &self.path, source)
    }
}
