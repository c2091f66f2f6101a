//! `ioscope dataset`: makes the databases that are asked.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::error::usage;
use crate::dataset::app::{self, AppSize};
use crate::dataset::{self, DEFAULT_PAGE_SIZE_BYTES, Progress, Scale};

/// Make a database to ask, or check the one that is there.
///
/// Prints one line about it on standard output. The file gets its name only once it is complete, checked and synced, and
/// FILE.manifest.json beside it says what made it. A file that is already there is checked against its manifest and kept.
#[derive(Debug, Clone, Args)]
pub struct DatasetArgs {
    /// Whose tables are made.
    #[command(subcommand)]
    pub benchmark: Benchmark,
}

/// A data set.
#[derive(Debug, Clone, Subcommand)]
pub enum Benchmark {
    /// TPC-H: eight tables, with the published layout
    Tpch(TpchArgs),
    /// Users and their orders, as the published application load has them
    App(AppArgs),
}

/// TPC-H.
#[derive(Debug, Clone, Args)]
pub struct TpchArgs {
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

/// The application's tables.
#[derive(Debug, Clone, Args)]
pub struct AppArgs {
    /// small: 100 000 users of 4 orders; medium: 400 000 of 5; large: 1 000 000 of 6
    #[arg(long, value_name = "NAME", default_value = "small", conflicts_with_all = ["users", "orders_per_user"])]
    pub scale: AppSize,
    /// Users, instead of a named scale
    #[arg(long, value_name = "N", requires = "orders_per_user")]
    pub users: Option<u32>,
    /// Orders of each user
    #[arg(long, value_name = "N", requires = "users")]
    pub orders_per_user: Option<u32>,
    /// The file to make [default: data/app-{SCALE}.db]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl AppArgs {
    /// The size that is asked for.
    fn size(&self) -> anyhow::Result<AppSize> {
        match (self.users, self.orders_per_user) {
            (Some(users), Some(orders_per_user)) => AppSize::new(users, orders_per_user)
                .map_err(|error| usage(error.to_string(), "--scale small has 100 000 users of 4 orders")),
            _ => Ok(self.scale),
        }
    }
}

fn page_size_bytes(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|size| dataset::PAGE_SIZES_BYTES.contains(size))
        .ok_or_else(|| format!("SQLite knows {}", dataset::PAGE_SIZES_BYTES.map(|size| size.to_string()).join(", ")))
}

/// Makes or checks the data set and says what it is.
pub fn run(args: &DatasetArgs) -> anyhow::Result<()> {
    match &args.benchmark {
        Benchmark::Tpch(args) => tpch(args),
        Benchmark::App(args) => application(args),
    }
}

fn tpch(args: &TpchArgs) -> anyhow::Result<()> {
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
        how(was_there)
    )?;
    Ok(())
}

fn application(args: &AppArgs) -> anyhow::Result<()> {
    let size = args.size()?;
    let out = args.out.clone().unwrap_or_else(|| app::default_path(size));
    let template = app::ensure(size, &out, Progress::Bar)?;
    let manifest = &template.manifest;
    writeln!(
        std::io::stdout(),
        "{}: application, {size}, {} bytes in pages of {}, {} users, {} orders, {} cents ({})",
        template.path.display(),
        manifest.size_bytes,
        manifest.page_size_bytes,
        size.users(),
        size.orders(),
        manifest.amount_cents,
        how(template.was_there)
    )?;
    Ok(())
}

fn how(was_there: bool) -> &'static str {
    if was_there { "already there, checked" } else { "made, checked" }
}
