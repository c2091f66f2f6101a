//! What can be done with a page that was asked for: wait for it, see it in the pool, copy it, give it back.
#![expect(unsafe_code, reason = "borrows pool memory that no read is in flight for")]

use std::io;

use super::{Fetch, PageReader, Place, Single, Ticket};
use crate::page::PageError;
use crate::page::frames::UnitStatus;

impl PageReader {
    /// Copies a ticket's bytes, from `inner` on within its unit, and gives its place back. The ticket must be ready.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn take(&mut self, ticket: Ticket, inner: usize, buffer: &mut [u8]) -> Result<usize, PageError> {
        let copied = self.view(&ticket).map(|unit| {
            let bytes = unit.get(inner..).unwrap_or_default();
            let count = bytes.len().min(buffer.len());
            buffer[..count].copy_from_slice(&bytes[..count]);
            count
        });
        self.release(ticket);
        copied
    }

    /// The bytes of a ticket's unit where they lie in the pool; fewer than a unit at the end of the file only. The
    /// ticket must be ready.
    ///
    /// # Errors
    /// The kernel's errno; `EAGAIN` for a ticket that is not ready.
    pub fn view(&self, ticket: &Ticket) -> Result<&[u8], PageError> {
        let unit_bytes = self.layout.unit_bytes();
        let (slot, status) = match ticket.place {
            Place::Frame(index) => {
                let frame = self.frames.get(index);
                let position = (ticket.unit - frame.units.start) as usize;
                let status = match frame.status(ticket.unit) {
                    UnitStatus::Ready(bytes) => Ok(bytes),
                    UnitStatus::Failed => Err(libc::EIO),
                    UnitStatus::Reading => Err(libc::EAGAIN),
                };
                (frame.slot + position * unit_bytes as usize, status)
            }
            Place::Single(index) => {
                let status = match self.singles[index] {
                    Single::Ended(result) => result,
                    Single::Free | Single::Reading | Single::Abandoned => Err(libc::EAGAIN),
                };
                (self.layout.single_slot(index), status)
            }
        };
        let valid = status
            .map_err(|errno| self.error("read", ticket.unit * unit_bytes, io::Error::from_raw_os_error(errno)))?;
        // SAFETY: the unit's read has ended, and no other is started into its frame or single while `self` is
        // borrowed; `valid` is at most a unit, and the unit lies in the pool by the layout.
        Ok(unsafe { self.backend.pool().slice(slot..slot + valid as usize) })
    }

    /// Gives a ticket's place back. One whose read is still under way keeps its place until that has ended.
    pub fn release(&mut self, ticket: Ticket) {
        match ticket.place {
            Place::Frame(index) => self.frames.get_mut(index).pins -= 1,
            Place::Single(index) => {
                self.singles[index] = match self.singles[index] {
                    Single::Reading | Single::Abandoned => Single::Abandoned,
                    Single::Ended(_) | Single::Free => Single::Free,
                }
            }
        }
    }

    /// Whether the byte at `offset` was read ahead, or is being read ahead.
    pub fn holds(&mut self, offset: u64) -> bool {
        let unit = self.layout.unit_of(offset);
        self.frames.find(unit).is_some_and(|index| self.frames.get(index).status(unit) != UnitStatus::Failed)
    }

    /// The `len` bytes at `offset` where they lie in the pool, if they were read ahead and all of them are there;
    /// waits for them. They stay as they are until the ticket is given back with [`PageReader::release`].
    ///
    /// # Errors
    /// As for [`PageReader::fetch`].
    pub fn lend(&mut self, offset: u64, len: usize) -> Result<Option<(Ticket, *const u8)>, PageError> {
        if !self.holds(offset) {
            return Ok(None);
        }
        let inner = self.layout.within_unit(offset);
        let ticket = self.fetch(offset)?;
        let bytes = self.view(&ticket)?.get(inner..inner.saturating_add(len)).map(<[u8]>::as_ptr);
        let Some(bytes) = bytes else {
            // The end of the file lies within them.
            self.release(ticket);
            return Ok(None);
        };
        self.report.pages_lent += 1;
        Ok(Some((ticket, bytes)))
    }

    /// Hands the unit that holds the byte at `offset` to `see`, where it lies in the pool, waiting for it. A unit is a
    /// page, or the file's alignment where that is larger; behind the end of the file it is empty.
    ///
    /// # Errors
    /// As for [`PageReader::read_at`].
    pub fn with_page<T>(&mut self, offset: u64, see: impl FnOnce(&[u8]) -> T) -> Result<T, PageError> {
        let ticket = self.fetch(offset)?;
        let seen = self.view(&ticket).map(see);
        self.release(ticket);
        seen
    }

    /// Asks for the unit that holds the byte at `offset` and waits until its bytes are there. The ticket may be kept
    /// while further units are asked for, as many as the reader was opened to hold, and is given back with
    /// [`PageReader::release`].
    ///
    /// # Errors
    /// The kernel's errno, after a page that failed while it was read ahead has been read again; `EBUSY` where more
    /// tickets are kept than there is room for.
    pub fn fetch(&mut self, offset: u64) -> Result<Ticket, PageError> {
        self.fetch_unit(self.layout.unit_of(offset))
    }

    pub(super) fn fetch_unit(&mut self, unit: u64) -> Result<Ticket, PageError> {
        let offset = unit.saturating_mul(self.layout.unit_bytes());
        let busy = |reader: &Self| reader.error("read", offset, io::Error::from_raw_os_error(libc::EBUSY));
        let ticket = match self.start(unit)? {
            Fetch::Ready(ticket) => ticket,
            Fetch::Pending(ticket) => self.until_ready(ticket)?,
            Fetch::Busy => return Err(busy(self)),
        };
        if !self.has_failed(&ticket) {
            return Ok(ticket);
        }
        self.release(ticket);
        let index = self.queue_single(unit).ok_or_else(|| busy(self))?;
        let ticket = self.until_ready(Ticket { unit, place: Place::Single(index) })?;
        match self.view(&ticket).err() {
            None => Ok(ticket),
            Some(error) => {
                self.release(ticket);
                Err(error)
            }
        }
    }

    /// Whether a ticket that is ready has an error instead of bytes.
    fn has_failed(&self, ticket: &Ticket) -> bool {
        match ticket.place {
            Place::Frame(index) => self.frames.get(index).status(ticket.unit) == UnitStatus::Failed,
            Place::Single(index) => matches!(self.singles[index], Single::Ended(Err(_))),
        }
    }

    fn until_ready(&mut self, ticket: Ticket) -> Result<Ticket, PageError> {
        while !self.is_ready(&ticket) {
            if let Err(error) = self.wait(1) {
                self.release(ticket);
                return Err(error);
            }
        }
        Ok(ticket)
    }
}
