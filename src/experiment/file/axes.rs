//! Values on the axes of an experiment: lists of them in a file's tables, and where a cell lies among them.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

use crate::engine::{EngineBackend, EngineKind};
use crate::experiment::cpus::CpuList;
use crate::experiment::plan::{parse_gap, parse_in_flight, parse_number, parse_value, parse_window};
use crate::experiment::record::CacheState;
use crate::experiment::scan_plan::engine_backend;
use crate::page::blocks::{SLOTS_MAX, WaitMode};
use crate::page::config::{BackendKind, Delivery, Direct, PolicyKind, PoolKind, Submit, UnknownValue};
use crate::workload::scan::spec::{DELAY_MAX_PAGES, READS_MAX, THREADS_MAX, parse_span_ns};
use crate::workload::scan::{Refill, Touch, TouchOrder};

/// Longest `sq_thread_idle`, in milliseconds.
const SQPOLL_IDLE_MAX_MS: u32 = 3_600_000;
/// Highest number of a CPU.
const CPU_MAX: u32 = 8191;

/// How the values of one axis are read.
pub trait Axis {
    /// What they are.
    type Value: Clone;

    /// Reads one.
    fn read(text: &str) -> Result<Self::Value, String>;
}

/// An axis whose values have names.
pub struct Named<T>(PhantomData<T>);

impl<T: FromStr<Err = UnknownValue> + Clone> Axis for Named<T> {
    type Value = T;

    fn read(text: &str) -> Result<T, String> {
        parse_value(text).map_err(|e| e.to_string())
    }
}

/// Axes whose values are read by a function.
macro_rules! axis_by {
    ($($(#[$doc:meta])* $name:ident: $value:ty = $read:expr;)+) => { $(
        $(#[$doc])*
        pub struct $name;

        impl Axis for $name {
            type Value = $value;

            fn read(text: &str) -> Result<$value, String> {
                $read(text).map_err(|e| e.to_string())
            }
        }
    )+ };
}
axis_by! {
    /// Pages fetched at once.
    Window: u32 = parse_window;
    /// Batches in flight.
    InFlight: u32 = parse_in_flight;
    /// Unwanted pages that a run may read through.
    Gap: u32 = parse_gap;
    /// CPUs.
    Cpus: CpuList = str::parse::<CpuList>;
    /// The poller's idle time.
    SqpollIdle: u32 = |text| parse_number("sqpoll_idle_ms", text, 1, SQPOLL_IDLE_MAX_MS);
    /// The backends of a scan.
    ScanBackend: EngineBackend = |text| parse_value::<BackendKind>(text).map(engine_backend);
    /// Random reads.
    Random: u64 = |text| reads("random", text);
    /// Reads of a thread between two pauses.
    Burst: u64 = |text| reads("burst", text);
    /// Random reads in flight.
    Depth: u32 = |text| parse_number("depth", text, 1, SLOTS_MAX);
    /// Threads.
    Threads: u32 = |text| parse_number("threads", text, 1, THREADS_MAX);
    /// Bytes of a read.
    BlockBytes: u32 = block_bytes;
    /// A span of time, in nanoseconds.
    Span: u64 = parse_span_ns;
    /// Blocks that are delivered before one is touched.
    DelayPages: u32 = |text| parse_number("delay_pages", text, 0, DELAY_MAX_PAGES);
    /// CPU of the poller.
    SqpollCpu: u32 = |text| parse_number("sqpoll_cpu", text, 0, CPU_MAX);
}

fn reads(axis: &str, text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|n| (1..=READS_MAX).contains(n));
    number.ok_or_else(|| format!("{axis} '{text}' is out of range; a whole number from 1 to {READS_MAX}"))
}

fn block_bytes(text: &str) -> Result<u32, String> {
    let bytes = text.parse::<u32>().ok().filter(|n| n.is_power_of_two() && (512..=1 << 20).contains(n));
    bytes.ok_or_else(|| format!("block_bytes '{text}' is no block size; a power of two from 512 to 1048576"))
}

/// One value or a list of them, and no empty list.
pub struct List<A: Axis>(Vec<A::Value>);

impl<'de, A: Axis> Deserialize<'de> for List<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<A>(PhantomData<A>);

impl<'de, A: Axis> Visitor<'de> for ListVisitor<A> {
    type Value = List<A>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<List<A>, E> {
        A::read(text).map(|value| List(vec![value])).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<List<A>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<List<A>, S::Error> {
        let mut values = Vec::new();
        while let Some(One(value)) = seq.next_element::<One<A>>()? {
            values.push(value);
        }
        if values.is_empty() {
            return Err(S::Error::custom(
                "the list is empty, so there is nothing to run; name a value, or leave the axis out",
            ));
        }
        Ok(List(values))
    }
}

/// A single value.
pub struct One<A: Axis>(pub A::Value);

impl<'de, A: Axis> Deserialize<'de> for One<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneVisitor(PhantomData))
    }
}

struct OneVisitor<A>(PhantomData<A>);

impl<A: Axis> Visitor<'_> for OneVisitor<A> {
    type Value = One<A>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<One<A>, E> {
        A::read(text).map(One).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<One<A>, E> {
        self.visit_str(&number.to_string())
    }
}

/// Everything that goes over all axes.
macro_rules! all_axes {
    ($($axis:ident: $value:ty),+ $(,)?) => {
        /// Values on some axes.
        #[derive(Default, Clone)]
        pub struct Axes { $(
            #[allow(missing_docs, reason = "the axis's name says it")]
            pub $axis: Option<Vec<$value>>,
        )+ }

        /// Where a cell lies: `None` on the axes that it does not have.
        #[derive(Debug, Default, Clone, PartialEq)]
        pub struct Values { $(
            #[allow(missing_docs, reason = "the axis's name says it")]
            pub $axis: Option<$value>,
        )+ }

        impl Axes {
            /// Whether no axis is mentioned.
            pub fn is_empty(&self) -> bool {
                true $(&& self.$axis.is_none())+
            }

            /// Whether an axis has more than one value.
            pub fn has_lists(&self) -> bool {
                false $(|| self.$axis.as_ref().is_some_and(|list| list.len() > 1))+
            }

            /// Whether a cell has, on every axis that is mentioned, one of the values.
            pub fn matches(&self, cell: &Values) -> bool {
                true $(&& self.$axis.as_ref().is_none_or(|list| cell.$axis.as_ref().is_some_and(|v| list.contains(v))))+
            }

            /// The cell with the first value of every axis that is mentioned; `None` where it does not have one of them.
            pub fn moved(&self, cell: &Values) -> Option<Values> {
                Some(Values { $(
                    $axis: match (self.$axis.as_ref().and_then(|list| list.first()), &cell.$axis) {
                        (Some(_), None) => return None,
                        (Some(value), Some(_)) => Some(value.clone()),
                        (None, value) => value.clone(),
                    },
                )+ })
            }
        }
    };
}
all_axes! {
    engine: EngineKind,
    backend: EngineBackend,
    direct: Direct,
    cache: CacheState,
    policy: PolicyKind,
    window: u32,
    submit: Submit,
    in_flight: u32,
    gap: u32,
    pool: PoolKind,
    delivery: Delivery,
    cpus: CpuList,
    sqpoll_idle_ms: u32,
    random: u64,
    depth: u32,
    threads: u32,
    block_bytes: u32,
    refill: Refill,
    wait: WaitMode,
    think: u64,
    pause: u64,
    burst: u64,
    touch: Touch,
    touch_order: TouchOrder,
    delay_pages: u32,
    sqpoll_cpu: u32,
}

/// A table with a list for each axis that it mentions, and some other keys.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident [$($axis:ident: $kind:ty),* $(,)?] { $($(#[$key_doc:meta])* $key:ident: $type:ty),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($axis: Option<List<$kind>>,)*
            $($(#[$key_doc])* pub $key: $type,)*
        }

        impl $name {
            /// The axes that are mentioned.
            #[allow(clippy::needless_update, reason = "some tables have every axis")]
            pub fn axes(&self) -> Axes {
                Axes { $($axis: self.$axis.as_ref().map(|list| list.0.clone()),)* ..Axes::default() }
            }
        }
    };
}

table! {
    /// `[[matrix]]`: a product of the axes of a query.
    MatrixTable [
        engine: Named<EngineKind>,
        backend: Named<EngineBackend>,
        direct: Named<Direct>,
        cache: Named<CacheState>,
        policy: Named<PolicyKind>,
        window: Window,
        submit: Named<Submit>,
        in_flight: InFlight,
        gap: Gap,
        pool: Named<PoolKind>,
        delivery: Named<Delivery>,
        cpus: Cpus,
        sqpoll_idle_ms: SqpollIdle,
    ] {
        /// Another number of runs than the protocol's.
        runs: Option<toml::Spanned<u32>>,
    }
}
table! {
    /// `[[scan]]`: a product of the axes of a scan.
    ScanTable [
        backend: ScanBackend,
        direct: Named<Direct>,
        cache: Named<CacheState>,
        window: Window,
        submit: Named<Submit>,
        in_flight: InFlight,
        pool: Named<PoolKind>,
        cpus: Cpus,
        sqpoll_idle_ms: SqpollIdle,
        random: Random,
        depth: Depth,
        threads: Threads,
        block_bytes: BlockBytes,
        refill: Named<Refill>,
        wait: Named<WaitMode>,
        think: Span,
        pause: Span,
        burst: Burst,
        touch: Named<Touch>,
        touch_order: Named<TouchOrder>,
        delay_pages: DelayPages,
        sqpoll_cpu: SqpollCpu,
    ] {
        /// Another number of runs than the protocol's.
        runs: Option<toml::Spanned<u32>>,
    }
}
macro_rules! pattern_table {
    ($(#[$doc:meta])* $name:ident $keys:tt) => {
        table! {
            $(#[$doc])*
            $name [
                engine: Named<EngineKind>,
                backend: Named<EngineBackend>,
                direct: Named<Direct>,
                cache: Named<CacheState>,
                policy: Named<PolicyKind>,
                window: Window,
                submit: Named<Submit>,
                in_flight: InFlight,
                gap: Gap,
                pool: Named<PoolKind>,
                delivery: Named<Delivery>,
                cpus: Cpus,
                sqpoll_idle_ms: SqpollIdle,
                random: Random,
                depth: Depth,
                threads: Threads,
                block_bytes: BlockBytes,
                refill: Named<Refill>,
                wait: Named<WaitMode>,
                think: Span,
                pause: Span,
                burst: Burst,
                touch: Named<Touch>,
                touch_order: Named<TouchOrder>,
                delay_pages: DelayPages,
                sqpoll_cpu: SqpollCpu,
            ] $keys
        }
    };
}
pattern_table! {
    /// `[[exclude]]`: cells that are left out.
    ExcludeTable {
        /// Why.
        reason: String,
    }
}
pattern_table! {
    /// A pattern inside of `[[ratio]]`.
    PatternTable {}
}
