//! The parts of a report. Each is a function of the stored records, and empty where they have nothing for it.

pub mod cache;
pub mod differences;
pub mod environment;
pub mod frame;
pub mod published;
pub mod readahead;
pub mod results;
pub mod sqpoll;
pub mod troubles;
pub mod wasted;
