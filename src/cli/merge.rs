//! `ioscope merge`: the shards of a campaign, put together.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Args;

use super::exit;
use crate::experiment::merge;

/// Runs that are missing of which the names are told.
const NAMED: usize = 5;

/// Put the folders of a campaign's shards together in a new one
///
/// The folders stay as they are. Records of different hosts stay apart in every interval of a report.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Folders that `ioscope run --shard K/N` has made
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// The new folder
    #[arg(long, value_name = "DIR", required = true)]
    out: PathBuf,
}

/// Merges, and answers the exit code.
pub fn run(args: &MergeArgs) -> anyhow::Result<i32> {
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let merged = merge::merge(&args.folders, &args.out, now_unix_s)?;
    let mut notes = String::new();
    for (folder, problem) in &merged.problems {
        notes.push_str(&format!("{}: {problem}\n", folder.display()));
    }
    for warning in &merged.warnings {
        notes.push_str(&format!("warning: {warning}\n"));
    }
    if !merged.missing.is_empty() {
        let mut named: Vec<String> = merged.missing.iter().take(NAMED).map(ToString::to_string).collect();
        if merged.missing.len() > NAMED {
            named.push(format!("and {} more", merged.missing.len() - NAMED));
        }
        notes.push_str(&format!("still missing: {}\n", named.join(", ")));
    }
    let _ = io::stderr().write_all(notes.as_bytes());
    let hosts = match merged.hosts.len() {
        1 => "one host".to_owned(),
        n => format!("{n} hosts, which are never pooled"),
    };
    let (out, planned) = (args.out.display(), merged.campaign.plan.order.len());
    writeln!(io::stdout(), "{out}: {} of {planned} runs, of {hosts}", merged.records)
        .context("cannot write to stdout")?;
    Ok(exit::OK)
}
