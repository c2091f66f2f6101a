//! The axes of a page reader, as a person names them.

use serde::{Deserialize, Serialize};

/// A value that no axis knows. Its message lists the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {axis} '{value}'; known: {known}")]
pub struct UnknownValue {
    /// The axis, as it is named on the command line.
    pub axis: &'static str,
    /// What was given.
    pub value: String,
    /// The known values, separated by commas.
    pub known: String,
}

/// Defines one axis: its values, their names in flags and records, and the parser between them.
macro_rules! axis {
    ($(#[$doc:meta])* $name:ident = $axis:literal { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every value, in the order in which help and errors list them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name in flags, tables and records.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::page::config::UnknownValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|v| v.as_str() == text).ok_or_else(|| {
                    $crate::page::config::UnknownValue {
                        axis: $axis,
                        value: text.to_owned(),
                        known: Self::ALL.iter().map(|v| v.as_str()).collect::<Vec<_>>().join(", "),
                    }
                })
            }
        }
    };
}
pub(crate) use axis;

axis! {
    /// How reads reach the kernel.
    BackendKind = "backend" {
        /// One `pread(2)` per request, completed inside the submission: the control arm of the same API.
        Pread = "pread",
        /// An io_uring that is entered once per batch.
        Uring = "uring",
        /// An io_uring whose submission queue is polled by a kernel thread (`IORING_SETUP_SQPOLL`).
        UringSqpoll = "uring-sqpoll",
    }
}

axis! {
    /// Whether reads bypass the page cache.
    Direct = "direct" {
        /// Buffered: through the page cache.
        Disabled = "disabled",
        /// `O_DIRECT`, proven by a transfer; refused where it cannot be had.
        Required = "required",
    }
}

axis! {
    /// How a batch of pages becomes SQEs.
    Submit = "submit" {
        /// One SQE a page; the block layer merges.
        PerPage = "per-page",
        /// One SQE for each contiguous run.
        Coalesced = "coalesced",
    }
}

axis! {
    /// The memory behind the reader's frames.
    PoolKind = "pool" {
        /// Pages of the base size.
        Normal = "normal",
        /// Transparent huge pages, where the kernel grants them; the effective mode says whether it did.
        Huge = "huge",
    }
}

axis! {
    /// How a page comes to the engine.
    Delivery = "delivery" {
        /// Copied into the engine's buffer.
        Copy = "copy",
        /// A page that was read ahead is lent where it lies in the pool (SQLite's xFetch); the others are copied.
        ZeroCopy = "zero-copy",
    }
}

axis! {
    /// Which pages are read before they are asked for.
    PolicyKind = "policy" {
        /// Ranges of file offsets ahead of a sequential stream.
        Sequential = "sequential",
    }
}

/// Largest `window`, in pages.
pub const WINDOW_MAX_PAGES: u32 = 4096;
/// Largest `in_flight`, in batches.
pub const IN_FLIGHT_MAX: u32 = 16;
/// Largest `gap`, in pages.
pub const GAP_MAX_PAGES: u32 = 32;

/// The settings of one page reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderConfig {
    /// How reads reach the kernel.
    pub backend: BackendKind,
    /// Whether reads bypass the page cache.
    pub direct: Direct,
    /// How a batch becomes SQEs.
    pub submit: Submit,
    /// Which pages are read ahead.
    pub policy: PolicyKind,
    /// Pages fetched at once, 0..=4096; 0 is no readahead.
    pub window: u32,
    /// Batches in flight while one is consumed, 1..=16.
    pub in_flight: u32,
    /// How many unwanted pages a run may read through, 0..=32.
    pub gap: u32,
    /// The memory behind the frames.
    pub pool: PoolKind,
    /// How a page comes to the engine.
    pub delivery: Delivery,
    /// CPU that the SQPOLL thread is bound to (`IORING_SETUP_SQ_AFF`); `None` leaves it to the scheduler.
    pub sqpoll_cpu: Option<u32>,
    /// How long an SQPOLL thread spins without work before it sleeps, in milliseconds (`sq_thread_idle`); at
    /// least 1, since the kernel reads 0 as one second.
    pub sqpoll_idle_ms: u32,
}

impl Default for ReaderConfig {
    fn default() -> Self {
        ReaderConfig {
            backend: BackendKind::Uring,
            direct: Direct::Disabled,
            submit: Submit::PerPage,
            policy: PolicyKind::Sequential,
            window: 32,
            in_flight: 4,
            gap: 8,
            pool: PoolKind::Normal,
            delivery: Delivery::Copy,
            sqpoll_cpu: None,
            sqpoll_idle_ms: 1000,
        }
    }
}
