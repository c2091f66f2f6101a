//! The page reader's contract, over every backend: the same bytes as plain pread, whatever the axes and whatever
//! goes wrong below.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod blocks;
mod faults;
mod pairwise;
mod sample;
mod suite;
mod view;
