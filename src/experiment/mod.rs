//! An experiment as data: spec, plan, child runs, records.

pub mod cpus;
pub mod plan;
pub mod random;
pub mod record;
pub mod schedule;
