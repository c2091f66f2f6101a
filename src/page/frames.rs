//! The frames that batches are read into: which units each holds, and how far each has come.

use std::ops::Range;

use super::ranges::{self, RANGES_MAX};

/// Bytes valid in a unit, or one of the two states below.
type UnitState = u32;
/// The unit is being read.
const READING: UnitState = u32::MAX;
/// The unit could not be read ahead; asking for it reads it again, alone, so that the error reaches whoever asks.
const FAILED: UnitState = u32::MAX - 1;

/// How far one unit of a frame has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitStatus {
    /// Being read.
    Reading,
    /// Read: so many bytes are valid, fewer than a unit only at the end of the file.
    Ready(u32),
    /// Could not be read.
    Failed,
}

/// One batch's place in the pool.
#[derive(Debug)]
pub struct Frame {
    /// Units held; empty for a free frame.
    pub units: Range<u64>,
    /// Where the first unit lies in the pool, in bytes.
    pub slot: usize,
    /// Reads of this frame in flight.
    pub pending: u32,
    /// Tickets that refer to this frame.
    pub pins: u32,
    /// The contents are out of date: nobody new is served from them.
    pub stale: bool,
    /// Order of use.
    touched: u64,
    states: Vec<UnitState>,
    asked: Vec<bool>,
}

/// All frames of a reader.
#[derive(Debug)]
pub struct Frames {
    frames: Vec<Frame>,
    current: usize,
    clock: u64,
    /// Units read ahead and dropped without having been asked for.
    wasted: u64,
    /// Which these were, in the order in which they were dropped; `None` once there were too many to keep.
    wasted_ranges: Option<Vec<Range<u64>>>,
}

impl Frames {
    /// `count` frames of `frame_bytes` each, from the pool's start.
    pub fn new(count: usize, frame_bytes: usize) -> Frames {
        let frames = (0..count)
            .map(|index| Frame {
                units: 0..0,
                slot: index * frame_bytes,
                pending: 0,
                pins: 0,
                stale: false,
                touched: 0,
                states: Vec::new(),
                asked: Vec::new(),
            })
            .collect();
        Frames { frames, current: 0, clock: 0, wasted: 0, wasted_ranges: Some(Vec::new()) }
    }

    /// The frame that holds `unit` and may serve it.
    pub fn find(&mut self, unit: u64) -> Option<usize> {
        let serves = |frame: &Frame| frame.units.contains(&unit) && !frame.stale;
        if !self.frames.get(self.current).is_some_and(serves) {
            self.current = self.frames.iter().position(serves)?;
        }
        Some(self.current)
    }

    /// A frame by its index.
    pub fn get(&self, index: usize) -> &Frame {
        &self.frames[index]
    }

    /// A frame by its index.
    pub fn get_mut(&mut self, index: usize) -> &mut Frame {
        &mut self.frames[index]
    }

    /// Notes that `unit` of frame `index` was asked for, and says whether that is the first time.
    pub fn ask(&mut self, index: usize, unit: u64) -> bool {
        self.clock += 1;
        let frame = &mut self.frames[index];
        frame.touched = self.clock;
        let asked = &mut frame.asked[(unit - frame.units.start) as usize];
        !std::mem::replace(asked, true)
    }

    /// Takes a frame that is neither in use nor `expected` to be asked for, the least recently used first, and
    /// prepares it to receive `units`.
    pub fn take(&mut self, units: Range<u64>, expected: impl Fn(&Range<u64>) -> bool) -> Option<usize> {
        let idle = |frame: &Frame| {
            frame.pending == 0 && frame.pins == 0 && (frame.stale || frame.units.is_empty() || !expected(&frame.units))
        };
        let index = (0..self.frames.len())
            .filter(|&i| idle(&self.frames[i]))
            .min_by_key(|&i| (!self.frames[i].units.is_empty(), self.frames[i].touched))?;
        self.drop_contents(index);
        self.clock += 1;
        let count = (units.end - units.start) as usize;
        let frame = &mut self.frames[index];
        frame.units = units;
        frame.touched = self.clock;
        frame.states.clear();
        frame.states.resize(count, READING);
        frame.asked.clear();
        frame.asked.resize(count, false);
        Some(index)
    }

    /// Forgets what every frame holds. Frames in flight or pinned are left to finish, and serve nobody new.
    pub fn invalidate(&mut self) {
        for index in 0..self.frames.len() {
            if self.frames[index].pending > 0 || self.frames[index].pins > 0 {
                self.frames[index].stale = true;
            } else {
                self.drop_contents(index);
            }
        }
    }

    /// Units read ahead and never asked for: of dropped frames, and of those still held.
    pub fn wasted(&self) -> u64 {
        self.wasted + self.frames.iter().map(Frame::unasked).sum::<u64>()
    }

    /// Which units [`Frames::wasted`] counts, merged: a unit that was read for nothing twice is in it once. `None` if
    /// there were more than [`RANGES_MAX`] ranges.
    pub fn wasted_ranges(&self) -> Option<Vec<Range<u64>>> {
        let mut all = self.wasted_ranges.clone()?;
        self.frames.iter().for_each(|frame| frame.push_unasked(&mut all));
        Some(ranges::merge(all)).filter(|merged| merged.len() <= RANGES_MAX)
    }

    fn drop_contents(&mut self, index: usize) {
        let frame = &mut self.frames[index];
        self.wasted += frame.unasked();
        if let Some(kept) = &mut self.wasted_ranges {
            frame.push_unasked(kept);
            if kept.len() > RANGES_MAX {
                self.wasted_ranges = None;
            }
        }
        frame.units = 0..0;
        frame.stale = false;
        frame.states.clear();
        frame.asked.clear();
    }
}

impl Frame {
    /// How far `unit` has come.
    pub fn status(&self, unit: u64) -> UnitStatus {
        match self.states[(unit - self.units.start) as usize] {
            READING => UnitStatus::Reading,
            FAILED => UnitStatus::Failed,
            bytes => UnitStatus::Ready(bytes),
        }
    }

    /// A read of `count` units from the frame's unit number `first` on has ended.
    pub fn complete(&mut self, first: usize, count: usize, unit_bytes: u32, result: Result<u32, i32>) {
        self.pending -= 1;
        for (position, state) in self.states.iter_mut().skip(first).take(count).enumerate() {
            *state = match result {
                // Bytes beyond the end of the file count as none, which is what a read there answers.
                Ok(bytes) => bytes.saturating_sub(position as u32 * unit_bytes).min(unit_bytes),
                Err(_) => FAILED,
            };
        }
    }

    fn unasked(&self) -> u64 {
        self.asked.iter().filter(|asked| !**asked).count() as u64
    }

    /// Adds the units that were not asked for, as ranges.
    fn push_unasked(&self, ranges: &mut Vec<Range<u64>>) {
        for (unit, _) in self.units.clone().zip(&self.asked).filter(|(_, asked)| !**asked) {
            match ranges.last_mut() {
                Some(last) if last.end == unit => last.end += 1,
                _ => ranges.push(unit..unit + 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Batches of four units come and go; some of their units are asked for.
        #[test]
        fn what_was_wasted_is_known_by_number(batches in proptest::collection::vec((0u64..30, any::<[bool; 4]>()), 0..40)) {
            let mut frames = Frames::new(3, 4 * 4096);
            let (mut wasted, mut which) = (0, std::collections::BTreeSet::new());
            for (first, asked) in batches {
                let Some(index) = frames.take(first * 4..first * 4 + 4, |_| false) else { continue };
                for (unit, asked) in (first * 4..).zip(asked) {
                    if asked {
                        frames.ask(index, unit);
                    } else {
                        wasted += 1;
                        which.insert(unit);
                    }
                }
            }
            prop_assert_eq!(frames.wasted(), wasted);
            let ranges = frames.wasted_ranges().unwrap_or_default();
            prop_assert_eq!(ranges.into_iter().flatten().collect::<std::collections::BTreeSet<u64>>(), which);
        }
    }

    #[test]
    fn too_many_ranges_are_not_kept_and_still_counted() {
        let mut frames = Frames::new(1, 2 * 4096);
        for batch in 0..RANGES_MAX as u64 + 10 {
            // The second unit of each batch is wasted, so no two ranges touch.
            if let Some(index) = frames.take(batch * 2..batch * 2 + 2, |_| false) {
                frames.ask(index, batch * 2);
            }
        }
        assert_eq!(frames.wasted(), RANGES_MAX as u64 + 10);
        assert_eq!(frames.wasted_ranges(), None);
    }
}
