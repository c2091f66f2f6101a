//! ioscope shows what a database query does to the device, layer by layer: SQL, page read, ring or
//! system call, bio, merge, device request, CPU time.
//!
//! Arrows between the modules point one way: `cli` -> `experiment` -> `workload` -> `engine` -> `page`.
//! `measure` watches a run from the side and knows no engine; `report` reads records only; `page`
//! knows no SQL; `dataset` makes the databases that are asked.

pub mod cli;
pub mod dataset;
pub mod engine;
pub mod experiment;
pub mod measure;
pub mod page;
pub mod report;
pub mod workload;

/// Says that a test is skipped, and why, past the capture of the test harness: whoever runs the tests has to see it.
#[doc(hidden)]
#[macro_export]
macro_rules! skipped {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", format_args!($($argument)*));
    }};
}
