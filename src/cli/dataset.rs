//! `ioscope dataset`: makes the databases that are asked.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::dataset::{self, DEFAULT_PAGE_SIZE_BYTES, Progress, Scale};

/// Make a database to ask, or check the one that is there.
///
/// Prints one line about it on standard output. The file gets its name only once it is complete, checked and synced, and
/// FILE.manifest.json beside it says what made it. A file that is already there is checked against its manifest and kept.
#[derive(Debug, Clone, Args)]
pub struct DatasetArgs {
    /// The benchmark whose tables are made.
    #[arg(value_enum)]
    pub benchmark: Benchmark,
    /// Scale factor: 1 makes a database of 1.2 GiB; fractions such as 0.01 work.
    #[arg(long, value_name = "SF", default_value = "1", allow_hyphen_values = true)]
    pub scale: Scale,
    /// Page size in bytes: a power of two from 512 to 65536.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PAGE_SIZE_BYTES, value_parser = page_size_bytes)]
    pub page_size: u32,
    /// The file to make [default: data/tpch-sf{SF}.db, with -p{N} before .db for other page sizes than 4096]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// A benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// TPC-H: eight tables, SQLite format.
    Tpch,
}

fn page_size_bytes(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|size| dataset::PAGE_SIZES_BYTES.contains(size))
        .ok_or_else(|| format!("SQLite knows {}", dataset::PAGE_SIZES_BYTES.map(|size| size.to_string()).join(", ")))
}

/// Makes or checks the data set and says what it is.
pub fn run(args: &DatasetArgs) -> anyhow::Result<()> {
    let Benchmark::Tpch = args.benchmark;
    let out = args.out.clone().unwrap_or_else(|| dataset::default_path(args.scale, args.page_size));
    let was_there = out.exists();
    let dataset = dataset::ensure(args.scale, args.page_size, &out, Progress::Bar)?;
    let manifest = &dataset.manifest;
    writeln!(
        std::io::stdout(),
        "{}: TPC-H, scale {}, {} bytes in pages of {}, {} rows, Q6 = {} ({})",
        dataset.path.display(),
        args.scale,
        manifest.size_bytes,
        manifest.page_size_bytes,
        manifest.total_rows(),
        manifest.q6_revenue,
        if was_there { "already there, checked" } else { "made, checked" }
    )?;
    Ok(())
}
