//! `ioscope compare`: which cells moved between two campaigns.

use std::path::PathBuf;

use clap::Args;

use super::error::usage;
use super::exit;
use super::report::{load, publish};
use crate::report::compare::{self, Refusal};

/// Compare two campaigns of one experiment: which cells moved, with intervals
///
/// Campaigns that were not made in the same way (experiment, program, data set, protocol, machine and its settings) are
/// refused, and each difference is named.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Folder of the campaign that the other one is measured by
    #[arg(value_name = "FIRST")]
    first: PathBuf,
    /// Folder of the other campaign
    #[arg(value_name = "SECOND")]
    second: PathBuf,
    /// Compare what was not made in the same way; the differences stand at the top
    #[arg(long)]
    accept_differences: bool,
    /// Write the Markdown to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the comparison and answers the exit code.
pub fn run(args: &CompareArgs) -> anyhow::Result<i32> {
    let (first, second) = (load(&args.first)?, load(&args.second)?);
    let text = compare::render(&first, &second, args.accept_differences).map_err(|refusal| {
        let help = match refusal {
            Refusal::OtherExperiment { .. } => "compare campaigns of the same experiment",
            Refusal::Differences(_) => "if these differences are what you want to compare, add --accept-differences",
        };
        usage(refusal.to_string(), help)
    })?;
    publish(&text, args.out.as_deref())?;
    Ok(exit::OK)
}
