//! A cell with the axes that lie outside of its workload: CPUs and the poller's idle time.

use super::axes::{Axes, Values};
use crate::engine::EngineBackend;
use crate::experiment::cpus::CpuList;
use crate::experiment::plan::{Cell, Cells, LeftOut, Matrix, expand};
use crate::experiment::scan_plan::{self, ScanCell, ScanMatrix, kind_of};
use crate::experiment::spec::{Point, SQPOLL_IDLE_DEFAULT_MS};
use crate::workload::scan::ScanAxes;

/// Where a cell lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// On the axes of its workload.
    pub point: Point,
    /// The CPUs that its table names.
    pub cpus: Option<CpuList>,
    /// The poller's idle time.
    pub sqpoll_idle_ms: u32,
}

/// The product of a `[[matrix]]`.
pub fn of_query(axes: &Axes, base: &Matrix, path_is_utf8: bool) -> (Vec<Place>, Vec<LeftOut>) {
    fn or<T: Clone>(list: &Option<Vec<T>>, base: &[T]) -> Vec<T> {
        list.clone().unwrap_or_else(|| base.to_vec())
    }
    let matrix = Matrix {
        engine: or(&axes.engine, &base.engine),
        backend: or(&axes.backend, &base.backend),
        direct: or(&axes.direct, &base.direct),
        cache: or(&axes.cache, &base.cache),
        policy: or(&axes.policy, &base.policy),
        window: or(&axes.window, &base.window),
        submit: or(&axes.submit, &base.submit),
        in_flight: or(&axes.in_flight, &base.in_flight),
        gap: or(&axes.gap, &base.gap),
        pool: or(&axes.pool, &base.pool),
        delivery: or(&axes.delivery, &base.delivery),
    };
    let Cells { cells, left_out } = expand(&[matrix], path_is_utf8);
    (cells.into_iter().flat_map(|cell| places(Point::Query(cell), axes)).collect(), left_out)
}

/// The product of a `[[scan]]`. Its random offsets have the usual seed, so that the same cell reads the same in every experiment.
pub fn of_scan(axes: &Axes, base: &Matrix) -> (Vec<Place>, Vec<LeftOut>) {
    fn or<T: Clone>(list: &Option<Vec<T>>, base: Vec<T>) -> Vec<T> {
        list.clone().unwrap_or(base)
    }
    /// Every value, or none for an axis that is not mentioned.
    fn each<T: Copy>(list: &Option<Vec<T>>) -> Vec<Option<T>> {
        list.as_ref().map_or_else(|| vec![None], |list| list.iter().copied().map(Some).collect())
    }
    let default = ScanMatrix::default();
    let backends = axes.backend.as_ref().map(|list| list.iter().filter_map(|&backend| kind_of(backend)).collect());
    let matrix = ScanMatrix {
        backend: or(&backends, default.backend),
        direct: or(&axes.direct, default.direct),
        cache: or(&axes.cache, base.cache.clone()),
        pool: or(&axes.pool, default.pool),
        window: or(&axes.window, default.window),
        submit: or(&axes.submit, default.submit),
        in_flight: or(&axes.in_flight, default.in_flight),
        depth: or(&axes.depth, default.depth),
        threads: or(&axes.threads, default.threads),
        block_bytes: or(&axes.block_bytes, default.block_bytes),
        refill: or(&axes.refill, default.refill),
        wait: or(&axes.wait, default.wait),
        think_ns: or(&axes.think, default.think_ns),
        pause_ns: or(&axes.pause, default.pause_ns),
        touch: or(&axes.touch, default.touch),
        touch_order: or(&axes.touch_order, default.touch_order),
        delay_pages: or(&axes.delay_pages, default.delay_pages),
        axes: default.axes,
    };
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    for random in each(&axes.random) {
        for sqpoll_cpu in each(&axes.sqpoll_cpu) {
            for burst in each(&axes.burst) {
                let own = ScanAxes { random, sqpoll_cpu, burst: burst.unwrap_or(0), ..matrix.axes };
                let (cells, refused) = scan_plan::expand(&ScanMatrix { axes: own, ..matrix.clone() });
                left_out.extend(refused);
                all.extend(cells.into_iter().flat_map(|cell| places(Point::Scan(cell), axes)));
            }
        }
    }
    (all, left_out)
}

/// The cell on each list of CPUs, with each idle time.
fn places(point: Point, axes: &Axes) -> Vec<Place> {
    let cpus: Vec<Option<CpuList>> =
        axes.cpus.as_ref().map_or_else(|| vec![None], |list| list.iter().cloned().map(Some).collect());
    let default = [SQPOLL_IDLE_DEFAULT_MS];
    // Without a poller its idle time does not matter.
    let idles = axes.sqpoll_idle_ms.as_deref().filter(|_| has_poller(&point)).unwrap_or(&default);
    let mut places = Vec::new();
    for &sqpoll_idle_ms in idles {
        places.extend(cpus.iter().map(|cpus| Place { point, cpus: cpus.clone(), sqpoll_idle_ms }));
    }
    places
}

fn reader_of(point: &Point) -> &Cell {
    match point {
        Point::Query(cell) => cell,
        Point::Scan(scan) => &scan.reader,
    }
}

fn has_poller(point: &Point) -> bool {
    reader_of(point).backend == EngineBackend::UringSqpoll
}

impl Place {
    /// The cell's name. CPUs are mentioned where its table names them, the idle time where it is not the usual one.
    pub fn name(&self) -> String {
        let mut name = self.point.name();
        if has_poller(&self.point) && self.sqpoll_idle_ms != SQPOLL_IDLE_DEFAULT_MS {
            name.push_str(&format!("-idle{}ms", self.sqpoll_idle_ms));
        }
        if let Some(cpus) = &self.cpus {
            name.push_str(&format!("-cpu{cpus}"));
        }
        name
    }

    /// Its value on each axis that it has.
    pub fn values(&self) -> Values {
        let reader = reader_of(&self.point);
        let common = Values {
            backend: Some(reader.backend),
            direct: Some(reader.direct),
            cache: Some(reader.cache),
            window: Some(reader.window),
            submit: Some(reader.submit),
            in_flight: Some(reader.in_flight),
            pool: Some(reader.pool),
            cpus: self.cpus.clone(),
            sqpoll_idle_ms: Some(self.sqpoll_idle_ms),
            ..Values::default()
        };
        match &self.point {
            Point::Query(cell) => {
                let (engine, policy) = (Some(cell.engine), Some(cell.policy));
                Values { engine, policy, gap: Some(cell.gap), delivery: Some(cell.delivery), ..common }
            }
            Point::Scan(ScanCell { axes, .. }) => Values {
                random: axes.random,
                depth: Some(axes.depth),
                threads: Some(axes.threads),
                block_bytes: Some(axes.block_bytes),
                refill: Some(axes.refill),
                wait: Some(axes.wait),
                think: Some(axes.think_ns),
                pause: Some(axes.pause_ns),
                burst: Some(axes.burst),
                touch: Some(axes.touch),
                touch_order: Some(axes.touch_order),
                delay_pages: Some(axes.delay_pages),
                sqpoll_cpu: axes.sqpoll_cpu,
                ..common
            },
        }
    }

    /// The cell with the values of a baseline; `None` where it lacks one of the axes.
    pub fn moved(&self, baseline: &Axes) -> Option<Place> {
        let values = baseline.moved(&self.values())?;
        let old = reader_of(&self.point);
        let reader = Cell {
            engine: values.engine.unwrap_or(old.engine),
            backend: values.backend?,
            direct: values.direct?,
            cache: values.cache?,
            policy: values.policy.unwrap_or(old.policy),
            window: values.window?,
            submit: values.submit?,
            in_flight: values.in_flight?,
            gap: values.gap.unwrap_or(old.gap),
            pool: values.pool?,
            delivery: values.delivery.unwrap_or(old.delivery),
        };
        let point = match &self.point {
            Point::Query(_) => Point::Query(reader),
            Point::Scan(scan) => {
                let axes = ScanAxes {
                    random: values.random,
                    depth: values.depth?,
                    threads: values.threads?,
                    block_bytes: values.block_bytes?,
                    refill: values.refill?,
                    wait: values.wait?,
                    think_ns: values.think?,
                    pause_ns: values.pause?,
                    burst: values.burst?,
                    touch: values.touch?,
                    touch_order: values.touch_order?,
                    delay_pages: values.delay_pages?,
                    sqpoll_cpu: values.sqpoll_cpu,
                    ..scan.axes
                };
                Point::Scan(ScanCell { reader, axes }.canonical())
            }
        };
        Some(Place { point, cpus: values.cpus, sqpoll_idle_ms: values.sqpoll_idle_ms? })
    }
}
