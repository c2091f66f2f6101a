//! Reads records back: whatever is wrong with a line is told, and the others are kept.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;

use super::record::{RECORD_SCHEMA, Record};

/// Longest line that is looked at, in bytes.
const LINE_MAX_BYTES: u64 = 64 << 20;

/// The records of a file, and what is wrong with its other lines.
#[derive(Debug, Default)]
pub struct Records {
    /// The records, in the file's order.
    pub records: Vec<Record>,
    /// Lines that are no records.
    pub problems: Vec<Problem>,
    /// Length of the file up to the end of its last whole line, in bytes: what is beyond was cut.
    pub whole_bytes: u64,
    /// Number of lines, a cut one included.
    pub lines: usize,
}

/// A line that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it, and what to do.
    pub what: Flaw,
}

/// What can be wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// The last line has no end: a kill, a crash or a full disk cut it.
    Cut,
    /// It cannot be understood.
    Unreadable(String),
    /// A later version of ioscope wrote it.
    Newer(u32),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line;
        match &self.what {
            Flaw::Cut => {
                write!(f, "line {line} is cut short and is skipped; `ioscope run --resume` makes its run again")
            }
            Flaw::Unreadable(why) => {
                write!(f, "line {line} is no record and is skipped: {why}; `ioscope run --resume` makes its run again")
            }
            Flaw::Newer(schema) => write!(
                f,
                "line {line} is a record of layout {schema}, and this ioscope knows layouts up to {RECORD_SCHEMA}; \
                 read it with the ioscope that wrote it, or a later one"
            ),
        }
    }
}

impl Records {
    /// The first record of a later layout: with such ones in it, the rest must not be taken for the whole.
    pub fn newer(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| matches!(problem.what, Flaw::Newer(_)))
    }
}

/// Reads a file of records (JSON Lines).
///
/// # Errors
///
/// Where the file itself cannot be read. Lines are never errors: see [`Records::problems`].
pub fn read(path: &Path) -> io::Result<Records> {
    read_from(BufReader::new(File::open(path)?))
}

fn read_from(mut from: impl BufRead) -> io::Result<Records> {
    let mut read = Records::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes = from.by_ref().take(LINE_MAX_BYTES).read_until(b'\n', &mut line)? as u64;
        if bytes == 0 {
            return Ok(read);
        }
        read.lines += 1;
        let mut problem = |what| read.problems.push(Problem { line: read.lines, what });
        if line.last() != Some(&b'\n') {
            if bytes < LINE_MAX_BYTES {
                problem(Flaw::Cut);
                return Ok(read);
            }
            problem(Flaw::Unreadable(format!("it is longer than {LINE_MAX_BYTES} bytes")));
            read.whole_bytes += bytes + skip_line(&mut from)?;
            continue;
        }
        read.whole_bytes += bytes;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match parse(&line) {
            Ok(record) => read.records.push(record),
            Err(flaw) => problem(flaw),
        }
    }
}

fn skip_line(from: &mut impl BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = from.fill_buf()?;
        let (used, done) = match buffer.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        from.consume(used);
        skipped += used as u64;
        if done {
            return Ok(skipped);
        }
    }
}

/// Understands one line; the layout's version is looked at first, since another version may have other fields.
fn parse(line: &[u8]) -> Result<Record, Flaw> {
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let unreadable = |error: serde_json::Error| Flaw::Unreadable(error.to_string());
    let Version { schema } = serde_json::from_slice(line).map_err(unreadable)?;
    if schema > RECORD_SCHEMA {
        return Err(Flaw::Newer(schema));
    }
    serde_json::from_slice(line).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::record::tests::blank;
    use proptest::prelude::*;

    fn line(run: u32) -> String {
        serde_json::to_string(&Record { run, ..blank() }).unwrap() + "\n"
    }

    fn runs(text: &str) -> (Vec<u32>, Vec<Problem>) {
        let read = read_from(text.as_bytes()).unwrap();
        (read.records.iter().map(|r| r.run).collect(), read.problems)
    }

    #[test]
    fn lines_that_are_no_records_are_told_and_skipped() {
        let text =
            format!("{}{{\"schema\": 1}}\n\n{}{}garbage\n{}", line(1), line(2), &line(3)[..40].to_owned(), line(4));
        let (read, problems) = runs(&text);
        // The cut third record swallowed the garbage after it.
        assert_eq!(read, [1, 2, 4]);
        assert_eq!(problems.iter().map(|p| p.line).collect::<Vec<_>>(), [2, 5]);
        assert!(problems.iter().all(|p| matches!(p.what, Flaw::Unreadable(_))));
    }

    #[test]
    fn a_newer_layout_is_refused_with_what_to_do() {
        let newer = line(2).replacen("\"schema\":1", "\"schema\":2", 1).replacen("\"times\"", "\"clock\"", 1);
        let read = read_from(format!("{}{newer}", line(1)).as_bytes()).unwrap();
        assert_eq!(
            read.newer().unwrap().to_string(),
            "line 2 is a record of layout 2, and this ioscope knows layouts up to 1; read it with the ioscope that wrote it, or a later one"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_file_cut_anywhere_keeps_its_whole_lines(at in 0usize..10_000) {
            let text: String = (1..=3).map(line).collect();
            let at = at % (text.len() + 1);
            let read = read_from(&text.as_bytes()[..at]).unwrap();
            let whole = text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
            prop_assert_eq!(read.records.len(), whole);
            prop_assert_eq!(read.whole_bytes as usize, text[..at].rfind('\n').map_or(0, |end| end + 1));
            prop_assert_eq!(read.problems.len(), usize::from(read.whole_bytes as usize != at));
        }

        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read_from(bytes.as_slice()).unwrap();
        }
    }
}
