//! Records to tables, reports, comparisons and figures.

pub mod cells;
pub mod compare;
pub mod document;
pub mod drift;
pub mod figure;
pub mod grid;
pub mod hosts;
pub mod markdown;
pub mod notes;
pub mod phrases;
pub mod reference;
pub mod run;
pub mod sections;
pub mod statistics;
pub mod study;
pub mod table;

#[cfg(test)]
mod fixture;
