//! Asks SQLite the TPC-H queries, each with a time limit, and compares the answers with the known ones.
//!
//! `cargo run --release --example tpch_answers -- FILE SECONDS [QUERY ...]`
//!
//! Without further indexes some queries read a table once for each row of another: the limit is for these.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use ioscope::dataset::{Dataset, queries};
use ioscope::engine::Value;
use ioscope::workload::answer::check;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, seconds, numbers @ ..] = arguments.as_slice() else {
        anyhow::bail!("usage: tpch_answers FILE SECONDS [QUERY ...]");
    };
    let limit = Duration::from_secs(seconds.parse().context("SECONDS is not a number")?);
    let dataset = Dataset::open_existing(Path::new(file))?;
    let numbers: Vec<u8> = match numbers {
        [] => (1..=22).collect(),
        some => some.iter().map(|number| number.parse()).collect::<Result<_, _>>().context("QUERY is not a number")?,
    };
    for number in numbers {
        let sql = queries::query(number).context("queries are numbered 1 to 22")?;
        let started = Instant::now();
        let outcome = ask(&dataset.path, sql, limit);
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(rows) => {
                let verdict = check(number, Some(&dataset.manifest), &rows);
                let verdict = verdict.map_or("no answer is known".to_owned(), |verdict| verdict.to_string());
                println!("Q{number:<2} {seconds:8.2} s  {:>5} rows  {verdict}", rows.len());
            }
            Err(error) => println!("Q{number:<2} {seconds:8.2} s  {error}"),
        }
    }
    Ok(())
}

fn ask(path: &Path, sql: &str, limit: Duration) -> rusqlite::Result<Vec<Vec<Value>>> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let stop = connection.get_interrupt_handle();
    let (finished, finish) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if finish.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                stop.interrupt();
            }
        });
        let _until_the_end = finished;
        let mut statement = connection.prepare(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..columns)
                .map(|column| {
                    Ok(match row.get_ref(column)? {
                        ValueRef::Null => Value::Null,
                        ValueRef::Integer(value) => Value::Integer(value),
                        ValueRef::Real(value) => Value::Real(value),
                        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
                    })
                })
                .collect()
        })?;
        rows.collect()
    })
}
