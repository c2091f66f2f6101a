//! The engines on ioscope's reader: right answers while others write, locks kept, and nothing left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod concurrent;
mod helper;
mod locks;
mod tpch;
mod traces;
