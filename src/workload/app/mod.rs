//! The application load: the statements of a service that looks up users and orders, and now and then writes.

pub mod stream;
