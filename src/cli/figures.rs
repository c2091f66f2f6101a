//! `ioscope figures`: the figures that an experiment names, from its stored records.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::error::usage;
use super::exit;
use super::report::load;
use crate::experiment::file::{self, Overrides};
use crate::report::figure::{self, DrawOptions, FigureSpec};
use crate::report::{reference, study};

/// Draw the figures of a campaign as SVG, PNG and PDF, with the CSV behind each
///
/// Like the report they are a function of the folder's files alone.
#[derive(Debug, Default, Args)]
pub struct FiguresArgs {
    /// Folder that `ioscope run` has filled
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Draw the figures of this experiment's file instead of those kept with the campaign
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Write the files into this folder [default: DIR/figures]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Draw these only (repeatable)
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Take the published values from this file instead of those kept with the campaign
    #[arg(long, value_name = "FILE")]
    pub reference: Option<PathBuf>,
    /// A line that is stamped on every figure
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}

/// Draws, writes and names the files on stdout; answers the exit code.
pub fn run(args: &FiguresArgs) -> anyhow::Result<i32> {
    let Drawn { paths, errors } = draw(args)?;
    for path in paths {
        let _ = writeln!(io::stdout(), "{}", path.display());
    }
    Ok(if errors == 0 { exit::OK } else { exit::FAILED })
}

/// What was drawn.
#[derive(Debug)]
pub struct Drawn {
    /// The files.
    pub paths: Vec<PathBuf>,
    /// Figures that could not be drawn; why is told on stderr.
    pub errors: usize,
}

/// Draws and writes the figures.
///
/// # Errors
///
/// The folder holds no campaign, or the experiment's figures are not what a figure may be.
pub fn draw(args: &FiguresArgs) -> anyhow::Result<Drawn> {
    let study = load(&args.folder)?;
    let figures = match &args.file {
        Some(path) => of_file(path)?,
        None => study.campaign.about.figures.clone(),
    };
    let specs = specs(&figures, &args.only)?;
    let published = match &args.reference {
        Some(path) => reference::all(Some(path)),
        None => reference::with_stored(&study),
    };
    let published =
        published.map_err(|error| usage(error.to_string(), "give a file like experiments/reference.toml"))?;
    let records = study::values(&args.folder, &study)
        .map_err(|error| usage(error.to_string(), "give the folder of a campaign"))?;
    let folder = args.out.clone().unwrap_or_else(|| args.folder.join("figures"));
    let quick = study.campaign.quick_mark();
    let note = args.note.as_deref().or(quick.as_deref());
    let options = DrawOptions { note, seed: study.campaign.plan.seed, reference: Some(&published) };
    let mut drawn = Drawn { paths: Vec::new(), errors: 0 };
    for spec in &specs {
        // One figure that cannot be drawn does not take the others with it.
        let written = figure::draw(spec, &records, &options).and_then(|drawing| {
            for warning in &drawing.warnings {
                let _ = writeln!(io::stderr(), "warning: figure {}: {warning}", spec.name);
            }
            figure::write(&drawing, &folder)
        });
        match written {
            Ok(paths) => drawn.paths.extend(paths),
            Err(error) => {
                let _ = writeln!(io::stderr(), "error: {error}");
                drawn.errors += 1;
            }
        }
    }
    Ok(drawn)
}

/// The figures of an experiment's file, checked.
pub fn of_file(path: &Path) -> anyhow::Result<Vec<Value>> {
    let figures = file::load(path, &Overrides::default())?.definition.about.figures;
    check(&figures, path)?;
    Ok(figures)
}

/// Checks the figures of an experiment's file, before anything is measured for them.
pub fn check(figures: &[Value], file: &Path) -> anyhow::Result<()> {
    let mut names: Vec<String> = Vec::new();
    for (number, value) in figures.iter().enumerate() {
        let name = name(number, value);
        let fault = |what: String| {
            let help = "mend its [[figure]]; the figures of experiments/ show what one may hold";
            usage(format!("{}: figure {name}: {what}", file.display()), help)
        };
        let spec: FigureSpec = serde_json::from_value(value.clone()).map_err(|error| fault(error.to_string()))?;
        spec.check().map_err(|error| usage(format!("{}: {error}", file.display()), "mend its [[figure]]"))?;
        if names.contains(&name) {
            return Err(fault("another one has the same name, and so the same files".to_owned()));
        }
        names.push(name);
    }
    Ok(())
}

/// What a figure is called in an error, whatever else is wrong with it.
fn name(number: usize, figure: &Value) -> String {
    figure.get("name").and_then(Value::as_str).map_or_else(|| format!("number {}", number + 1), str::to_owned)
}

/// The figures that the experiment names, or those of them that are asked for.
fn specs(figures: &[Value], only: &[String]) -> anyhow::Result<Vec<FigureSpec>> {
    let mut specs = Vec::new();
    for (number, value) in figures.iter().enumerate() {
        let name = name(number, value);
        let spec: FigureSpec = serde_json::from_value(value.clone()).map_err(|error| {
            usage(
                format!("figure {name} of the experiment: {error}"),
                "mend [[figure]] in the experiment's file and its campaign.json",
            )
        })?;
        specs.push(spec);
    }
    let known = specs.iter().map(|spec| spec.name.clone()).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = only.iter().find(|name| !specs.iter().any(|spec| spec.name == **name)) {
        return Err(usage(format!("the experiment has no figure '{unknown}'"), format!("its figures are: {known}")));
    }
    if specs.is_empty() {
        return Err(usage("the experiment names no figure", "add a [[figure]] to its file"));
    }
    specs.retain(|spec| only.is_empty() || only.contains(&spec.name));
    Ok(specs)
}
