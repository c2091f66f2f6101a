//! An experiment as data: spec, plan, child runs, records.

pub mod campaign;
pub mod child;
pub mod compose;
pub mod cpus;
pub mod definition;
pub mod duration;
pub mod estimate;
pub mod file;
pub mod folder;
pub mod inside;
pub mod made_with;
pub mod merge;
pub mod plan;
pub mod random;
pub mod record;
pub mod records;
pub mod runner;
pub mod scan_plan;
pub mod schedule;
pub mod signals;
pub mod sitting;
pub mod spec;

/// An error and its causes as one line. Some errors quote their cause already: it is not repeated.
pub fn error_line(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !line.contains(&cause_text) {
            line.push_str(": ");
            line.push_str(&cause_text);
        }
        source = cause.source();
    }
    line
}
