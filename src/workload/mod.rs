//! What is asked: queries and their known answers.

pub mod database;
pub mod query;
pub mod seam;

use seam::known_query;
