//! The command line as a user types it, on small real databases.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bad_input;
mod campaign;
mod interruption;
mod options;
mod paths;
mod privileges;
mod results;
mod scan;
mod support;
