//! Signals that would end the process while a data set is half written.
//!
//! They are blocked for the thread that makes it, and for the threads that it starts, and looked for between two batches
//! (signalfd(2)), so that the half file is removed before the process ends. No handler is installed: afterwards all is as before.

use std::cell::Cell;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Holds the signals back while it lives.
#[derive(Debug)]
pub struct Interrupts {
    before: SigSet,
    pending: SignalFd,
    seen: Cell<Option<Signal>>,
    reported: Cell<bool>,
}

impl Interrupts {
    /// Starts holding back SIGINT, SIGTERM and SIGHUP, and SIGXFSZ, whose place a write error takes.
    ///
    /// # Errors
    ///
    /// The system's, for instance where no descriptor is left.
    pub fn hold() -> nix::Result<Self> {
        let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGXFSZ]);
        let pending = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Interrupts { before, pending, seen: Cell::new(None), reported: Cell::new(false) })
    }

    /// The signal that asked the process to end, once there was one. Whoever gets it reports it.
    pub fn signal(&self) -> Option<Signal> {
        self.collect();
        let seen = self.seen.get();
        self.reported.set(seen.is_some());
        seen
    }

    fn collect(&self) {
        while let Ok(Some(info)) = self.pending.read_signal() {
            match i32::try_from(info.ssi_signo).map(Signal::try_from) {
                Ok(Ok(Signal::SIGXFSZ)) | Err(_) | Ok(Err(_)) => {}
                Ok(Ok(signal)) => self.seen.set(Some(signal)),
            }
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.collect();
        // Nothing can be done here about a mask that cannot be restored: it was valid when it was read.
        let _restored = self.before.thread_set_mask();
        // A signal that came after the last look has its usual effect now.
        if let (Some(signal), false) = (self.seen.get(), self.reported.get()) {
            let _raised = raise(signal);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_seen_and_does_not_end_the_process() {
        let interrupts = Interrupts::hold().unwrap();
        assert_eq!(interrupts.signal(), None);
        raise(Signal::SIGXFSZ).unwrap();
        assert_eq!(interrupts.signal(), None);
        raise(Signal::SIGTERM).unwrap();
        assert_eq!(interrupts.signal(), Some(Signal::SIGTERM));
        drop(interrupts);
        assert!(!SigSet::thread_get_mask().unwrap().contains(Signal::SIGTERM));
    }
}
