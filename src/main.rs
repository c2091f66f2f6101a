//! The `ioscope` program.
fn main() {}
