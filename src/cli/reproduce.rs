//! `ioscope reproduce`: the whole study, from an examined machine to reports and figures, without a hand in between.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Instant;

use anyhow::Context;
use clap::Args;

use super::campaign::{self, Source, Wanted, tell};
use super::doctor::{self, DoctorArgs};
use super::exit;
use super::figures::{self, FiguresArgs};
use super::report;
use crate::dataset::Scale;
use crate::experiment::duration::shown;
use crate::experiment::file::Overrides;
use crate::report::document;

/// The study's experiments, in the order in which they are made.
const STUDY: [Source; 3] = [
    Source::BuiltIn { name: "readahead", text: include_str!("../../experiments/readahead.toml") },
    Source::BuiltIn { name: "sqpoll", text: include_str!("../../experiments/sqpoll.toml") },
    Source::BuiltIn { name: "cache-misses", text: include_str!("../../experiments/cache-misses.toml") },
];

/// Scale factor and timed runs of a quick look.
const QUICK: (f64, u32) = (0.1, 3);
/// Random reads of a scan in a quick look.
const QUICK_READS: u64 = 2500;

/// What a quick look says instead of the experiments' files.
fn quick() -> Overrides {
    Overrides { scale: Scale::new(QUICK.0).ok(), runs: Some(QUICK.1), reads: Some(QUICK_READS), ..Overrides::default() }
}

static AFTER_HELP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "Begun again, in the same folder and with the same program, it makes the runs that are missing.\n\n{}",
        exit::HELP
    )
});

/// Reproduce the whole study: doctor, data, the three experiments, their reports and figures
///
/// Takes the better part of an hour at scale 1 on two cores, and needs 1.3 GiB for the data; the machine should do
/// nothing else. Progress goes to stderr, the names of the reports and figures to stdout.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP.as_str())]
pub struct ReproduceArgs {
    /// A look in minutes, at scale 0.1 with 3 runs of each cell; every report and figure is marked so
    #[arg(long)]
    quick: bool,
    /// Folder of the results [default: results/reproduce, or results/reproduce-quick]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on in a folder though program, data or machine have changed, and record that
    #[arg(long)]
    accept_change: bool,
    /// Make failed runs again
    #[arg(long)]
    retry_failed: bool,
}

/// Runs the study and answers the exit code.
pub fn run(args: &ReproduceArgs) -> anyhow::Result<i32> {
    let began = Instant::now();
    let checks = doctor::checks(&DoctorArgs { db: None })?;
    // A stderr that is closed does not stop the study; a machine that cannot do it does.
    if !doctor::write(&checks, &mut io::stderr()).unwrap_or_else(|_| doctor::verdict(&checks).1) {
        return Ok(exit::FAILED);
    }
    let default = if args.quick { "results/reproduce-quick" } else { "results/reproduce" };
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(default));
    let mut code = exit::OK;
    for source in STUDY {
        let (folder, campaign) = make(source, &out, args)?;
        if campaign.interrupted.is_some() {
            return Ok(campaign.code);
        }
        tell(format_args!("{}", campaign.text.trim_end()));
        let drawn = publish(&folder)?;
        code = code.max(campaign.code).max(drawn);
    }
    tell(format_args!("the study took {}", shown(began.elapsed())));
    Ok(code)
}

/// Makes the runs of one experiment.
fn make(source: Source, out: &Path, args: &ReproduceArgs) -> anyhow::Result<(PathBuf, campaign::Outcome)> {
    let asked = match args.quick {
        true => quick(),
        false => Overrides::default(),
    };
    let name = source.name().into_owned();
    tell(format_args!("{name}:"));
    let folder = out.join(&name);
    let wanted = Wanted {
        source,
        asked,
        out: folder.clone(),
        shard: None,
        resume: true,
        accept_change: args.accept_change,
        retry_failed: args.retry_failed,
        quick: args.quick,
        to_resume: "the same command again",
        to_retry: "the same command with --retry-failed",
    };
    let outcome = campaign::carry_out(&wanted).with_context(|| format!("the experiment {name}"))?;
    Ok((folder, outcome))
}

/// Writes report and figures beside the records, and names them on stdout; answers the exit code.
fn publish(folder: &Path) -> anyhow::Result<i32> {
    let study = report::load(folder)?;
    let path = folder.join("report.md");
    report::publish(&document::render(&study), Some(&path))?;
    let drawn = figures::draw(&FiguresArgs { folder: folder.to_owned(), ..FiguresArgs::default() })?;
    for path in std::iter::once(&path).chain(&drawn.paths) {
        // A reader that has left is no error: the files are there.
        let _ = writeln!(io::stdout(), "{}", path.display());
    }
    Ok(if drawn.errors == 0 { exit::OK } else { exit::FAILED })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_experiments_of_the_study_are_well_formed_at_both_sizes() {
        for source in STUDY {
            let whole = source.load(&Overrides::default()).unwrap().definition;
            assert_eq!(source.name(), whole.about.name);
            assert!(!whole.cells.is_empty());
            let quick = source.load(&quick()).unwrap().definition;
            assert_eq!(quick.cells.len(), whole.cells.len());
            assert!(quick.cells.iter().all(|cell| cell.runs <= QUICK.1));
            assert!(
                quick.cells.iter().all(|cell| !cell.name.contains("random-n") || cell.name.contains("random-n2500"))
            );
            assert_eq!(quick.dataset.to_string(), "TPC-H, scale 0.1, pages of 4096 bytes");
        }
    }
}
