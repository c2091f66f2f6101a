//! Records to tables and statistics.

pub mod statistics;
