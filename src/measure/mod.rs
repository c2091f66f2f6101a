//! What a run cost, watched from the side: block layer, CPU per thread, hardware counters, residency, environment.
//!
//! Nothing here knows an engine or a page reader. A child process opens its [`Watch`] first of all, makes the file
//! cold or warm ([`residency`]), starts the watch, works, and stops it.

pub mod device;
pub mod environment;
pub mod mount;
pub mod perf;
pub mod residency;
pub mod sampler;
pub(crate) mod sys;
mod threads;
pub mod tracepoint;
mod watch;

pub(crate) use sys::direct_alignment;

pub use threads::{KernelThread, kernel_threads};
pub use watch::{Measured, Watch, WatchOptions};
