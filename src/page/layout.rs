//! How a reader's settings become units, frames and bytes of pool.

use super::PageError;
use super::config::{GAP_MAX_PAGES, IN_FLIGHT_MAX, ReaderConfig, Submit, WINDOW_MAX_PAGES};

/// Slots for pages that nobody read ahead. An engine with one thread needs one; an asynchronous one, a few.
pub const SINGLES: usize = 16;

/// Frames beyond those in flight: the one being consumed, and a few behind it whose pages (interior ones, say) are
/// asked for once more.
const SPARE_FRAMES: u32 = 4;

/// Most pages that a caller may hold.
pub const HELD_MAX_PAGES: u32 = 65_536;

/// Largest pool, in bytes.
pub(super) const POOL_MAX_BYTES: u64 = 1 << 30;

/// Sizes and places within a reader's pool. A unit is what one read may not be smaller than: a page, or the
/// alignment that direct I/O needs where that is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a database page.
    pub page_size: u32,
    /// What offsets and lengths of reads are a multiple of, in bytes.
    pub alignment: u32,
    /// Units of a batch; 0 for no readahead.
    pub window_units: u32,
    /// Units that a run may read through.
    pub gap_units: u32,
    /// Number of frames; 0 without readahead.
    pub frames: usize,
    /// Slots for pages that nobody read ahead.
    pub singles: usize,
    /// Bytes of the pool.
    pub pool_bytes: usize,
    /// Reads that may be in flight at once.
    pub in_flight_max: usize,
}

impl Layout {
    /// Checks the settings and computes the layout.
    ///
    /// # Errors
    /// [`PageError::Config`] names the setting, its range, and what would fit.
    pub fn of(config: &ReaderConfig, page_size: u32, alignment: u32) -> Result<Layout, PageError> {
        Layout::holding(config, page_size, alignment, 0)
    }

    /// As [`Layout::of`], with room for `held_pages` pages that the caller keeps while it asks for further ones.
    ///
    /// # Errors
    /// As for [`Layout::of`].
    pub fn holding(
        config: &ReaderConfig,
        page_size: u32,
        alignment: u32,
        held_pages: u32,
    ) -> Result<Layout, PageError> {
        let refuse = |message: String| Err(PageError::Config(message));
        if !page_size.is_power_of_two() || !(512..=65_536).contains(&page_size) {
            return refuse(format!("page size {page_size}: it is a power of two from 512 to 65536"));
        }
        if !alignment.is_power_of_two() || alignment > 65_536 {
            return refuse(format!("alignment {alignment}: it is a power of two up to 65536"));
        }
        if config.window > WINDOW_MAX_PAGES {
            return refuse(format!("window {}: it is 0 to {WINDOW_MAX_PAGES} pages", config.window));
        }
        if config.in_flight == 0 || config.in_flight > IN_FLIGHT_MAX {
            return refuse(format!("in-flight {}: it is 1 to {IN_FLIGHT_MAX} batches", config.in_flight));
        }
        if config.gap > GAP_MAX_PAGES {
            return refuse(format!("gap {}: it is 0 to {GAP_MAX_PAGES} pages", config.gap));
        }
        let unit = page_size.max(alignment);
        let per_unit = unit / page_size;
        let window_units = config.window.div_ceil(per_unit);
        if held_pages > HELD_MAX_PAGES {
            return refuse(format!("{held_pages} pages held: it is 0 to {HELD_MAX_PAGES}"));
        }
        let held_units = held_pages.div_ceil(per_unit);
        // Held pages pin their frames; those of a stream's first batches are not full.
        let held_frames = match (window_units.checked_ilog2(), held_units) {
            (None, _) | (_, 0) => 0,
            (Some(ramp), held) => held.div_ceil(window_units) + ramp + 1,
        };
        let frames = if window_units == 0 { 0 } else { config.in_flight + SPARE_FRAMES + held_frames };
        let singles = SINGLES + held_units as usize;
        let bytes = (u64::from(frames) * u64::from(window_units) + singles as u64) * u64::from(unit);
        if bytes > POOL_MAX_BYTES {
            return refuse(format!(
                "window {} with {} batches in flight of {page_size}-byte pages needs a pool of {} MiB, more than {} MiB; \
                 choose a smaller --window or --in-flight",
                config.window,
                config.in_flight,
                bytes >> 20,
                POOL_MAX_BYTES >> 20
            ));
        }
        let reads_per_frame = if config.submit == Submit::Coalesced { 1 } else { window_units as usize };
        Ok(Layout {
            page_size,
            alignment,
            window_units,
            gap_units: config.gap.div_ceil(per_unit),
            frames: frames as usize,
            singles,
            pool_bytes: bytes as usize,
            in_flight_max: (frames - held_frames) as usize * reads_per_frame + SINGLES,
        })
    }

    /// Bytes of a unit.
    pub fn unit_bytes(&self) -> u64 {
        u64::from(self.page_size.max(self.alignment))
    }

    /// The unit that holds the byte at `offset`. Units are a power of two, and a division would cost as much as the rest
    /// of finding a page.
    pub fn unit_of(&self, offset: u64) -> u64 {
        offset >> self.unit_bytes().trailing_zeros()
    }

    /// Where in its unit the byte at `offset` lies.
    pub fn within_unit(&self, offset: u64) -> usize {
        (offset & (self.unit_bytes() - 1)) as usize
    }

    /// Units that a file of `size` bytes has, the last one perhaps in part.
    pub fn units_of(&self, size: u64) -> u64 {
        self.unit_of(size) + u64::from(self.within_unit(size) > 0)
    }

    /// Pages in a unit.
    pub fn pages_per_unit(&self) -> u64 {
        self.unit_bytes() / u64::from(self.page_size)
    }

    /// Bytes of a frame.
    pub fn frame_bytes(&self) -> usize {
        self.window_units as usize * self.unit_bytes() as usize
    }

    /// Where in the pool the single slot `index` lies, in bytes.
    pub fn single_slot(&self, index: usize) -> usize {
        self.frames * self.frame_bytes() + index * self.unit_bytes() as usize
    }
}
