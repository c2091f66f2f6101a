//! What is asked: queries and their known answers.

pub mod database;
pub mod query;

/// SEAM: replaced by `answer::known_query`.
fn known_query(_sql: &str) -> Option<u8> {
    None
}
