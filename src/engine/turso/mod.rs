//! Turso, on ioscope's reader through its `IO` trait, or on its own I/O.

mod io;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use turso::{Builder, Connection, Database, IoBackend};

use super::{Engine, EngineBackend, EngineError, EngineKind, EngineReport, EngineSpec, Value};
use io::{ScopeIo, Settings};

/// The version that is linked, as Cargo.toml pins it.
pub const VERSION: &str = "0.8.3";

/// An open connection.
pub struct Turso {
    // Dropped before the database, and both before `io` reports.
    connection: Option<Connection>,
    database: Option<Database>,
    io: Option<Arc<ScopeIo>>,
}

/// Drives a future of Turso's on this thread.
///
/// Turso's futures run its I/O when they are polled (`step` waits there for the kernel), so polling again is all
/// that there is to do; a wake-up would come from this very thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

impl Turso {
    /// Opens the database read-only: opened for writing, Turso locks the whole file and rewrites its header.
    ///
    /// # Errors
    /// [`EngineError`]; a path that is not UTF-8 is refused, since Turso takes paths as `str`.
    pub fn open(spec: &EngineSpec) -> Result<Turso, EngineError> {
        let path = std::path::absolute(&spec.path).map_err(|error| open_error(&spec.path, error.to_string()))?;
        let Some(path) = path.to_str() else {
            return Err(open_error(
                &spec.path,
                "the path is not UTF-8, and Turso takes no other; rename the file, or use `--engine sqlite`".to_owned(),
            ));
        };
        let mut builder = Builder::new_local(path).read_only(true);
        let mut io = None;
        match spec.backend {
            EngineBackend::Builtin => builder = builder.with_io(IoBackend::Syscall),
            EngineBackend::BuiltinUring => builder = builder.with_io(IoBackend::IoUring),
            EngineBackend::Pread | EngineBackend::Uring | EngineBackend::UringSqpoll => {
                let settings = Settings {
                    path: path.to_owned(),
                    page_size: spec.page_size,
                    reader: spec.reader.clone(),
                    proof: spec.direct_proof.clone(),
                };
                let scope = Arc::new(ScopeIo::new(settings).map_err(|e| open_error(&spec.path, e.to_string()))?);
                builder = builder.with_io_impl(Arc::clone(&scope) as Arc<dyn turso_core::IO>);
                io = Some(scope);
            }
        }
        let mut engine = Turso { connection: None, database: None, io };
        let database = block_on(builder.build()).map_err(|error| engine.explain(error, Some(&spec.path)))?;
        let connection = database.connect().map_err(|error| engine.explain(error, Some(&spec.path)))?;
        engine.database = Some(database);
        engine.connection = Some(connection);
        Ok(engine)
    }

    /// Turso's error, with the reader's own message where a reader failed.
    fn explain(&self, error: turso::Error, opening: Option<&Path>) -> EngineError {
        if let Some(page) = self.io.as_ref().and_then(|io| io.take_error()) {
            return EngineError::Page(page);
        }
        match opening {
            Some(path) => open_error(path, error.to_string()),
            None => EngineError::Sql { engine: EngineKind::Turso, what: error.to_string() },
        }
    }
}

fn open_error(path: &Path, what: String) -> EngineError {
    EngineError::Open { path: path.display().to_string(), what }
}

async fn run(connection: &Connection, sql: &str, sink: &mut dyn FnMut(&[Value])) -> turso::Result<()> {
    let mut rows = connection.query(sql, ()).await?;
    let mut values = Vec::new();
    while let Some(row) = rows.next().await? {
        values.clear();
        for column in 0..row.column_count() {
            values.push(value(row.get_value(column)?));
        }
        sink(&values);
    }
    Ok(())
}

fn value(value: turso::Value) -> Value {
    match value {
        turso::Value::Null => Value::Null,
        turso::Value::Integer(integer) => Value::Integer(integer),
        turso::Value::Real(real) => Value::Real(real),
        turso::Value::Text(text) => Value::Text(text),
        turso::Value::Blob(bytes) => Value::Blob(bytes),
    }
}

impl Engine for Turso {
    fn query(&mut self, sql: &str, sink: &mut dyn FnMut(&[Value])) -> Result<(), EngineError> {
        let Some(connection) = &self.connection else {
            return Err(EngineError::Unsupported("the connection is closed".to_owned()));
        };
        block_on(run(connection, sql, sink)).map_err(|error| self.explain(error, None))
    }

    fn close(mut self: Box<Self>) -> Result<EngineReport, EngineError> {
        self.connection = None;
        self.database = None;
        let reader = self.io.take().and_then(|io| io.finish());
        Ok(EngineReport { reader, engine_version: VERSION.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_is_the_pinned_one() {
        let manifest = include_str!("../../../Cargo.toml");
        assert!(manifest.contains(&format!("turso = {{ version = \"={}\"", super::VERSION)));
    }
}
