//! An experiment as data: spec, plan, child runs, records.

pub mod record;
