//! Records to tables and statistics.
