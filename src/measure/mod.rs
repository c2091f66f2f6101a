//! What a run cost, watched from the side: block layer, CPU per thread, hardware counters, residency, environment.

pub mod environment;
