//! A query: the text of one SQL file, and its run on an open engine.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::engine::{Engine, EngineError, Value};

/// Largest SQL file that is read, in bytes.
const SQL_MAX_BYTES: u64 = 16 << 20;
/// Largest answer that is kept to be checked and recorded, in rows.
pub const ANSWER_MAX_ROWS: usize = 100_000;

/// A query to be asked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Query {
    /// `q06` for a known TPC-H text, else the file's name without its extension.
    pub name: String,
    /// The statement.
    pub sql: String,
}

/// Why a file cannot be asked as a query.
#[derive(Debug, thiserror::Error)]
pub enum QueryFileError {
    /// It cannot be read.
    #[error("query {}: {source}", .path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// It can be read, but is no query.
    #[error("query {}: {why}", .path.display())]
    Content {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
}

impl Query {
    /// Reads a file with one SQL statement.
    pub fn load(path: &Path) -> Result<Query, QueryFileError> {
        let io = |source| QueryFileError::Io { path: path.to_owned(), source };
        let content = |why| QueryFileError::Content { path: path.to_owned(), why };
        let metadata = std::fs::metadata(path).map_err(io)?;
        if metadata.is_dir() {
            return Err(content("it is a directory; give the path of an SQL file"));
        }
        if metadata.len() > SQL_MAX_BYTES {
            return Err(content("it is larger than 16 MiB; give the path of an SQL file"));
        }
        let bytes = std::fs::read(path).map_err(io)?;
        let sql = String::from_utf8(bytes).map_err(|_| content("it is not UTF-8 text; save it as UTF-8"))?;
        let sql = sql.strip_prefix('\u{feff}').unwrap_or(&sql);
        if sql.contains('\0') {
            return Err(content("it contains a NUL byte; give the path of an SQL file"));
        }
        if !has_statement(sql) {
            return Err(content("it holds no SQL statement"));
        }
        let name = super::answer::known_query(sql).map(|number| format!("q{number:02}"));
        let stem = || path.file_stem().map_or_else(|| "query".to_owned(), |stem| stem.to_string_lossy().into_owned());
        Ok(Query { name: name.unwrap_or_else(stem), sql: sql.to_owned() })
    }
}

/// Whether anything is left of the text without blanks, semicolons and comments.
fn has_statement(sql: &str) -> bool {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            return !rest.is_empty();
        }
    }
}

/// Rows of an answer, as far as they are kept.
#[derive(Debug, Default)]
pub struct Rows {
    /// The rows, up to [`ANSWER_MAX_ROWS`].
    pub kept: Vec<Vec<Value>>,
    /// All rows that came.
    pub count: u64,
}

impl Rows {
    /// Whether every row was kept.
    pub fn is_whole(&self) -> bool {
        self.kept.len() as u64 == self.count
    }
}

/// Asks an open engine, and tells when the last row had come.
pub fn ask(engine: &mut dyn Engine, query: &Query) -> Result<(Rows, Instant), EngineError> {
    let mut rows = Rows::default();
    engine.query(&query.sql, &mut |row| {
        rows.count += 1;
        if rows.kept.len() < ANSWER_MAX_ROWS {
            rows.kept.push(row.to_vec());
        }
    })?;
    Ok((rows, Instant::now()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_without_a_statement_are_told_why() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join(name), bytes).unwrap();
            Query::load(&folder.path().join(name)).unwrap_err().to_string()
        };
        assert!(refused("a.sql", b"").ends_with("a.sql: it holds no SQL statement"));
        assert!(refused("a.sql", b" ;\n-- nothing\n/* nor here */;").ends_with("it holds no SQL statement"));
        assert!(refused("a.sql", b"-- open end").ends_with("it holds no SQL statement"));
        assert!(refused("b.sql", b"SELECT '\xff'").contains("it is not UTF-8 text"));
        assert!(refused("c.sql", b"SELECT 1\0").contains("NUL"));
        assert!(Query::load(folder.path()).unwrap_err().to_string().contains("it is a directory"));
        assert!(Query::load(&folder.path().join("none")).unwrap_err().to_string().contains("No such file"));
    }

    #[test]
    fn a_query_is_named_after_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("totals.sql");
        std::fs::write(&path, "\u{feff}-- all\nSELECT count(*) FROM t;\n").unwrap();
        let query = Query::load(&path).unwrap();
        assert_eq!(query.name, "totals");
        assert!(query.sql.starts_with("-- all"));
    }

    proptest! {
        #[test]
        fn any_text_is_judged(text in "[-/*; \n'a-c]{0,40}") {
            let judged = has_statement(&text);
            prop_assert!(!judged || text.chars().any(|c| !c.is_whitespace() && c != ';'));
        }
    }
}
