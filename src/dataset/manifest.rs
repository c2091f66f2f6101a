//! The manifest beside each data set: what made it, and what it must look like.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::DatasetError;
use super::generate::Tally;
use super::scale::Scale;
use super::tables::{Table, schema_digest};

/// Version of the manifest's layout.
pub const MANIFEST_VERSION: u32 = 1;

/// Version of the crate `tpchgen`; a test holds it against Cargo.lock.
const TPCHGEN_VERSION: &str = "4.0.0";

/// What made a data set, and what it must look like. Written beside it as `FILE.manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this layout.
    pub manifest_version: u32,
    /// The benchmark: `tpch`.
    pub benchmark: String,
    /// Crate that generated the rows, and its version.
    pub generator: String,
    /// Scale factor.
    pub scale: f64,
    /// Page size, in bytes.
    pub page_size_bytes: u32,
    /// Digest of the schema's text.
    pub schema_digest: String,
    /// Version of SQLite that wrote the file.
    pub sqlite_version: String,
    /// Rows of each table.
    pub rows: BTreeMap<String, u64>,
    /// The exact answer of Q6, with four decimals.
    pub q6_revenue: String,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// The 100 bytes of the file's header, in hexadecimal: SQLite counts committed changes there, so that a
    /// file that was written to later is told apart.
    pub header: String,
    /// Version of ioscope.
    pub ioscope_version: String,
}

impl Manifest {
    /// The manifest of a file that has just been made.
    pub(super) fn new(scale: Scale, page_size_bytes: u32, tally: &Tally, size_bytes: u64, header: String) -> Self {
        Manifest {
            manifest_version: MANIFEST_VERSION,
            benchmark: "tpch".to_owned(),
            generator: format!("tpchgen {TPCHGEN_VERSION}"),
            scale: scale.get(),
            page_size_bytes,
            schema_digest: schema_digest(),
            sqlite_version: rusqlite::version().to_owned(),
            rows: tally.rows.iter().map(|(table, rows)| ((*table).to_owned(), *rows)).collect(),
            q6_revenue: ten_thousandths(tally.q6_ten_thousandths),
            size_bytes,
            header,
            ioscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Where the manifest of a database lies: its name with `.manifest.json` after it.
    pub fn path_for(database: &Path) -> PathBuf {
        let mut name = OsString::from(database);
        name.push(".manifest.json");
        PathBuf::from(name)
    }

    /// Rows of all tables together.
    pub fn total_rows(&self) -> u64 {
        self.rows.values().sum()
    }

    /// Reads the manifest of a database and checks that the file is the one that it describes.
    pub(super) fn read_and_check(database: &Path) -> Result<Self, DatasetError> {
        let (size_bytes, text) = read_text(database)?;
        let manifest: Manifest = parse(&text, MANIFEST_VERSION).map_err(|why| bad(database, why))?;
        manifest.check_file(database, size_bytes)?;
        Ok(manifest)
    }

    fn check_file(&self, database: &Path, size_bytes: u64) -> Result<(), DatasetError> {
        expect(database, "benchmark", &self.benchmark, "tpch")?;
        expect(database, "schema digest", &self.schema_digest, &schema_digest())?;
        expect(database, "size in bytes", &size_bytes, &self.size_bytes)?;
        let header = check_header(database, &self.header)?;
        // Bytes 16 and 17 hold the page size, and 1 stands for 65536.
        let stored = header.get(32..36).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0);
        let stored = if stored == 1 { 65536 } else { stored };
        expect(database, "page size", &stored, &self.page_size_bytes)?;
        match Table::ALL.into_iter().find(|table| !self.rows.contains_key(table.name())) {
            Some(table) => Err(bad(database, format!("it has no row count of {}", table.name()))),
            None => Ok(()),
        }
    }

    /// Checks that this is the data set that is asked for.
    pub(super) fn check_asked(&self, database: &Path, scale: Scale, page_size_bytes: u32) -> Result<(), DatasetError> {
        expect(database, "scale", &self.scale, &scale.get())?;
        expect(database, "page size", &self.page_size_bytes, &page_size_bytes)
    }
}

/// The size of a database that exists, in bytes, and the text of its manifest.
pub(super) fn read_text(database: &Path) -> Result<(u64, String), DatasetError> {
    let manifest_path = Manifest::path_for(database);
    let metadata = std::fs::metadata(database).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => DatasetError::Missing { path: database.to_owned() },
        _ => DatasetError::io("open", database, error),
    })?;
    if metadata.is_dir() {
        return Err(DatasetError::io("use", database, std::io::ErrorKind::IsADirectory.into()));
    }
    let text = std::fs::read_to_string(&manifest_path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            DatasetError::NoManifest { path: database.to_owned(), manifest: manifest_path.clone() }
        }
        std::io::ErrorKind::InvalidData => bad(database, "it is not UTF-8 text".to_owned()),
        _ => DatasetError::io("read", &manifest_path, error),
    })?;
    Ok((metadata.len(), text))
}

/// Understands a manifest's text; the version is looked at first, since another version may have other fields.
pub(super) fn parse<M: DeserializeOwned>(text: &str, version: u32) -> Result<M, String> {
    #[derive(Deserialize)]
    struct Version {
        manifest_version: u32,
    }
    let Version { manifest_version } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if manifest_version != version {
        return Err(format!("it has version {manifest_version}, and this program knows version {version}"));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The header of a database, which must be the one that its manifest has.
pub(super) fn check_header(database: &Path, expected: &str) -> Result<String, DatasetError> {
    let header = header_of(database)?;
    if header == expected {
        return Ok(header);
    }
    Err(DatasetError::Mismatch {
        path: database.to_owned(),
        what: "header",
        found: "another one: somebody has written to the file since it was made".to_owned(),
        expected: "the one in the manifest".to_owned(),
    })
}

/// Refuses a data set of which something is not what is wanted.
pub(super) fn expect<T: PartialEq<U> + ToString, U: ToString + ?Sized>(
    database: &Path,
    what: &'static str,
    found: &T,
    expected: &U,
) -> Result<(), DatasetError> {
    if found == expected {
        return Ok(());
    }
    let (path, found, expected) = (database.to_owned(), found.to_string(), expected.to_string());
    Err(DatasetError::Mismatch { path, what, found, expected })
}

pub(super) fn bad(database: &Path, why: String) -> DatasetError {
    DatasetError::BadManifest { path: database.to_owned(), manifest: Manifest::path_for(database), why }
}

/// The first 100 bytes of a file, in hexadecimal.
pub(super) fn header_of(database: &Path) -> Result<String, DatasetError> {
    let mut header = [0; 100];
    File::open(database)
        .and_then(|mut file| file.read_exact(&mut header))
        .map_err(|error| DatasetError::io("read the header of", database, error))?;
    Ok(header.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A number of ten-thousandths as a decimal with four places.
pub(super) fn ten_thousandths(value: i128) -> String {
    let (sign, value) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
    format!("{sign}{}.{:04}", value / 10_000, value % 10_000)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_has_the_version_that_the_manifest_names() {
        let lock = include_str!("../../Cargo.lock");
        assert!(lock.contains(&format!("name = \"tpchgen\"\nversion = \"{TPCHGEN_VERSION}\"")));
    }

    #[test]
    fn ten_thousandths_are_shown_exactly() {
        assert_eq!(ten_thousandths(1_231_410_782_283), "123141078.2283");
        assert_eq!(ten_thousandths(5), "0.0005");
        assert_eq!(ten_thousandths(-10_005), "-1.0005");
        assert_eq!(ten_thousandths(0), "0.0000");
    }

    #[test]
    fn another_version_is_named_as_the_reason_whatever_else_the_manifest_holds() {
        let why = parse::<Manifest>(r#"{"manifest_version": 2, "future": true}"#, MANIFEST_VERSION).unwrap_err();
        assert_eq!(why, "it has version 2, and this program knows version 1");
    }
}
