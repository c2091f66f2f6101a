//! `ioscope report`: a folder of results as Markdown.

use std::fs::Permissions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::error::usage;
use super::exit;
use super::figures;
use crate::report::document;
use crate::report::reference;
use crate::report::study::Study;

/// Write the report of a campaign: tables, published values, verdicts, drift, failures
///
/// It is a function of the folder's files alone: it needs neither the database nor io_uring, perf or root, and gives the
/// same bytes on any machine.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folder that `ioscope run` has filled
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Name the figures of this experiment's file instead of those kept with the campaign
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write the Markdown to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Take the published values from this file instead of those kept with the campaign
    #[arg(long, value_name = "FILE")]
    reference: Option<PathBuf>,
}

/// Writes the report and answers the exit code.
pub fn run(args: &ReportArgs) -> anyhow::Result<i32> {
    let mut study = load(&args.folder)?;
    if let Some(path) = &args.file {
        study.campaign.about.figures = figures::of_file(path)?;
    }
    if let Some(path) = &args.reference {
        let help = "give a file like experiments/reference.toml";
        reference::replace(&mut study, path).map_err(|error| usage(error.to_string(), help))?;
    }
    publish(&document::render(&study), args.out.as_deref())?;
    Ok(exit::OK)
}

/// Reads a folder of results; tells on stderr which lines were skipped.
pub fn load(folder: &Path) -> anyhow::Result<Study> {
    let study = Study::load(folder).map_err(|error| usage(error.to_string(), "give the folder of a campaign"))?;
    for (line, why) in &study.skipped {
        let _ = writeln!(io::stderr(), "warning: {}/runs.jsonl, line {line} is skipped: {why}", folder.display());
    }
    Ok(study)
}

/// Writes Markdown to a file, under a temporary name first, or to stdout.
pub fn publish(text: &str, out: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = out else {
        let written = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
        return match written {
            // The reader of the pipe has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other.context("cannot write the report"),
        };
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        // Readable like any file that a program writes: the umask takes away what the user does not want.
        let permissions = Permissions::from_mode(0o666);
        let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    };
    write()
        .map_err(|error| usage(format!("--out {}: {error}", path.display()), "choose a file in a folder that exists"))
}
