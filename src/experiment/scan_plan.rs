//! The matrix of a scan: lists of values on each axis, the cells of their product, and what is left out of it.

use super::plan::{Cell, LeftOut};
use super::record::CacheState;
use crate::engine::{EngineBackend, EngineKind};
use crate::page::blocks::WaitMode;
use crate::page::config::{BackendKind, Delivery, Direct, PolicyKind, PoolKind, Submit};
use crate::workload::scan::{Refill, ScanAxes, Touch, TouchOrder};

/// One combination of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanCell {
    /// The reader's axes and the cache's. The engine among them has no meaning.
    pub reader: Cell,
    /// The scan's own.
    pub axes: ScanAxes,
}

/// The values asked for on each axis. Those of `axes` and `reader` hold where there is no list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanMatrix {
    /// How reads reach the kernel.
    pub backend: Vec<BackendKind>,
    /// Whether reads bypass the page cache.
    pub direct: Vec<Direct>,
    /// State of the page cache at the start.
    pub cache: Vec<CacheState>,
    /// The memory behind the blocks.
    pub pool: Vec<PoolKind>,
    /// Pages fetched at once, where the file is read in order.
    pub window: Vec<u32>,
    /// How a batch becomes SQEs, where the file is read in order.
    pub submit: Vec<Submit>,
    /// Batches in flight, where the file is read in order.
    pub in_flight: Vec<u32>,
    /// Random reads in flight.
    pub depth: Vec<u32>,
    /// Threads.
    pub threads: Vec<u32>,
    /// Bytes of a read.
    pub block_bytes: Vec<u32>,
    /// When reads are replaced.
    pub refill: Vec<Refill>,
    /// How completions are waited for.
    pub wait: Vec<WaitMode>,
    /// Think time, in nanoseconds.
    pub think_ns: Vec<u64>,
    /// Pause after each burst, in nanoseconds.
    pub pause_ns: Vec<u64>,
    /// What is done with the bytes.
    pub touch: Vec<Touch>,
    /// In which order a timed pass loads the lines.
    pub touch_order: Vec<TouchOrder>,
    /// Blocks that are delivered before one is touched.
    pub delay_pages: Vec<u32>,
    /// The axes that have no list here.
    pub axes: ScanAxes,
}

impl Default for ScanMatrix {
    fn default() -> Self {
        let axes = ScanAxes::default();
        ScanMatrix {
            backend: vec![BackendKind::Uring],
            direct: vec![Direct::Disabled],
            cache: vec![CacheState::Cold],
            pool: vec![PoolKind::Normal],
            window: vec![READER.window],
            submit: vec![READER.submit],
            in_flight: vec![READER.in_flight],
            depth: vec![axes.depth],
            threads: vec![axes.threads],
            block_bytes: vec![axes.block_bytes],
            refill: vec![axes.refill],
            wait: vec![axes.wait],
            think_ns: vec![axes.think_ns],
            pause_ns: vec![axes.pause_ns],
            touch: vec![axes.touch],
            touch_order: vec![axes.touch_order],
            delay_pages: vec![axes.delay_pages],
            axes,
        }
    }
}

/// What a cell's name does not mention.
const READER: Cell = Cell {
    engine: EngineKind::Sqlite,
    backend: EngineBackend::Uring,
    direct: Direct::Disabled,
    cache: CacheState::Cold,
    policy: PolicyKind::Sequential,
    window: 32,
    submit: Submit::PerPage,
    in_flight: 4,
    gap: 8,
    pool: PoolKind::Normal,
    delivery: Delivery::Copy,
};

/// The same backend among those that an engine may have.
pub fn engine_backend(backend: BackendKind) -> EngineBackend {
    match backend {
        BackendKind::Pread => EngineBackend::Pread,
        BackendKind::Uring => EngineBackend::Uring,
        BackendKind::UringSqpoll => EngineBackend::UringSqpoll,
    }
}

impl ScanCell {
    /// The cell's name: the same combination has the same name in every experiment. Values that are the default are
    /// not mentioned.
    pub fn name(&self) -> String {
        let reader = &self.reader;
        let mut parts = vec!["scan".to_owned(), reader.backend.to_string()];
        let mut add = |differs: bool, part: String| {
            if differs {
                parts.push(part);
            }
        };
        add(reader.direct == Direct::Required, "direct".to_owned());
        if self.axes.random.is_none() {
            add(true, format!("w{}", reader.window));
            add(reader.submit != READER.submit, reader.submit.to_string());
            add(reader.in_flight != READER.in_flight, format!("x{}", reader.in_flight));
        }
        add(reader.pool != READER.pool, reader.pool.to_string());
        add(true, self.axes.name());
        add(reader.cache != READER.cache, reader.cache.to_string());
        parts.join("-")
    }

    /// The same cell with the default on every axis that does not matter for it.
    fn canonical(mut self) -> ScanCell {
        let default = ScanAxes::default();
        if self.axes.random.is_some() {
            self.reader.window = READER.window;
            self.reader.submit = READER.submit;
            self.reader.in_flight = READER.in_flight;
        } else {
            self.axes.seed = default.seed;
            if self.reader.window == 0 {
                self.reader.submit = READER.submit;
                self.reader.in_flight = READER.in_flight;
            }
        }
        if !self.axes.touch.is_probe() {
            self.axes.touch_order = default.touch_order;
        }
        if self.reader.backend == EngineBackend::Pread {
            // pread has ended when its submission returns: there is nothing to wait for.
            self.axes.wait = default.wait;
        }
        if self.reader.backend != EngineBackend::UringSqpoll {
            self.axes.sqpoll_cpu = None;
        }
        match (self.axes.pause_ns, self.axes.burst) {
            (0, _) => self.axes.burst = 0,
            (_, 0) => self.axes.burst = u64::from(self.axes.depth / self.axes.threads.max(1)).max(1),
            _ => {}
        }
        self
    }
}

/// The product of the axes: its cells, no two with the same name, and what is left out of it, each reason once.
pub fn expand(matrix: &ScanMatrix) -> (Vec<ScanCell>, Vec<LeftOut>) {
    let (mut cells, mut left_out) = (Vec::new(), Vec::new());
    let mut names = std::collections::BTreeSet::new();
    for (backend, cell) in product(matrix) {
        let cell = cell.canonical();
        let refusal = if cell.reader.direct == Direct::Required && cell.reader.cache == CacheState::Warm {
            Some("direct reads bypass the page cache, so a warm one changes nothing; add 'cold' to --cache".to_owned())
        } else {
            cell.axes.check(backend).err().map(|error| error.to_string())
        };
        if let Some(why) = refusal {
            if !left_out.iter().any(|known: &LeftOut| known.why == why) {
                left_out.push(LeftOut { what: cell.name(), why });
            }
        } else if names.insert(cell.name()) {
            cells.push(cell);
        }
    }
    (cells, left_out)
}

/// All combinations, the last axis fastest.
fn product(matrix: &ScanMatrix) -> Vec<(BackendKind, ScanCell)> {
    type Item = (BackendKind, ScanCell);
    fn cross<T: Copy>(cells: Vec<Item>, values: &[T], set: impl Fn(&mut Item, T)) -> Vec<Item> {
        let with = |&value: &T, mut cell: Item| {
            set(&mut cell, value);
            cell
        };
        cells
            .into_iter()
            .flat_map(|cell| values.iter().map(move |value| (value, cell)))
            .map(|(v, c)| with(v, c))
            .collect()
    }
    let mut cells = vec![(BackendKind::Uring, ScanCell { reader: READER, axes: matrix.axes })];
    cells = cross(cells, &matrix.backend, |c, v| (c.0, c.1.reader.backend) = (v, engine_backend(v)));
    cells = cross(cells, &matrix.direct, |c, v| c.1.reader.direct = v);
    cells = cross(cells, &matrix.cache, |c, v| c.1.reader.cache = v);
    cells = cross(cells, &matrix.pool, |c, v| c.1.reader.pool = v);
    cells = cross(cells, &matrix.window, |c, v| c.1.reader.window = v);
    cells = cross(cells, &matrix.submit, |c, v| c.1.reader.submit = v);
    cells = cross(cells, &matrix.in_flight, |c, v| c.1.reader.in_flight = v);
    cells = cross(cells, &matrix.depth, |c, v| c.1.axes.depth = v);
    cells = cross(cells, &matrix.threads, |c, v| c.1.axes.threads = v);
    cells = cross(cells, &matrix.block_bytes, |c, v| c.1.axes.block_bytes = v);
    cells = cross(cells, &matrix.refill, |c, v| c.1.axes.refill = v);
    cells = cross(cells, &matrix.wait, |c, v| c.1.axes.wait = v);
    cells = cross(cells, &matrix.think_ns, |c, v| c.1.axes.think_ns = v);
    cells = cross(cells, &matrix.pause_ns, |c, v| c.1.axes.pause_ns = v);
    cells = cross(cells, &matrix.touch, |c, v| c.1.axes.touch = v);
    cells = cross(cells, &matrix.touch_order, |c, v| c.1.axes.touch_order = v);
    cross(cells, &matrix.delay_pages, |c, v| c.1.axes.delay_pages = v)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> ScanAxes {
        ScanAxes { random: Some(1000), ..ScanAxes::default() }
    }

    #[test]
    fn pread_has_one_read_in_flight_a_thread_and_the_rest_is_left_out_with_the_reason() {
        let matrix = ScanMatrix {
            backend: BackendKind::ALL.to_vec(),
            depth: vec![1, 8],
            axes: random(),
            ..ScanMatrix::default()
        };
        let (cells, left_out) = expand(&matrix);
        let names: Vec<String> = cells.iter().map(ScanCell::name).collect();
        let expected = [
            "scan-pread-random-n1000-qd1",
            "scan-uring-random-n1000-qd1",
            "scan-uring-random-n1000-qd8",
            "scan-uring-sqpoll-random-n1000-qd1",
            "scan-uring-sqpoll-random-n1000-qd8",
        ];
        assert_eq!(names, expected);
        assert_eq!(left_out.len(), 1);
        assert!(left_out[0].why.contains("one pread in flight"), "{left_out:?}");
    }

    #[test]
    fn axes_that_do_not_matter_make_no_cells() {
        let matrix = ScanMatrix {
            backend: vec![BackendKind::Pread, BackendKind::UringSqpoll],
            window: vec![0, 32],
            wait: WaitMode::ALL.to_vec(),
            touch_order: TouchOrder::ALL.to_vec(),
            axes: ScanAxes { sqpoll_cpu: Some(1), burst: 5, ..random() },
            ..ScanMatrix::default()
        };
        let names: Vec<String> = expand(&matrix).0.iter().map(ScanCell::name).collect();
        let expected = [
            "scan-pread-random-n1000-qd1",
            "scan-uring-sqpoll-random-n1000-qd1-poller1",
            "scan-uring-sqpoll-random-n1000-qd1-spin-poller1",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_file_read_in_order_has_the_readers_axes() {
        let matrix = ScanMatrix {
            direct: Direct::ALL.to_vec(),
            window: vec![0, 32],
            submit: vec![Submit::Coalesced],
            touch: vec![Touch::Copy],
            delay_pages: vec![7],
            ..ScanMatrix::default()
        };
        let (cells, left_out) = expand(&matrix);
        let names: Vec<String> = cells.iter().map(ScanCell::name).collect();
        let expected = [
            "scan-uring-w0-sequential-touch-copy-delay7",
            "scan-uring-w32-coalesced-sequential-touch-copy-delay7",
            "scan-uring-direct-w0-sequential-touch-copy-delay7",
            "scan-uring-direct-w32-coalesced-sequential-touch-copy-delay7",
        ];
        assert_eq!((names, left_out), (expected.map(str::to_owned).to_vec(), vec![]));
    }
}
