//! What is asked: queries and their known answers, and scans of the reader alone.

pub mod answer;
pub mod app;
pub mod btrees;
pub mod database;
pub mod latency;
pub mod query;
pub mod scan;
