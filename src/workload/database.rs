//! Whether a file is a database that can be asked, seen from its first bytes and its size.
//!
//! Closing any descriptor of a database drops the POSIX locks that this process holds on it, so `check` runs only
//! before an engine has the file open.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of the header at the start of a database (<https://sqlite.org/fileformat2.html#the_database_header>).
pub const HEADER_BYTES: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// First bytes of a rollback journal that has to be played back; a finished one is deleted, emptied or zeroed.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Page size, in bytes.
    pub page_size_bytes: u32,
    /// Size of the database, in pages, where the header's own count can be trusted.
    pub pages: Option<u32>,
    /// Whether the file is in WAL mode.
    pub wal_mode: bool,
}

/// Why a header is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The first bytes are not those of a database.
    #[error("not an SQLite database: its first 16 bytes are not 'SQLite format 3'")]
    Magic,
    /// The header itself is cut.
    #[error("truncated: {file_bytes} bytes, and the header alone has {HEADER_BYTES}")]
    Short {
        /// Size of the file.
        file_bytes: u64,
    },
    /// A field has a value that the format does not allow.
    #[error("damaged header: {field} is {value}; {allowed}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// What it may be.
        allowed: &'static str,
    },
    /// The file is shorter than its header says.
    #[error(
        "truncated: the header says {pages} pages of {page_size_bytes} bytes, {expected_bytes} bytes in all, and the file has {file_bytes}"
    )]
    Truncated {
        /// Pages by the header.
        pages: u32,
        /// Page size by the header.
        page_size_bytes: u32,
        /// Their product.
        expected_bytes: u64,
        /// Size of the file.
        file_bytes: u64,
    },
}

/// Reads a header from the first bytes of a file of `file_bytes` bytes. With a live WAL the file itself may rightly be
/// shorter than the database, so its size is not judged then.
pub fn parse_header(head: &[u8], file_bytes: u64, live_wal: bool) -> Result<Header, HeaderError> {
    if head.is_empty() {
        return Err(HeaderError::Empty);
    }
    if !head.starts_with(MAGIC) {
        let cut = head.len() < MAGIC.len() && MAGIC.starts_with(head);
        return Err(if cut { HeaderError::Short { file_bytes } } else { HeaderError::Magic });
    }
    let Some(head) = head.first_chunk::<HEADER_BYTES>() else {
        return Err(HeaderError::Short { file_bytes });
    };
    let be32 = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let field = |field, value, allowed| Err(HeaderError::Field { field, value, allowed });

    let stored = u32::from(u16::from_be_bytes([head[16], head[17]]));
    let page_size_bytes = if stored == 1 { 65536 } else { stored };
    if !page_size_bytes.is_power_of_two() || page_size_bytes < 512 {
        return field("the page size", page_size_bytes, "a power of two from 512 to 65536 is allowed");
    }
    let read_version = head[19];
    if !(1..=2).contains(&read_version) {
        return field("the read version", read_version.into(), "1 (rollback journal) or 2 (WAL) can be read");
    }
    let reserved = u32::from(head[20]);
    if page_size_bytes - reserved < 480 {
        return field("the reserved space of a page", reserved, "at least 480 bytes of a page have to remain");
    }
    for (at, name, expected, allowed) in [
        (21, "the maximum payload fraction", 64, "64 is allowed"),
        (22, "the minimum payload fraction", 32, "32 is allowed"),
        (23, "the leaf payload fraction", 32, "32 is allowed"),
    ] {
        if head[at] != expected {
            return field(name, head[at].into(), allowed);
        }
    }
    let encoding = be32(56);
    if encoding > 3 {
        return field("the text encoding", encoding, "1 (UTF-8), 2 or 3 (UTF-16) are allowed");
    }

    // Old writers left the page count alone; they also left version-valid-for behind the change counter.
    let pages = Some(be32(28)).filter(|&pages| pages > 0 && be32(24) == be32(92));
    if !live_wal {
        let counted = pages.unwrap_or(1);
        let expected_bytes = u64::from(counted) * u64::from(page_size_bytes);
        if file_bytes < expected_bytes {
            return Err(HeaderError::Truncated { pages: counted, page_size_bytes, expected_bytes, file_bytes });
        }
    }
    Ok(Header { page_size_bytes, pages, wal_mode: read_version == 2 })
}

/// A file that was found to be a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Where it is.
    pub path: PathBuf,
    /// Size of the file, in bytes.
    pub file_bytes: u64,
    /// What its header says.
    pub header: Header,
    /// Whether a write-ahead log with content lies beside it.
    pub live_wal: bool,
}

/// Why a path cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// There is nothing.
    #[error("database {}: no such file", .0.display())]
    Missing(PathBuf),
    /// Something else than a file.
    #[error("database {}: it is a {kind}, not a file", .path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The kernel refused.
    #[error("database {}: {source}", .path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
    /// The content is wrong.
    #[error("database {}: {source}", .path.display())]
    Header {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        source: HeaderError,
    },
    /// A rollback journal waits to be played back.
    #[error("database {}: a rollback journal beside it is not finished", .0.display())]
    HotJournal(PathBuf),
}

impl DatabaseError {
    /// What the user can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            DatabaseError::Missing(_) => "check the path, or leave --db out: a TPC-H database is then made and used",
            DatabaseError::NotAFile { .. } => "give the path of the database file itself",
            DatabaseError::Io { .. } => "check the permissions of the file and of the folders above it",
            DatabaseError::Header { source: HeaderError::Truncated { .. } | HeaderError::Short { .. }, .. } => {
                "copy the database again, or restore it from a backup; a measurement needs a whole one"
            }
            DatabaseError::Header { .. } => {
                "give an SQLite database; 'ioscope dataset tpch' makes one (encrypted databases cannot be read)"
            }
            DatabaseError::HotJournal(_) => {
                "a process is writing, or one crashed while it wrote: wait for it, or open the database once with sqlite3, \
                 which rolls the unfinished transaction back"
            }
        }
    }
}

/// Checks that `path` is a whole database, without changing it.
pub fn check(path: &Path) -> Result<Database, DatabaseError> {
    let io = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => DatabaseError::Missing(path.to_owned()),
        _ => DatabaseError::Io { path: path.to_owned(), source },
    };
    // Before opening: opening a FIFO would wait for a writer.
    let metadata = std::fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "directory" } else { "device, pipe or socket" };
        return Err(DatabaseError::NotAFile { path: path.to_owned(), kind });
    }
    let live_wal = std::fs::metadata(beside(path, "-wal")).is_ok_and(|m| m.len() > 0);
    let mut head = Vec::with_capacity(HEADER_BYTES);
    File::open(path).and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut head)).map_err(io)?;
    let header = parse_header(&head, metadata.len(), live_wal)
        .map_err(|source| DatabaseError::Header { path: path.to_owned(), source })?;
    if journal_is_hot(&beside(path, "-journal")) {
        return Err(DatabaseError::HotJournal(path.to_owned()));
    }
    Ok(Database { path: path.to_owned(), file_bytes: metadata.len(), header, live_wal })
}

fn journal_is_hot(path: &Path) -> bool {
    let mut magic = [0; JOURNAL_MAGIC.len()];
    std::fs::metadata(path).is_ok_and(|m| m.is_file())
        && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && magic == JOURNAL_MAGIC
}

/// The path with `suffix` after its last byte, as SQLite names the files beside a database.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A database that SQLite itself wrote.
    fn made(folder: &Path, page_size: u32) -> PathBuf {
        let path = folder.join(format!("p{page_size}.db"));
        let db = rusqlite::Connection::open(&path).unwrap();
        db.pragma_update(None, "page_size", page_size).unwrap();
        db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(300000));").unwrap();
        path
    }

    #[test]
    fn every_page_size_of_the_format_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for page_size in [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536] {
            let database = check(&made(folder.path(), page_size)).unwrap();
            assert_eq!(database.header.page_size_bytes, page_size);
            assert_eq!(u64::from(database.header.pages.unwrap()) * u64::from(page_size), database.file_bytes);
            assert!(!database.live_wal && !database.header.wal_mode);
        }
    }

    #[test]
    fn a_truncated_database_is_told_from_one_with_a_live_wal() {
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path(), 4096);
        let whole = std::fs::metadata(&path).unwrap().len();
        File::options().write(true).open(&path).unwrap().set_len(whole - 1).unwrap();
        let error = check(&path).unwrap_err();
        assert!(matches!(error, DatabaseError::Header { source: HeaderError::Truncated { .. }, .. }), "{error}");
        std::fs::write(beside(&path, "-wal"), b"frames").unwrap();
        assert!(check(&path).unwrap().live_wal);
    }

    #[test]
    fn fields_that_the_format_does_not_allow_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = std::fs::read(made(folder.path(), 4096)).unwrap();
        let damaged = |at: usize, value: &[u8]| {
            let mut bytes = bytes.clone();
            bytes[at..at + value.len()].copy_from_slice(value);
            parse_header(&bytes[..HEADER_BYTES], bytes.len() as u64, false)
        };
        for (at, value, names) in [
            (16, &[0x0f, 0xff][..], "the page size is 4095"),
            (16, &[0x01, 0x00], "the page size is 256"),
            (16, &[0x00, 0x00], "the page size is 0"),
            (19, &[3], "the read version is 3"),
            (21, &[65], "the maximum payload fraction is 65"),
            (59, &[9], "the text encoding is 9"),
        ] {
            let error = damaged(at, value).unwrap_err().to_string();
            assert!(error.contains(names), "{error}");
        }
        assert_eq!(damaged(0, b"X"), Err(HeaderError::Magic));
        // A page count is believed only where version-valid-for says that its writer knew the field.
        let too_many = [0x7f, 0, 0, 0];
        assert!(matches!(damaged(28, &too_many), Err(HeaderError::Truncated { pages: 0x7f00_0000, .. })));
        let mut old = bytes.clone();
        old[28..32].copy_from_slice(&too_many);
        old[92..96].copy_from_slice(&[9; 4]);
        assert_eq!(parse_header(&old, old.len() as u64, false).unwrap().pages, None);
    }

    #[test]
    fn paths_that_are_no_database_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(matches!(check(&at("none.db")), Err(DatabaseError::Missing(_))));
        assert!(matches!(check(folder.path()), Err(DatabaseError::NotAFile { kind: "directory", .. })));
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(check(&at("fifo")), Err(DatabaseError::NotAFile { .. })));
        let content = |name: &str, bytes: &[u8]| {
            std::fs::write(at(name), bytes).unwrap();
            match check(&at(name)) {
                Err(DatabaseError::Header { source, .. }) => source,
                other => unreachable!("{other:?}"),
            }
        };
        assert_eq!(content("empty", b""), HeaderError::Empty);
        assert_eq!(content("text", b"hello"), HeaderError::Magic);
        assert_eq!(content("cut", b"SQLite f"), HeaderError::Short { file_bytes: 8 });
        assert_eq!(content("cut2", b"SQLite format 3\0...."), HeaderError::Short { file_bytes: 20 });
    }

    #[test]
    fn a_hot_journal_is_refused_and_a_finished_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path(), 4096);
        std::fs::write(beside(&path, "-journal"), [0; 512]).unwrap();
        assert!(check(&path).is_ok());
        std::fs::write(beside(&path, "-journal"), [&JOURNAL_MAGIC[..], &[0; 504]].concat()).unwrap();
        assert!(matches!(check(&path), Err(DatabaseError::HotJournal(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), size: u64, wal: bool, magic: bool) {
            if magic && bytes.len() >= MAGIC.len() {
                bytes[..MAGIC.len()].copy_from_slice(MAGIC);
            }
            if let Ok(header) = parse_header(&bytes, size, wal) {
                prop_assert!(header.page_size_bytes.is_power_of_two() && (512..=65536).contains(&header.page_size_bytes));
                prop_assert!(wal || size >= u64::from(header.page_size_bytes) * u64::from(header.pages.unwrap_or(1)));
            }
        }
    }
}
