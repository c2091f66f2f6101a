//! What is asked: queries and their known answers.

pub mod answer;
