//! An experiment as data: spec, plan, child runs, records.

pub mod child;
pub mod compose;
pub mod cpus;
pub mod inside;
pub mod plan;
pub mod random;
pub mod record;
pub mod runner;
pub mod schedule;
pub mod signals;
pub mod spec;
