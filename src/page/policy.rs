//! Readahead policies: pure, they see page numbers and answer ranges.

use std::ops::Range;

/// Decides which pages to read before they are asked for.
///
/// The prefetcher tells it every page that is asked for, then takes batches from [`Policy::next`] until none is
/// wanted or no frame is free, and confirms each with [`Policy::started`].
pub trait Policy: Send {
    /// The engine asks for `page`.
    fn asked(&mut self, page: u64);

    /// The next batch worth reading, within `..end`; `None` where nothing is wanted now.
    fn next(&self, end: u64) -> Option<Range<u64>>;

    /// The batch was handed to the kernel.
    fn started(&mut self, batch: &Range<u64>);

    /// Whether some page of `range` is still expected to be asked for.
    fn expects(&self, range: &Range<u64>) -> bool;

    /// Every page read ahead was dropped: what is expected has to be read again.
    fn forget(&mut self);
}

/// Pages of a stream's first batch.
const FIRST_BATCH_PAGES: u64 = 4;
/// Streams followed at once: two tables of a merge join, and room for false starts.
const STREAMS_MAX: usize = 4;
/// Pages outside all streams that are remembered, to see where a new one starts.
const RECENT_MAX: usize = 8;
/// Pages asked for outside a stream after which its look-ahead is halved.
const DECAY_AFTER: u64 = 64;

/// Follows ascending runs of file offsets.
///
/// A page at most `gap` unwanted pages beyond the last one continues its stream, and doubles the look-ahead up to
/// `in_flight` batches beyond the one being consumed. A page that was read ahead but lies further on (an interior
/// page, say) is served without moving the stream. Look-ahead decays while a stream is not asked for, and a new
/// stream starts small (as in PostgreSQL's read streams: it rises fast and falls slowly).
#[derive(Debug, Clone)]
pub struct Sequential {
    window: u64,
    ahead_max: u64,
    gap: u64,
    clock: u64,
    streams: Vec<Stream>,
    recent: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stream {
    /// The last page that the stream was asked for.
    cursor: u64,
    /// The first page not read ahead.
    next: u64,
    /// Pages to have ahead of the cursor.
    ahead: u64,
    /// Time of the last page asked for, in pages asked for.
    touched: u64,
}

impl Stream {
    /// Look-ahead after decay.
    fn ahead_now(&self, clock: u64) -> u64 {
        let halvings = (clock - self.touched) / DECAY_AFTER;
        self.ahead >> halvings.min(63)
    }
}

impl Sequential {
    /// `window`: pages of a batch, 0 for no readahead. `in_flight`: batches beyond the one being consumed. `gap`:
    /// unwanted pages that a run may read through.
    pub fn new(window: u32, in_flight: u32, gap: u32) -> Sequential {
        let window = u64::from(window);
        Sequential {
            window,
            ahead_max: window * (u64::from(in_flight) + 1),
            gap: u64::from(gap),
            clock: 0,
            streams: Vec::new(),
            recent: Vec::new(),
        }
    }

    /// Whether `page` follows `last`, with at most `gap` unwanted pages between them.
    fn follows(&self, page: u64, last: u64) -> bool {
        page > last && page - last <= self.gap + 1
    }

    /// The stream that the last page asked for belongs to. The others keep what they have until they are asked again.
    fn current(&self) -> Option<usize> {
        self.streams.iter().position(|s| s.touched == self.clock)
    }
}

impl Policy for Sequential {
    fn asked(&mut self, page: u64) {
        if self.window == 0 {
            return;
        }
        self.clock += 1;
        if let Some(index) = self.streams.iter().position(|s| s.cursor == page || self.follows(page, s.cursor)) {
            let stream = &mut self.streams[index];
            stream.ahead = stream.ahead_now(self.clock);
            if page > stream.cursor {
                stream.ahead = (stream.ahead * 2).max(FIRST_BATCH_PAGES).min(self.ahead_max);
                stream.cursor = page;
                stream.next = stream.next.max(page + 1);
            }
            stream.touched = self.clock;
            return;
        }
        if let Some(index) = self.recent.iter().position(|&last| self.follows(page, last)) {
            self.recent.remove(index);
            if self.streams.len() == STREAMS_MAX
                && let Some(oldest) = (0..STREAMS_MAX).min_by_key(|&i| self.streams[i].touched)
            {
                self.streams.swap_remove(oldest);
            }
            self.streams.push(Stream {
                cursor: page,
                // The page itself belongs to the first batch: nothing has read it yet.
                next: page,
                ahead: FIRST_BATCH_PAGES.min(self.ahead_max),
                touched: self.clock,
            });
            return;
        }
        if self.recent.len() == RECENT_MAX {
            self.recent.remove(0);
        }
        self.recent.push(page);
    }

    fn next(&self, end: u64) -> Option<Range<u64>> {
        let stream = &self.streams[self.current()?];
        let batch = stream.ahead.min(self.window);
        let horizon = (stream.cursor + 1).saturating_add(stream.ahead);
        let room = horizon.min(end).checked_sub(stream.next)?;
        // Whole batches only, but for the tail of the file.
        (batch > 0 && room > 0 && (room >= batch || horizon >= end)).then(|| stream.next..stream.next + room.min(batch))
    }

    fn started(&mut self, batch: &Range<u64>) {
        if let Some(index) = self.current() {
            self.streams[index].next = self.streams[index].next.max(batch.end);
        }
    }

    fn expects(&self, range: &Range<u64>) -> bool {
        self.streams.iter().any(|s| {
            s.ahead_now(self.clock) >= FIRST_BATCH_PAGES.min(self.ahead_max)
                && range.end > s.cursor
                && range.start < s.next
        })
    }

    fn forget(&mut self) {
        for stream in &mut self.streams {
            stream.next = stream.cursor + 1;
        }
    }
}

#[cfg(test)]
mod tests;
