//! What is asked: queries and their known answers.

pub mod answer;
pub mod database;
pub mod query;
