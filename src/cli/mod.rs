//! What a person types: one file per command.
pub mod dataset;
