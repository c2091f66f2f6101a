//! Records to tables and statistics.

pub mod cells;
pub mod grid;
pub mod notes;
pub mod statistics;
pub mod table;
