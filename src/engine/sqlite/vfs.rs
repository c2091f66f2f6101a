//! The shim VFS: forwards every method to SQLite's "unix" VFS, and takes over reads of the main database file.
//!
//! All of SQLite's C interface lies in this module. Contracts are those of <https://sqlite.org/c3ref/vfs.html> and
//! <https://sqlite.org/c3ref/io_methods.html>.
#![expect(unsafe_code, reason = "SQLite's VFS is a C interface")]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::mem::{align_of, size_of};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

use crate::page::config::{Delivery, ReaderConfig};
use crate::page::descriptor::Connection;
use crate::page::direct::DirectProof;
use crate::page::reader::Ticket;
use crate::page::report::ReaderReport;
use crate::page::{PageError, PageReader};

/// WAL read marks: shared-memory locks 3 to 7 (`WAL_READ_LOCK` in wal.c).
const WAL_READ_LOCKS: std::ops::Range<c_int> = 3..8;
/// Shortest read that is one of a page. Shorter ones look for changes (16 bytes at 24, 100 bytes at 0).
const PAGE_MIN_BYTES: usize = 512;

/// How files opened through one shim are read, and what came of it.
struct Shared {
    unix: *mut ffi::sqlite3_vfs,
    config: ReaderConfig,
    page_size: u32,
    proof: Option<DirectProof>,
    outcome: Mutex<Outcome>,
}

// SAFETY: `unix` points to SQLite's static VFS object, which is never changed and usable from every thread; the rest
// is Send and Sync by itself.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// What the readers of a shim did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Reports of the files closed so far, summed.
    pub report: Option<ReaderReport>,
    /// The last failure of a reader, which SQLite reduces to a result code.
    pub error: Option<PageError>,
    /// Main database files open.
    open: usize,
}

impl Shared {
    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        // Each update is a single assignment, so a panic elsewhere leaves it valid.
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `error` for the engine's message and gives SQLite the code.
    fn fail(&self, error: PageError, code: c_int) -> c_int {
        self.outcome().error = Some(error);
        code
    }
}

/// A VFS of its own name, registered for as long as this lives.
pub struct Shim {
    vfs: *mut ffi::sqlite3_vfs,
    name: CString,
    shared: Arc<Shared>,
}

// SAFETY: the VFS object is owned by this value and registered under SQLite's own mutex.
unsafe impl Send for Shim {}

impl Shim {
    /// Registers a VFS whose main database files are read by a reader with these settings.
    ///
    /// # Errors
    /// SQLite's result code, as a message.
    pub fn register(config: ReaderConfig, page_size: u32, proof: Option<DirectProof>) -> Result<Shim, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // SAFETY: sqlite3_vfs_find initialises SQLite itself; the name is a C string.
        let unix = unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) };
        // SAFETY: not null, so a VFS object that SQLite keeps for the life of the process.
        let Some(base) = (unsafe { unix.as_ref() }) else {
            return Err("SQLite has no VFS named unix".to_owned());
        };
        let name = CString::new(format!("ioscope-{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
            .map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared { unix, config, page_size, proof, outcome: Mutex::default() });
        let vfs = Box::into_raw(Box::new(ffi::sqlite3_vfs {
            iVersion: 3,
            szOsFile: size_of::<ShimFile>() as c_int + base.szOsFile,
            mxPathname: base.mxPathname,
            pNext: ptr::null_mut(),
            zName: name.as_ptr(),
            pAppData: Arc::as_ptr(&shared).cast_mut().cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: Some(dl_open),
            xDlError: Some(dl_error),
            xDlSym: Some(dl_sym),
            xDlClose: Some(dl_close),
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: Some(get_last_error),
            xCurrentTimeInt64: Some(current_time_int64),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        }));
        // SAFETY: the object and its name live until `drop` has unregistered it.
        let code = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
        if code != ffi::SQLITE_OK {
            // SAFETY: just made by Box::into_raw, and not registered.
            drop(unsafe { Box::from_raw(vfs) });
            return Err(format!("sqlite3_vfs_register: result code {code}"));
        }
        Ok(Shim { vfs, name, shared })
    }

    /// The name to open connections with.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Takes what the readers did, and the last failure of one.
    pub fn take_outcome(&self) -> (Option<ReaderReport>, Option<PageError>) {
        let mut outcome = self.shared.outcome();
        (outcome.report.take(), outcome.error.take())
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        // SAFETY: registered by `register`.
        unsafe { ffi::sqlite3_vfs_unregister(self.vfs) };
        if self.shared.outcome().open > 0 {
            // A connection outlives its shim (it should not): SQLite still points to the VFS and what it refers to.
            std::mem::forget(Arc::clone(&self.shared));
            std::mem::forget(std::mem::take(&mut self.name));
            return;
        }
        // SAFETY: made by Box::into_raw; unregistered, and no file refers to it.
        drop(unsafe { Box::from_raw(self.vfs) });
    }
}

/// An open main database file. SQLite allocates it, followed by the unix VFS's own file object.
#[repr(C)]
struct ShimFile {
    methods: *const ffi::sqlite3_io_methods,
    state: *mut State,
}

/// The Rust side of an open main database file.
struct State {
    shared: Arc<Shared>,
    reader: Option<PageReader>,
    // Pages that SQLite has borrowed, until xUnfetch: where they lie, and what keeps them there.
    lent: Vec<(*const u8, Ticket)>,
    // Dropped last: until then the reader's descriptor may not be closed.
    connection: Option<Connection>,
}

const _: () = assert!(size_of::<ShimFile>().is_multiple_of(align_of::<u64>()));

/// The unix VFS's file object behind ours.
///
/// # Safety
/// `file` is the start of a `ShimFile` in an allocation of the VFS's `szOsFile`.
unsafe fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: `szOsFile` leaves room for it there.
    unsafe { file.cast::<u8>().add(size_of::<ShimFile>()).cast() }
}

/// The Rust side of an open file.
///
/// # Safety
/// `file` is a `ShimFile` that `open` has set up and `close` not yet torn down. SQLite serialises the calls on one
/// file, so the reference is the only one.
unsafe fn state<'a>(file: *mut ffi::sqlite3_file) -> &'a mut State {
    // SAFETY: by the caller's promise.
    unsafe { &mut *(*file.cast::<ShimFile>()).state }
}

/// The shared part of a VFS.
///
/// # Safety
/// `vfs` was made by [`Shim::register`].
unsafe fn shared<'a>(vfs: *mut ffi::sqlite3_vfs) -> &'a Shared {
    // SAFETY: `pAppData` points into the Arc that the Shim holds while the VFS is registered.
    unsafe { &*(*vfs).pAppData.cast::<Shared>() }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes the VFS that was registered.
    let shared_ref = unsafe { shared(vfs) };
    let unix = shared_ref.unix;
    // SAFETY: the unix VFS has xOpen.
    let Some(unix_open) = (unsafe { (*unix).xOpen }) else { return ffi::SQLITE_CANTOPEN };
    if flags & ffi::SQLITE_OPEN_MAIN_DB == 0 || name.is_null() {
        // Journals, WAL and temporary files are the unix VFS's alone; `szOsFile` is large enough for its object.
        // SAFETY: SQLite's arguments, handed on.
        return unsafe { unix_open(unix, name, file, flags, flags_out) };
    }
    let shim = file.cast::<ShimFile>();
    // SAFETY: SQLite allocated `szOsFile` bytes at `file`. A null `methods` tells it not to call xClose.
    unsafe { (*shim).methods = ptr::null() };
    // SAFETY: the real object lies behind ours.
    let code = unsafe { unix_open(unix, name, real(file), flags, flags_out) };
    if code != ffi::SQLITE_OK {
        return code;
    }
    // SAFETY: a C string that SQLite keeps until the file is closed.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    let connection = Connection::register(path).map_err(|e| PageError::io("stat", path, e));
    let opened = connection.and_then(|connection| {
        let reader = PageReader::open(path, shared_ref.page_size, &shared_ref.config, shared_ref.proof.as_ref());
        // An error drops `connection` first: with no reader there is no descriptor to protect.
        reader.map(|reader| (connection, reader))
    });
    let (connection, reader) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            // SAFETY: the real file was opened above, and has xClose.
            unsafe {
                if let Some(close) = (*(*real(file)).pMethods).xClose {
                    close(real(file));
                }
            }
            return shared_ref.fail(error, ffi::SQLITE_CANTOPEN);
        }
    };
    // SAFETY: `pAppData` came from Arc::as_ptr of an Arc that the Shim still holds.
    let shared = unsafe {
        Arc::increment_strong_count(ptr::from_ref(shared_ref));
        Arc::from_raw(ptr::from_ref(shared_ref))
    };
    shared.outcome().open += 1;
    let state = Box::new(State { shared, reader: Some(reader), lent: Vec::new(), connection: Some(connection) });
    // SAFETY: as above.
    unsafe {
        (*shim).state = Box::into_raw(state);
        (*shim).methods = &METHODS;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: set up by `open`; SQLite calls xClose once, last.
    let mut state = unsafe { Box::from_raw((*file.cast::<ShimFile>()).state) };
    if let Some(reader) = state.reader.take() {
        let report = reader.report();
        let mut outcome = state.shared.outcome();
        outcome.report = Some(match outcome.report.take() {
            Some(sum) => sum.plus(report),
            None => report,
        });
        drop(outcome);
        // Waits for reads in flight. The descriptor is parked: the connection still holds its locks.
        drop(reader);
    }
    // SAFETY: the real file is open.
    let code = unsafe { forward_close(file) };
    drop(state.connection.take());
    state.shared.outcome().open -= 1;
    code
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, buffer: *mut c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: set up by `open`.
    let state = unsafe { state(file) };
    let (Some(reader), Ok(len), Ok(offset)) = (&mut state.reader, usize::try_from(len), u64::try_from(offset)) else {
        return ffi::SQLITE_IOERR_READ;
    };
    // SAFETY: SQLite gives a buffer of `len` bytes. It may be uninitialised, but bytes have no invalid values and
    // are only written here.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) };
    let result = if len >= PAGE_MIN_BYTES { reader.read_at(offset, buffer) } else { reader.read_fresh(offset, buffer) };
    match result {
        Ok(count) if count == len => ffi::SQLITE_OK,
        Ok(count) => {
            // "If xRead() returns SQLITE_IOERR_SHORT_READ it must also fill in the unread portions of the buffer
            // with zeros."
            buffer[count..].fill(0);
            ffi::SQLITE_IOERR_SHORT_READ
        }
        Err(error) => state.shared.fail(error, ffi::SQLITE_IOERR_READ),
    }
}

/// Drops what was read ahead: the file has changed, or may have.
fn invalidate(state: &mut State) -> c_int {
    match state.reader.as_mut().map(PageReader::invalidate) {
        None | Some(Ok(())) => ffi::SQLITE_OK,
        Some(Err(error)) => state.shared.fail(error, ffi::SQLITE_IOERR_FSTAT),
    }
}

/// Calls a method of the unix VFS's file object.
macro_rules! forward {
    ($file:expr, $method:ident, $missing:expr $(, $argument:expr)*) => {{
        let file = real($file);
        match (*(*file).pMethods).$method {
            Some(method) => method(file $(, $argument)*),
            None => $missing,
        }
    }};
}

/// Defines methods that only hand their arguments on.
macro_rules! forwarding {
    ($($name:ident => $method:ident($($argument:ident: $type:ty),*) -> $result:ty = $missing:expr;)+) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $type)*) -> $result {
            // SAFETY: SQLite's arguments, handed on to the real file behind ours.
            unsafe { forward!(file, $method, $missing $(, $argument)*) }
        }
    )+};
}

forwarding! {
    forward_close => xClose() -> c_int = ffi::SQLITE_OK;
    sync => xSync(flags: c_int) -> c_int = ffi::SQLITE_IOERR;
    file_size => xFileSize(size: *mut i64) -> c_int = ffi::SQLITE_IOERR;
    unlock => xUnlock(level: c_int) -> c_int = ffi::SQLITE_IOERR;
    check_reserved_lock => xCheckReservedLock(out: *mut c_int) -> c_int = ffi::SQLITE_IOERR;
    sector_size => xSectorSize() -> c_int = 0;
    device_characteristics => xDeviceCharacteristics() -> c_int = 0;
    shm_map => xShmMap(page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int = ffi::SQLITE_IOERR;
    shm_barrier => xShmBarrier() -> () = ();
    shm_unmap => xShmUnmap(delete: c_int) -> c_int = ffi::SQLITE_OK;
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, buffer: *const c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite's arguments, handed on; the state was set up by `open`.
    unsafe {
        let code = forward!(file, xWrite, ffi::SQLITE_IOERR, buffer, len, offset);
        match invalidate(state(file)) {
            ffi::SQLITE_OK => code,
            failed => failed,
        }
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let code = forward!(file, xTruncate, ffi::SQLITE_IOERR, size);
        match invalidate(state(file)) {
            ffi::SQLITE_OK => code,
            failed => failed,
        }
    }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let code = forward!(file, xLock, ffi::SQLITE_IOERR, level);
        if code == ffi::SQLITE_OK && level == ffi::SQLITE_LOCK_SHARED {
            // Others may have written until now.
            return invalidate(state(file));
        }
        code
    }
}

unsafe extern "C" fn shm_lock(file: *mut ffi::sqlite3_file, offset: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let code = forward!(file, xShmLock, ffi::SQLITE_IOERR, offset, count, flags);
        let read_mark = flags & ffi::SQLITE_SHM_LOCK != 0
            && flags & ffi::SQLITE_SHM_SHARED != 0
            && WAL_READ_LOCKS.contains(&offset);
        if code == ffi::SQLITE_OK && read_mark {
            // A checkpoint may have written pages of the database until now.
            return invalidate(state(file));
        }
        code
    }
}

unsafe extern "C" fn file_control(file: *mut ffi::sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    if operation == ffi::SQLITE_FCNTL_MMAP_SIZE {
        // The unix VFS would map the file and serve pages past the reader. The answer is the size in force: none.
        if !argument.is_null() {
            // SAFETY: for this operation the argument is a pointer to sqlite3_int64.
            unsafe { *argument.cast::<i64>() = 0 };
        }
        return ffi::SQLITE_OK;
    }
    // SAFETY: as for `write`.
    unsafe { forward!(file, xFileControl, ffi::SQLITE_NOTFOUND, operation, argument) }
}

/// Lends a page that was read ahead where it lies in the pool. For every other page the answer is null, which makes
/// SQLite call xRead: such a page goes through its page cache, where it is found again.
unsafe extern "C" fn fetch(file: *mut ffi::sqlite3_file, offset: i64, len: c_int, out: *mut *mut c_void) -> c_int {
    // SAFETY: set up by `open`; SQLite gives a place for the answer.
    let state = unsafe {
        *out = ptr::null_mut();
        state(file)
    };
    let (Some(reader), Ok(len), Ok(offset)) = (&mut state.reader, usize::try_from(len), u64::try_from(offset)) else {
        return ffi::SQLITE_OK;
    };
    if state.shared.config.delivery == Delivery::ZeroCopy
        && len >= PAGE_MIN_BYTES
        // An error shows when xRead asks for the page.
        && let Ok(Some((ticket, bytes))) = reader.lend(offset, len)
    {
        state.lent.push((bytes, ticket));
        // SAFETY: as above. SQLite only reads a page that xFetch gave (pagerAcquireMapPage in pager.c), and gives it
        // back by xUnfetch before it closes the file; until then the ticket keeps the frame as it is.
        unsafe { *out = bytes.cast_mut().cast() };
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn unfetch(file: *mut ffi::sqlite3_file, _offset: i64, page: *mut c_void) -> c_int {
    // SAFETY: set up by `open`.
    let state = unsafe { state(file) };
    // A null page means that the whole mapping is to go: there is none.
    if let Some(index) = state.lent.iter().position(|(bytes, _)| bytes.cast() == page.cast_const())
        && let Some(reader) = &mut state.reader
    {
        let (_, ticket) = state.lent.swap_remove(index);
        reader.release(ticket);
    }
    ffi::SQLITE_OK
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 3,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: Some(fetch),
    xUnfetch: Some(unfetch),
};

/// Defines VFS methods that only hand their arguments on to the unix VFS.
macro_rules! vfs_forwarding {
    ($($name:ident => $method:ident($($argument:ident: $type:ty),*) -> $result:ty = $missing:expr;)+) => {$(
        unsafe extern "C" fn $name(vfs: *mut ffi::sqlite3_vfs $(, $argument: $type)*) -> $result {
            // SAFETY: SQLite's arguments, handed on to the VFS that ours is made from.
            unsafe {
                let unix = shared(vfs).unix;
                match (*unix).$method {
                    Some(method) => method(unix $(, $argument)*),
                    None => $missing,
                }
            }
        }
    )+};
}

/// What xDlSym returns.
type Symbol = Option<unsafe extern "C" fn(*mut ffi::sqlite3_vfs, *mut c_void, *const c_char)>;

vfs_forwarding! {
    delete => xDelete(name: *const c_char, sync: c_int) -> c_int = ffi::SQLITE_IOERR_DELETE;
    access => xAccess(name: *const c_char, flags: c_int, out: *mut c_int) -> c_int = ffi::SQLITE_IOERR_ACCESS;
    full_pathname => xFullPathname(name: *const c_char, len: c_int, out: *mut c_char) -> c_int = ffi::SQLITE_CANTOPEN;
    dl_open => xDlOpen(name: *const c_char) -> *mut c_void = ptr::null_mut();
    dl_error => xDlError(len: c_int, out: *mut c_char) -> () = ();
    dl_sym => xDlSym(library: *mut c_void, name: *const c_char) -> Symbol = None;
    dl_close => xDlClose(library: *mut c_void) -> () = ();
    randomness => xRandomness(len: c_int, out: *mut c_char) -> c_int = 0;
    sleep => xSleep(microseconds: c_int) -> c_int = 0;
    current_time => xCurrentTime(out: *mut f64) -> c_int = ffi::SQLITE_ERROR;
    get_last_error => xGetLastError(len: c_int, out: *mut c_char) -> c_int = 0;
    current_time_int64 => xCurrentTimeInt64(out: *mut i64) -> c_int = ffi::SQLITE_ERROR;
}
