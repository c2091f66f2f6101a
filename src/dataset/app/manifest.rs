//! The manifest beside each template.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::lcg::SEED_DATA;
use super::size::AppSize;
use crate::dataset::error::DatasetError;
use crate::dataset::manifest::{MANIFEST_VERSION, bad, check_header, expect, parse, read_text};

/// Version of the rows and the layout: whatever changes them changes this.
pub const TEMPLATE_VERSION: u32 = 1;
/// What the manifest calls the data set.
const BENCHMARK: &str = "app";

/// What made a template, and what it must look like. Written beside it as `FILE.manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppManifest {
    /// Version of this layout.
    pub manifest_version: u32,
    /// The data set: `app`.
    pub benchmark: String,
    /// Version of the rows and of their layout.
    pub template_version: u32,
    /// Seed of the generator.
    pub seed: u32,
    /// Users.
    pub users: u32,
    /// Orders of each user.
    pub orders_per_user: u32,
    /// Page size, in bytes.
    pub page_size_bytes: u32,
    /// Version of SQLite that wrote the file.
    pub sqlite_version: String,
    /// Rows of each table.
    pub rows: BTreeMap<String, u64>,
    /// Sum of all orders' amounts, in cents.
    pub amount_cents: i64,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// The 100 bytes of the file's header, in hexadecimal.
    pub header: String,
    /// Version of ioscope.
    pub ioscope_version: String,
}

impl AppManifest {
    /// The manifest of a file that has just been made.
    pub(super) fn new(size: AppSize, page_size_bytes: u32, amount_cents: i64, size_bytes: u64, header: String) -> Self {
        AppManifest {
            manifest_version: MANIFEST_VERSION,
            benchmark: BENCHMARK.to_owned(),
            template_version: TEMPLATE_VERSION,
            seed: SEED_DATA,
            users: size.users(),
            orders_per_user: size.orders_per_user(),
            page_size_bytes,
            sqlite_version: rusqlite::version().to_owned(),
            rows: BTreeMap::from([("users".to_owned(), u64::from(size.users())), ("orders".to_owned(), size.orders())]),
            amount_cents,
            size_bytes,
            header,
            ioscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Whether another version of the generator, or another seed, made it.
    pub fn is_outdated(&self) -> bool {
        (self.template_version, self.seed) != (TEMPLATE_VERSION, SEED_DATA)
    }

    /// Reads the manifest of a database and checks that the file is the one that it describes.
    pub(super) fn read_and_check(database: &Path) -> Result<Self, DatasetError> {
        let (size_bytes, text) = read_text(database)?;
        let manifest: AppManifest = parse(&text, MANIFEST_VERSION).map_err(|why| bad(database, why))?;
        expect(database, "benchmark", &manifest.benchmark, BENCHMARK)?;
        expect(database, "size in bytes", &size_bytes, &manifest.size_bytes)?;
        check_header(database, &manifest.header)?;
        Ok(manifest)
    }

    /// Checks that this is the data set that is asked for.
    pub(super) fn check_asked(&self, database: &Path, size: AppSize) -> Result<(), DatasetError> {
        expect(database, "number of users", &self.users, &size.users())?;
        expect(database, "number of orders of a user", &self.orders_per_user, &size.orders_per_user())
    }
}
