#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod drawing;
mod gallery;
mod sample;
mod selection;
