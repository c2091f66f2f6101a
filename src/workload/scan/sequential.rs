//! The whole file in order, through the page reader and its readahead.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use super::ScanError;
use super::part::Part;
use super::spec::{ScanAxes, Touch};
use crate::page::PageReader;
use crate::page::reader::Ticket;

/// A page that was delivered and is not touched yet: where it lies, and its number.
struct Held {
    place: Place,
    page: u64,
}

enum Place {
    /// In the pool.
    Slot(Ticket),
    /// In the probe's own buffer, so many bytes.
    Copy(usize, usize),
}

/// Reads the pages `pages` in order.
///
/// # Errors
/// [`ScanError`]: a page could not be read, or the file has become shorter.
pub fn run(axes: &ScanAxes, reader: &mut PageReader, pages: Range<u64>, part: &mut Part) -> Result<(), ScanError> {
    let think = Duration::from_nanos(axes.think_ns);
    let mut held: VecDeque<Held> = VecDeque::with_capacity(axes.delay_pages as usize + 1);
    for page in pages {
        held.push_back(deliver(axes, reader, page, part)?);
        if held.len() > axes.delay_pages as usize
            && let Some(oldest) = held.pop_front()
        {
            finish(axes, reader, oldest, part)?;
        }
        part.think(think);
    }
    while let Some(oldest) = held.pop_front() {
        finish(axes, reader, oldest, part)?;
    }
    Ok(())
}

fn deliver(axes: &ScanAxes, reader: &mut PageReader, page: u64, part: &mut Part) -> Result<Held, ScanError> {
    let offset = page * u64::from(axes.block_bytes);
    let ticket = reader.fetch(offset)?;
    let bytes = reader.view(&ticket)?;
    if bytes.is_empty() {
        return Err(ScanError::Short { offset, expected: axes.block_bytes, got: 0 });
    }
    part.ops += 1;
    part.bytes += bytes.len() as u64;
    let len = bytes.len();
    match part.toucher.deliver(bytes) {
        Some(number) => {
            reader.release(ticket);
            Ok(Held { place: Place::Copy(number, len), page })
        }
        None => Ok(Held { place: Place::Slot(ticket), page }),
    }
}

fn finish(axes: &ScanAxes, reader: &mut PageReader, held: Held, part: &mut Part) -> Result<(), ScanError> {
    let offset = held.page * u64::from(axes.block_bytes);
    match held.place {
        Place::Slot(ticket) => {
            let bytes = reader.view(&ticket)?;
            part.toucher.touch(bytes);
            part.sampler.see(held.page, offset, bytes);
            reader.release(ticket);
        }
        Place::Copy(number, len) => {
            part.toucher.touch_copy(number, len);
            part.sampler.see(held.page, offset, part.toucher.copy(number, len));
        }
    }
    Ok(())
}

/// Pages that one reader has to hold for the probe.
pub fn held_pages(axes: &ScanAxes) -> u32 {
    // Copies do not keep their page.
    if axes.touch == Touch::Copy || axes.delay_pages == 0 { 0 } else { axes.delay_pages + 1 }
}
