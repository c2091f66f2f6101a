//! Which b-tree each page of a database belongs to, by SQLite's dbstat: made once, before anything is measured.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use crate::page::ranges;

/// Name of the file in a folder of results.
pub const FILE_NAME: &str = "btrees.json";

/// Version of the file's layout.
pub const BTREES_SCHEMA: u32 = 1;

/// The b-trees of one database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Btrees {
    /// Version of the layout.
    pub schema: u32,
    /// Size of the database file, in bytes.
    pub file_bytes: u64,
    /// Page size, in bytes.
    pub page_size_bytes: u32,
    /// The b-trees, largest first.
    pub btrees: Vec<Btree>,
}

/// One b-tree: a table or an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Btree {
    /// Its name in the schema.
    pub name: String,
    /// The table that it is, or is an index of.
    pub table: String,
    /// Its leaf pages, in the compact form of [`ranges::encode`].
    pub leaf_pages: Vec<u64>,
    /// Its interior pages, in the same form.
    pub interior_pages: Vec<u64>,
    /// Its overflow pages, in the same form.
    pub overflow_pages: Vec<u64>,
}

/// Why the b-trees of a database are not known.
#[derive(Debug, thiserror::Error)]
pub enum BtreesError {
    /// SQLite could not walk the database.
    #[error("SQLite cannot list the pages of {}: {source}", .path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// SQLite's reason.
        source: rusqlite::Error,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {what}; delete it, and the next `ioscope run` makes it again", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl Btrees {
    /// Asks SQLite. It reads the whole database once (about two seconds a GiB) and leaves it in the page cache.
    ///
    /// # Errors
    /// [`BtreesError::Sqlite`], or [`BtreesError::Io`] where the file's size cannot be had.
    pub fn of_database(path: &Path) -> Result<Btrees, BtreesError> {
        let file_bytes = path.metadata().map_err(|source| BtreesError::Io { path: path.to_owned(), source })?.len();
        let (page_size_bytes, btrees) =
            walk(path).map_err(|source| BtreesError::Sqlite { path: path.to_owned(), source })?;
        Ok(Btrees { schema: BTREES_SCHEMA, file_bytes, page_size_bytes, btrees })
    }

    /// Writes the file `FILE_NAME` into a folder of results, under a temporary name first.
    ///
    /// # Errors
    /// [`BtreesError::Io`].
    pub fn save(&self, folder: &Path) -> Result<(), BtreesError> {
        let path = folder.join(FILE_NAME);
        let write = || {
            // Readable like any file that a program writes: the umask takes away what the user does not want.
            let permissions = std::fs::Permissions::from_mode(0o666);
            let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?;
            serde_json::to_writer(&mut file, self)?;
            io::Write::write_all(&mut file, b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|source| BtreesError::Io { path: path.clone(), source })
    }

    /// Reads the file of a folder of results; `None` where there is none.
    ///
    /// # Errors
    /// [`BtreesError::Io`], or [`BtreesError::Content`] for a file that was not written by [`Btrees::save`].
    pub fn load(folder: &Path) -> Result<Option<Btrees>, BtreesError> {
        let path = folder.join(FILE_NAME);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(BtreesError::Io { path, source }),
        };
        let btrees = match serde_json::from_slice::<Btrees>(&text) {
            Ok(btrees) => btrees,
            Err(error) => return Err(BtreesError::Content { path, what: error.to_string() }),
        };
        if btrees.schema > BTREES_SCHEMA {
            let what = format!("its schema is {}, newer than this ioscope's {BTREES_SCHEMA}", btrees.schema);
            return Err(BtreesError::Content { path, what });
        }
        match btrees.btrees.iter().all(|btree| btree.parts().iter().all(|(_, code)| ranges::decode(code).is_some())) {
            true => Ok(Some(btrees)),
            false => Err(BtreesError::Content { path, what: "its ranges of pages make no sense".to_owned() }),
        }
    }

    /// Makes and saves the file of a folder of results, unless it is there and of a database of this size.
    ///
    /// # Errors
    /// Everything in [`BtreesError`].
    pub fn ensure(database: &Path, folder: &Path) -> Result<(), BtreesError> {
        let size = |path: &Path| path.metadata().map_err(|source| BtreesError::Io { path: path.to_owned(), source });
        let bytes = size(database)?.len();
        match Btrees::load(folder) {
            Ok(Some(known)) if known.file_bytes == bytes => Ok(()),
            Ok(_) | Err(BtreesError::Content { .. }) => Btrees::of_database(database)?.save(folder),
            Err(error) => Err(error),
        }
    }
}

impl Btree {
    /// Kinds of pages, and which they are.
    pub fn parts(&self) -> [(&'static str, &[u64]); 3] {
        [("leaf", &self.leaf_pages), ("interior", &self.interior_pages), ("overflow", &self.overflow_pages)]
    }
}

fn walk(path: &Path) -> rusqlite::Result<(u32, Vec<Btree>)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let page_size_bytes = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let mut tables: BTreeMap<String, String> = BTreeMap::new();
    let mut statement = connection.prepare("SELECT name, tbl_name FROM sqlite_schema WHERE rootpage > 0")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        tables.insert(row.get(0)?, row.get(1)?);
    }

    let mut pages: BTreeMap<String, [Vec<Range<u64>>; 3]> = BTreeMap::new();
    let mut statement = connection.prepare("SELECT name, pageno, pagetype FROM dbstat")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let page = row.get::<_, i64>(1)?.unsigned_abs();
        let kind = match row.get_ref(2)?.as_bytes()? {
            b"leaf" => 0,
            b"internal" => 1,
            _ => 2,
        };
        let name = row.get_ref(0)?.as_str()?;
        let known = match pages.get_mut(name) {
            Some(known) => known,
            None => pages.entry(name.to_owned()).or_default(),
        };
        known[kind].push(page..page + 1);
    }
    let mut btrees: Vec<(u64, Btree)> = pages
        .into_iter()
        .map(|(name, kinds)| {
            let merged = kinds.map(ranges::merge);
            let count = merged.iter().map(|pages| ranges::count(pages)).sum();
            let [leaf_pages, interior_pages, overflow_pages] = merged.map(|pages| ranges::encode(&pages));
            let table = tables.get(&name).unwrap_or(&name).clone();
            (count, Btree { name, table, leaf_pages, interior_pages, overflow_pages })
        })
        .collect();
    btrees.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| x.name.cmp(&y.name)));
    Ok((page_size_bytes, btrees.into_iter().map(|(_, btree)| btree).collect()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn database(folder: &Path) -> PathBuf {
        let path = folder.join("a b%?.db");
        let connection = Connection::open(&path).unwrap();
        let sql = "PRAGMA page_size = 512;
            CREATE TABLE T (A INTEGER, B TEXT, PRIMARY KEY (A, B));
            WITH RECURSIVE N(I) AS (SELECT 1 UNION ALL SELECT I + 1 FROM N WHERE I < 300)
            INSERT INTO T SELECT I, hex(zeroblob(20)) FROM N;
            INSERT INTO T VALUES (1000, hex(zeroblob(2000)));";
        connection.execute_batch(sql).unwrap();
        path
    }

    #[test]
    fn every_page_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = database(folder.path());
        let before = std::fs::read(&path).unwrap();
        let btrees = Btrees::of_database(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let pages = btrees.file_bytes / u64::from(btrees.page_size_bytes);
        let all: Vec<Range<u64>> = btrees
            .btrees
            .iter()
            .flat_map(|btree| btree.parts())
            .flat_map(|(_, code)| ranges::decode(code).unwrap())
            .collect();
        assert_eq!((ranges::count(&all), ranges::merge(all)), (pages, vec![1..pages + 1]));
        let index = btrees.btrees.iter().find(|btree| btree.name == "sqlite_autoindex_T_1").unwrap();
        assert_eq!(index.table, "T");
        let table = btrees.btrees.iter().find(|btree| btree.name == "T").unwrap();
        assert!(!table.interior_pages.is_empty() && !table.overflow_pages.is_empty());
    }

    #[test]
    fn the_file_is_made_once_and_again_for_another_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = database(folder.path());
        assert_eq!(Btrees::load(folder.path()).unwrap(), None);
        Btrees::ensure(&path, folder.path()).unwrap();
        let first = Btrees::load(folder.path()).unwrap().unwrap();
        assert_eq!(first, Btrees::of_database(&path).unwrap());
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE U (A)").unwrap();
        Btrees::ensure(&path, folder.path()).unwrap();
        assert!(Btrees::load(folder.path()).unwrap().unwrap().btrees.iter().any(|btree| btree.name == "U"));
        std::fs::write(folder.path().join(FILE_NAME), "{\"schema\": 1").unwrap();
        assert!(matches!(Btrees::load(folder.path()), Err(BtreesError::Content { .. })));
        Btrees::ensure(&path, folder.path()).unwrap();
        assert!(Btrees::load(folder.path()).unwrap().is_some());
    }

    #[test]
    fn what_is_no_database_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("x"),
            "not a database, and longer than a header of one hundred bytes".repeat(3),
        )
        .unwrap();
        assert!(matches!(Btrees::of_database(&folder.path().join("x")), Err(BtreesError::Sqlite { .. })));
        assert!(matches!(Btrees::of_database(&folder.path().join("none")), Err(BtreesError::Io { .. })));
    }
}
