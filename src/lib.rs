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
