//! What a person types: one file per command.

mod campaign;
pub mod child;
pub mod compare;
pub mod dataset;
pub mod doctor;
pub mod error;
pub mod exit;
pub mod figures;
pub mod json;
pub mod merge;
mod one_shot;
pub mod query;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod scan;

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
The two usual commands:
  ioscope doctor
  ioscope query tpch/queries/q06.sql --engine turso,sqlite --backend uring \\
      --direct required --window 0,32";

static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{} (SQLite {}, Turso {})",
        env!("CARGO_PKG_VERSION"),
        rusqlite::version(),
        crate::measure::environment::TURSO_VERSION
    )
});
static AFTER_HELP: LazyLock<String> = LazyLock::new(|| format!("{EXAMPLES}\n\n{}", exit::HELP));

/// Shows what a database query does to the device, layer by layer, and what it costs.
#[derive(Debug, Parser)]
#[command(name = "ioscope", version = VERSION.as_str(), after_help = AFTER_HELP.as_str(), max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Query(Box<query::QueryArgs>),
    Run(run::RunArgs),
    Reproduce(reproduce::ReproduceArgs),
    Report(report::ReportArgs),
    Figures(figures::FiguresArgs),
    Compare(compare::CompareArgs),
    Merge(merge::MergeArgs),
    Dataset(dataset::DatasetArgs),
    Doctor(doctor::DoctorArgs),
    Scan(Box<scan::ScanArgs>),
    /// Carries out one run; its specification comes on standard input.
    #[command(hide = true)]
    Child,
}

/// Parses a command line, carries it out, and answers the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors and go to stdout. A closed pipe is no news for either.
            let _ = error.print();
            return error.exit_code();
        }
    };
    let outcome = match &cli.command {
        Command::Query(args) => query::run(args),
        Command::Report(args) => report::run(args),
        Command::Figures(args) => figures::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Run(args) => run::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Dataset(args) => dataset::run(args).map(|()| exit::OK),
        Command::Doctor(args) => doctor::run(args),
        Command::Scan(args) => scan::run(args),
        Command::Child => child::run(),
    };
    outcome.unwrap_or_else(|error| error::report(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
