//! The file of an experiment (TOML): what it may hold, and how it becomes a [`Definition`].
//!
//! ```toml
//! name = "readahead"                    # names the results folder
//! title = "Readahead by the engine"     # optional
//! question = "..."
//! hypothesis = "..."                    # optional
//! reference = ["article.readahead"]     # optional: sections of reference.toml, beside this file or built in
//!
//! [dataset]                             # optional: TPC-H, scale 1, 4096 bytes
//! kind = "tpch"
//! scale = 1
//! page_size = 4096
//!
//! [workload]                            # not needed where there are only scans
//! kind = "query"
//! sql = "tpch/q06"                      # a standard query, or a file: from this file's folder or the current one
//!
//! [protocol]                            # optional, and so is each key
//! cache = "cold"
//! runs = 7
//! warmup = 0
//! seed = 1
//! timeout = "1h"
//! cpus = "0-1"
//! counters = "both"
//! sample = "50ms"                       # none without it; the counted runs only, where there are both
//!
//! [[matrix]]                            # one or several; their union is measured
//! engine = ["turso", "sqlite"]          # a value or a list, on each axis of `ioscope query`, cpus and sqpoll_idle_ms
//! window = [0, 32]
//! runs = 3                              # optional: another number than the protocol's
//!
//! [[scan]]                              # optional, as many as you like: the reader alone, without an engine, in the
//! backend = ["uring", "uring-sqpoll"]   # same campaign and on the same file; the axes of `ioscope scan`
//! random = 200000
//! depth = [1, 8, 32]
//! think = ["0", "2us"]
//!
//! [[exclude]]                           # optional
//! engine = "turso"
//! window = 0
//! reason = "..."
//!
//! [[ratio]]                             # optional: what is set against what
//! title = "what readahead saves"
//! baseline = { window = 0 }             # each cell is set against the one that differs from it in this
//! of = { engine = "sqlite" }            # optional: which cells
//!
//! [[figure]]                            # optional: see `report::figure`
//! ```

pub mod axes;
mod cells;
mod place;
mod reference;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use self::axes::{Cpus, ExcludeTable, MatrixTable, Named, One, PatternTable, ScanTable};
use super::cpus::CpuList;
use super::definition::{About, DatasetChoice, Definition, Protocol};
use super::duration::{SampleInterval, Timeout};
use super::plan::nearest;
use super::record::CacheState;
use super::schedule::Counters;
use super::spec::Workload;
use crate::dataset::{DEFAULT_PAGE_SIZE_BYTES, PAGE_SIZES_BYTES, Scale, queries};
use crate::workload::query::Query;

/// Largest file that is read, in bytes.
const FILE_MAX_BYTES: u64 = 4 << 20;
/// Most runs of a cell.
const RUNS_MAX: u32 = 10_000;
const RUNS_HELP: &str = "a cell needs at least one run; seven are enough for an interval";

/// What the command line says instead of the file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Timed runs of each cell; a matrix with fewer of its own keeps them.
    pub runs: Option<u32>,
    /// Scale of the data set.
    pub scale: Option<Scale>,
    /// Another database than the file's data set.
    pub database: Option<PathBuf>,
    /// How often a run is sampled.
    pub sample: Option<SampleInterval>,
    /// Most random reads of a scan.
    pub reads: Option<u64>,
}

/// Why a file is no experiment that can be run: one thing, where it is, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {what}", .path.display(), .line.map_or_else(String::new, |line| format!(", line {line}")))]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1, where there is one.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub help: String,
}

/// What is wrong, and where in the text.
pub struct Fault {
    span: Option<Range<usize>>,
    what: String,
    help: String,
}

impl Fault {
    fn new(span: Option<Range<usize>>, what: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault { span, what: what.into(), help: help.into() }
    }
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTable {
    name: Spanned<String>,
    title: Option<String>,
    question: Spanned<String>,
    hypothesis: Option<String>,
    reference: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    dataset: DatasetTable,
    workload: Option<Spanned<WorkloadTable>>,
    #[serde(default)]
    protocol: ProtocolTable,
    #[serde(default)]
    matrix: Vec<Spanned<MatrixTable>>,
    #[serde(default)]
    scan: Vec<Spanned<ScanTable>>,
    #[serde(default)]
    exclude: Vec<Spanned<ExcludeTable>>,
    #[serde(default)]
    ratio: Vec<Spanned<RatioTable>>,
    #[serde(default)]
    figure: Vec<toml::Table>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct DatasetTable {
    kind: Option<Spanned<String>>,
    scale: Option<Spanned<f64>>,
    page_size: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadTable {
    kind: Spanned<String>,
    sql: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct ProtocolTable {
    cache: Option<One<Named<CacheState>>>,
    runs: Option<Spanned<u32>>,
    warmup: Option<Spanned<u32>>,
    seed: Option<u64>,
    timeout: Option<Spanned<String>>,
    cpus: Option<One<Cpus>>,
    counters: Option<One<Named<Counters>>>,
    sample: Option<Spanned<String>>,
}

/// `[[ratio]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioTable {
    title: String,
    baseline: PatternTable,
    of: Option<PatternTable>,
}

/// An experiment's file: its text and what it defines.
#[derive(Debug)]
pub struct Loaded {
    /// The text, byte for byte.
    pub text: String,
    /// What it defines.
    pub definition: Definition,
}

/// Reads and resolves a file.
///
/// # Errors
///
/// The first thing that is wrong with it.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Loaded, FileError> {
    let error = |what: String, help: &str| FileError { path: path.to_owned(), line: None, what, help: help.to_owned() };
    let metadata = std::fs::metadata(path)
        .map_err(|e| error(e.to_string(), "give the path of an experiment's file; experiments/ has some"))?;
    if !metadata.is_file() {
        return Err(error("it is no file".to_owned(), "give the path of an experiment's file; experiments/ has some"));
    }
    if metadata.len() > FILE_MAX_BYTES {
        return Err(error("it is larger than 4 MiB".to_owned(), "give the path of an experiment's file"));
    }
    let bytes = std::fs::read(path).map_err(|e| error(e.to_string(), "make it readable"))?;
    let text = String::from_utf8(bytes).map_err(|_| error("it is not UTF-8 text".to_owned(), "save it as UTF-8"))?;
    let definition = parse(&text, path, overrides)?;
    Ok(Loaded { text, definition })
}

/// Resolves the text of a file; `path` says where relative names in it start, and is named by errors.
///
/// # Errors
///
/// The first thing that is wrong with it.
pub fn parse(text: &str, path: &Path, overrides: &Overrides) -> Result<Definition, FileError> {
    resolve(text, path, overrides).map_err(|fault| FileError {
        path: path.to_owned(),
        line: fault.span.map(|span| line_of(text, span.start)),
        what: fault.what,
        help: fault.help,
    })
}

fn resolve(text: &str, path: &Path, overrides: &Overrides) -> Result<Definition, Fault> {
    let file: FileTable = read(text)?;
    let about = about(&file, path)?;
    let workload = workload(&file, path)?;
    let dataset = dataset(&file.dataset, overrides)?;
    let protocol = protocol(&file.protocol, overrides)?;
    let path_is_utf8 = match &dataset {
        DatasetChoice::File(path) => path.to_str().is_some(),
        DatasetChoice::Tpch { .. } => true,
    };
    let common = cells::Common {
        cache: protocol.cache,
        runs: protocol.runs,
        runs_max: overrides.runs,
        reads_max: overrides.reads,
        cpus: protocol.cpus.clone(),
        path_is_utf8,
    };
    let tables = cells::Tables { matrix: &file.matrix, scan: &file.scan, exclude: &file.exclude, ratio: &file.ratio };
    let cells::Resolved { cells, left_out, ratios } = cells::resolve(&tables, &common)?;
    Ok(Definition { about, dataset, workload, protocol, cells, left_out, ratios })
}

/// What the cells of `[[matrix]]` ask.
fn workload(file: &FileTable, path: &Path) -> Result<Workload, Fault> {
    const HELP: &str = "write for example:\n  [workload]\n  kind = \"query\"\n  sql = \"tpch/q06\"";
    let Some(table) = &file.workload else {
        return match file.matrix.first() {
            None => Ok(Workload::Scan),
            Some(matrix) => Err(Fault::new(
                Some(matrix.span()),
                "there is no [workload], so the cells of this [[matrix]] ask nothing",
                HELP,
            )),
        };
    };
    let kind = &table.get_ref().kind;
    if kind.get_ref() != "query" {
        let near = nearest(kind.get_ref(), ["query"].into_iter());
        let what = format!("unknown workload '{}'; known: query{near}", kind.get_ref());
        return Err(Fault::new(Some(kind.span()), what, "scans need no workload: they have tables [[scan]]"));
    }
    query(table, path).map(Workload::Query)
}

fn about(file: &FileTable, path: &Path) -> Result<About, Fault> {
    let name = file.name.get_ref();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 100 || !name.chars().all(is_allowed) {
        let what = format!("the name '{name}' cannot name a folder");
        return Err(Fault::new(Some(file.name.span()), what, "use letters, digits, '-' and '_'"));
    }
    if file.question.get_ref().trim().is_empty() {
        return Err(Fault::new(Some(file.question.span()), "the question is empty", "say what the experiment asks"));
    }
    let wanted = file.reference.as_deref().unwrap_or_default();
    let reference = reference::sections(wanted, path)?;
    let figures = file.figure.iter().map(|figure| serde_json::to_value(figure).unwrap_or_default()).collect();
    Ok(About {
        name: name.clone(),
        title: file.title.as_ref().unwrap_or(name).trim().to_owned(),
        question: file.question.get_ref().trim().to_owned(),
        hypothesis: file.hypothesis.as_ref().map(|text| text.trim().to_owned()),
        reference,
        figures,
    })
}

/// A standard query by its name, or a file: from the experiment's folder, or from the current one.
fn query(table: &Spanned<WorkloadTable>, path: &Path) -> Result<Query, Fault> {
    let help = "name a standard query, tpch/q01 to tpch/q22, or the path of a file with one SQL statement";
    let Some(sql) = &table.get_ref().sql else {
        return Err(Fault::new(Some(table.span()), "workload.sql is missing", help));
    };
    let name = sql.get_ref();
    let number = name.strip_prefix("tpch/q").filter(|digits| digits.len() == 2).and_then(|digits| digits.parse().ok());
    if let Some(text) = number.and_then(queries::query) {
        return Ok(Query { name: name["tpch/".len()..].to_owned(), sql: text.to_owned() });
    }
    let beside = path.parent().unwrap_or(Path::new("")).join(name);
    let file = if beside.exists() { beside } else { PathBuf::from(name) };
    Query::load(&file).map_err(|error| Fault::new(Some(sql.span()), super::error_line(&error), help))
}

fn dataset(table: &DatasetTable, overrides: &Overrides) -> Result<DatasetChoice, Fault> {
    if let Some(kind) = table.kind.as_ref().filter(|kind| kind.get_ref() != "tpch") {
        let unknown = kind.get_ref();
        let what = format!("unknown data set '{unknown}'; known: tpch{}", nearest(unknown, ["tpch"].into_iter()));
        return Err(Fault::new(Some(kind.span()), what, "a database of your own is asked with --db FILE"));
    }
    let scale = match &table.scale {
        None => Scale::ONE,
        Some(scale) => Scale::new(*scale.get_ref())
            .map_err(|e| Fault::new(Some(scale.span()), e.to_string(), "scale = 1 makes a database of 1.2 GiB"))?,
    };
    let page_size_bytes = match &table.page_size {
        None => DEFAULT_PAGE_SIZE_BYTES,
        Some(size) if PAGE_SIZES_BYTES.contains(size.get_ref()) => *size.get_ref(),
        Some(size) => {
            let what = format!("page_size {} is none of SQLite's", size.get_ref());
            return Err(Fault::new(Some(size.span()), what, "a power of two from 512 to 65536"));
        }
    };
    Ok(match &overrides.database {
        Some(path) => DatasetChoice::File(path.clone()),
        None => DatasetChoice::Tpch { scale: overrides.scale.unwrap_or(scale), page_size_bytes },
    })
}

/// Checks a number of runs.
fn runs_of(runs: u32) -> Result<u32, String> {
    match runs {
        1..=RUNS_MAX => Ok(runs),
        _ => Err(format!("runs = {runs} is out of range; a whole number from 1 to {RUNS_MAX}")),
    }
}

fn protocol(table: &ProtocolTable, overrides: &Overrides) -> Result<Protocol, Fault> {
    let runs = match &table.runs {
        None => 7,
        Some(runs) => runs_of(*runs.get_ref()).map_err(|what| Fault::new(Some(runs.span()), what, RUNS_HELP))?,
    };
    let warmup = match &table.warmup {
        None => 0,
        Some(rounds) if *rounds.get_ref() <= 100 => *rounds.get_ref(),
        Some(rounds) => {
            let what = format!("warmup = {} is out of range; at most 100 rounds", rounds.get_ref());
            return Err(Fault::new(
                Some(rounds.span()),
                what,
                "every run is a fresh process that prepares the cache itself",
            ));
        }
    };
    let timeout = match &table.timeout {
        None => Timeout(Some(std::time::Duration::from_secs(3600))),
        Some(text) => text
            .get_ref()
            .parse()
            .map_err(|e: super::duration::DurationError| Fault::new(Some(text.span()), e.to_string(), ""))?,
    };
    let sample = match &table.sample {
        None => None,
        Some(text) => Some(
            text.get_ref()
                .parse()
                .map_err(|e: super::duration::SampleIntervalError| Fault::new(Some(text.span()), e.to_string(), ""))?,
        ),
    };
    Ok(Protocol {
        cache: table.cache.as_ref().map_or(CacheState::Cold, |cache| cache.0),
        runs: overrides.runs.unwrap_or(runs),
        warmup,
        seed: table.seed.unwrap_or(1),
        timeout,
        cpus: table.cpus.as_ref().map(|cpus| cpus.0.clone()),
        counters: table.counters.as_ref().map_or(Counters::Both, |counters| counters.0),
        sample: overrides.sample.or(sample),
    })
}

/// The CPUs that runs of the cells are confined to, each list once.
pub fn cpus_of(definition: &Definition) -> Vec<CpuList> {
    let mut lists: Vec<CpuList> = Vec::new();
    for cpus in definition.cells.iter().filter_map(|cell| cell.cpus.clone()) {
        if !lists.contains(&cpus) {
            lists.push(cpus);
        }
    }
    lists
}

/// Reads TOML; an unknown key is told with the nearest known one.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    toml::from_str(text).map_err(|error| {
        let (what, help) = explained(error.message());
        Fault::new(error.span(), what, help)
    })
}

/// The message of the TOML reader in our own words, where it is about a key.
fn explained(message: &str) -> (String, String) {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.split_first() {
        Some((unknown, known)) if message.starts_with("unknown field") => {
            let near = nearest(unknown, known.iter().copied());
            (
                format!("unknown key '{unknown}'; known here: {}{near}", known.join(", ")),
                "correct or remove the key".to_owned(),
            )
        }
        Some((missing, _)) if message.starts_with("missing field") => {
            (format!("the key '{missing}' is missing"), format!("add it: {missing} = ..."))
        }
        _ => {
            // Some messages have several lines.
            let what = message.split_whitespace().collect::<Vec<_>>().join(" ");
            (what, "see the head of src/experiment/file.rs for what a file may hold".to_owned())
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count()
}
