//! How a data set comes into being: space, temporary file, rows, check, sync, manifest, name.
//!
//! The manifest gets its name before the database does. A crash between the two leaves a manifest without a database, which
//! counts as nothing and is replaced by the next attempt; a database without its manifest never appears. Two processes that
//! make the same data set do not see each other until one is done: the first to finish wins, and the second finds the valid
//! pair, takes it and drops its own. The folder is locked (flock(2)) for the moment in which that is decided.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use super::Progress;
use super::error::DatasetError;
use super::generate::{Tally, generate};
use super::interrupt::Interrupts;
use super::load::{LOAD_PRAGMAS, Loader};
use super::manifest::{Manifest, header_of, ten_thousandths};
use super::queries;
use super::scale::Scale;
use super::tables::{SCHEMA_SQL, Table};
use super::temporary::{Temporary, folder_of, remove_abandoned};

/// Batches that wait between the generator and the inserting thread.
const BATCHES_WAITING: usize = 8;

/// Makes a data set that does not exist yet and returns its manifest; on any error nothing of it is left.
pub(super) fn build(
    scale: Scale,
    page_size_bytes: u32,
    out: &Path,
    progress: Progress,
) -> Result<Manifest, DatasetError> {
    in_folder(out, |folder| {
        check_space(folder, bytes_needed(scale, page_size_bytes), out)?;
        write(folder, scale, page_size_bytes, out, progress)
    })
}

/// Works in the folder of `out`, which is made where it is missing, and removed again where that fails; what an earlier
/// attempt left there is removed first.
pub(super) fn in_folder<T>(out: &Path, work: impl FnOnce(&Path) -> Result<T, DatasetError>) -> Result<T, DatasetError> {
    let folder = folder_of(out);
    let folder_is_new = !folder.exists();
    std::fs::create_dir_all(folder).map_err(|error| DatasetError::io("create the folder", folder, error))?;
    let done = remove_abandoned(out)
        .map_err(|error| DatasetError::io("read the folder", folder, error))
        .and_then(|()| work(folder));
    if done.is_err() && folder_is_new {
        // Only an empty folder can be removed this way.
        let _removed = std::fs::remove_dir(folder);
    }
    done
}

/// Everything after the look at the free space, which may have been too hopeful.
pub(super) fn write(
    folder: &Path,
    scale: Scale,
    page_size_bytes: u32,
    out: &Path,
    progress: Progress,
) -> Result<Manifest, DatasetError> {
    let interrupts =
        Interrupts::hold().map_err(|error| DatasetError::io("hold back signals for", out, error.into()))?;
    let database = Temporary::create(out).map_err(|error| DatasetError::io("create a file beside", out, error))?;
    let tally = fill(database.path(), scale, page_size_bytes, out, progress, &interrupts)?;
    sync_and_verify(&database, &tally, out, &interrupts)?;
    let size_bytes =
        database.file().metadata().map_err(|error| DatasetError::io("look at", database.path(), error))?.len();
    let manifest = Manifest::new(scale, page_size_bytes, &tally, size_bytes, header_of(database.path())?);
    publish(folder, database, manifest, out, Manifest::read_and_check)
}

/// Bytes that the finished file needs at most.
fn bytes_needed(scale: Scale, page_size_bytes: u32) -> u64 {
    // Sizes at SF 1, measured and rounded up; larger pages need a little less.
    let bytes_at_one = match page_size_bytes {
        512 => 1.50e9,
        1024 => 1.36e9,
        2048 => 1.30e9,
        _ => 1.27e9,
    };
    (bytes_at_one * scale.get()) as u64 + (1 << 20)
}

/// Refuses to start what could not be finished.
pub(super) fn check_space(folder: &Path, needed: u64, out: &Path) -> Result<(), DatasetError> {
    let free = nix::sys::statvfs::statvfs(folder)
        .map_err(|error| DatasetError::io("ask for the free space of", folder, error.into()))?;
    let available = free.blocks_available() * free.fragment_size();
    if available >= needed {
        return Ok(());
    }
    Err(DatasetError::NotEnoughSpace {
        folder: folder.to_owned(),
        file: out.to_owned(),
        needed_mib: needed.div_ceil(1 << 20),
        available_mib: available >> 20,
    })
}

/// Generates on one thread and inserts on this one.
fn fill(
    database: &Path,
    scale: Scale,
    page_size_bytes: u32,
    out: &Path,
    progress: Progress,
    interrupts: &Interrupts,
) -> Result<Tally, DatasetError> {
    let sqlite = |error| DatasetError::sqlite("fill", out, error);
    let connection = open(database, out, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.execute_batch(&format!("PRAGMA page_size = {page_size_bytes};")).map_err(sqlite)?;
    connection.execute_batch(LOAD_PRAGMAS).map_err(sqlite)?;
    connection.execute_batch(SCHEMA_SQL).map_err(sqlite)?;
    connection.execute_batch("BEGIN").map_err(sqlite)?;
    // Rows at SF 1; the number of LINEITEM rows is only known afterwards, and is within a thousandth of this.
    let bar = progress.bar((8_661_245.0 * scale.get()) as u64, format!("TPC-H SF {scale}"));
    let tally = thread::scope(|scope| {
        let (full_sender, full) = mpsc::sync_channel(BATCHES_WAITING);
        let (empty, empty_receiver) = mpsc::channel();
        let generator = scope.spawn(move || generate(scale, full_sender, empty_receiver));
        let mut loader = Loader::new(&connection);
        for batch in full {
            if let Some(signal) = interrupts.signal() {
                return Err(DatasetError::Interrupted { signal: signal.as_str(), path: out.to_owned() });
            }
            loader.insert(&batch).map_err(sqlite)?;
            bar.inc(batch.rows() as u64);
            // A generator that has finished needs no more empty batches.
            let _returned = empty.send(batch);
        }
        generator.join().map_err(|_| DatasetError::Generator { path: out.to_owned() })
    })?;
    bar.finish_and_clear();
    connection.execute_batch("COMMIT").map_err(sqlite)?;
    connection.close().map_err(|(_, error)| sqlite(error))?;
    Ok(tally)
}

/// Opens the database; the path is made absolute, since SQLite takes a relative one that begins with `file:` for a URI.
pub(super) fn open(database: &Path, out: &Path, flags: OpenFlags) -> Result<Connection, DatasetError> {
    let absolute = std::path::absolute(database).map_err(|error| DatasetError::io("find", database, error))?;
    Connection::open_with_flags(absolute, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|error| DatasetError::sqlite("open", out, error))
}

/// Compares the database with the tally while it goes to the disk.
fn sync_and_verify(
    database: &Temporary,
    tally: &Tally,
    out: &Path,
    interrupts: &Interrupts,
) -> Result<(), DatasetError> {
    let read_only = || open(database.path(), out, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let (counting, asking) = (read_only()?, read_only()?);
    let stop = [counting.get_interrupt_handle(), asking.get_interrupt_handle()];
    thread::scope(|scope| {
        let sync = scope.spawn(|| database.file().sync_all().map_err(|error| DatasetError::io("sync", out, error)));
        let count = scope.spawn(move || verify_counts(&counting, tally, out));
        let ask = scope.spawn(move || verify_q6(&asking, tally, out));
        let mut signal = None;
        while !(sync.is_finished() && count.is_finished() && ask.is_finished()) {
            signal = signal.or_else(|| interrupts.signal());
            if signal.is_some() {
                stop.iter().for_each(rusqlite::InterruptHandle::interrupt);
            }
            thread::sleep(Duration::from_millis(2));
        }
        if let Some(signal) = signal.or_else(|| interrupts.signal()) {
            return Err(DatasetError::Interrupted { signal: signal.as_str(), path: out.to_owned() });
        }
        [sync, count, ask].into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(DatasetError::Generator { path: out.to_owned() }))
        })
    })
}

fn verify_counts(connection: &Connection, tally: &Tally, out: &Path) -> Result<(), DatasetError> {
    for table in Table::ALL {
        let sql = format!("SELECT count(*) FROM {}", table.name());
        let found: i64 = connection
            .query_row(&sql, [], |row| row.get(0))
            .map_err(|error| DatasetError::sqlite("check", out, error))?;
        let expected = tally.rows.get(table.name()).copied().unwrap_or(0);
        expect(out, || format!("the number of rows of {}", table.name()), &expected.to_string(), &found.to_string())?;
    }
    Ok(())
}

/// SQLite adds up floating-point numbers: they agree with the integers once rounded to the four places that the products have.
fn verify_q6(connection: &Connection, tally: &Tally, out: &Path) -> Result<(), DatasetError> {
    // The sum over no rows is NULL.
    let found: Option<f64> = connection
        .query_row(queries::query(6).unwrap_or_default(), [], |row| row.get(0))
        .map_err(|error| DatasetError::sqlite("check", out, error))?;
    let expected = ten_thousandths(tally.q6_ten_thousandths);
    expect(out, || "the answer of Q6".to_owned(), &expected, &format!("{:.4}", found.unwrap_or(0.0)))
}

pub(super) fn expect(out: &Path, what: impl Fn() -> String, expected: &str, found: &str) -> Result<(), DatasetError> {
    if expected == found {
        return Ok(());
    }
    Err(DatasetError::Wrong {
        path: out.to_owned(),
        what: what(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    })
}

/// Gives manifest and database their names, in this order, each on the disk before the next step.
/// Where another process was faster, its pair is taken as `existing` reads it.
pub(super) fn publish<M: Serialize>(
    folder: &Path,
    database: Temporary,
    manifest: M,
    out: &Path,
    existing: impl FnOnce(&Path) -> Result<M, DatasetError>,
) -> Result<M, DatasetError> {
    let directory = File::open(folder).map_err(|error| DatasetError::io("open the folder", folder, error))?;
    // Held until the function returns. A file system without locks leaves the rename, which does not replace.
    let _locked = directory.lock();
    if out.exists() {
        return existing(out);
    }
    let manifest_path = Manifest::path_for(out);
    let written = Temporary::create(out)
        .and_then(|temporary| {
            let mut text = serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::other)?;
            text.push(b'\n');
            temporary.file().write_all(&text)?;
            temporary.file().sync_all()?;
            temporary.rename(&manifest_path, true)
        })
        .and_then(|()| directory.sync_all());
    written.map_err(|error| DatasetError::io("write", &manifest_path, error))?;
    if let Err(error) = database.rename(out, false).and_then(|()| directory.sync_all()) {
        if !out.exists() {
            let _removed = std::fs::remove_file(&manifest_path);
        }
        return Err(DatasetError::io("rename the finished file to", out, error));
    }
    Ok(manifest)
}
