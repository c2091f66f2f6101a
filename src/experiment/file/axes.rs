//! Lists of values on the axes of a query, as tables of an experiment file hold them.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

use crate::engine::{EngineBackend, EngineKind};
use crate::experiment::cpus::CpuList;
use crate::experiment::plan::{Cell, Matrix, parse_gap, parse_in_flight, parse_number, parse_value, parse_window};
use crate::experiment::record::CacheState;
use crate::page::config::{Delivery, Direct, PolicyKind, PoolKind, Submit, UnknownValue};

/// Longest `sq_thread_idle`, in milliseconds.
pub const SQPOLL_IDLE_MAX_MS: u32 = 3_600_000;

/// How the values of one axis are read.
pub trait Axis {
    /// What they are.
    type Value: Clone;

    /// Reads one.
    fn read(text: &str) -> Result<Self::Value, String>;
}

/// An axis whose values have names.
pub struct Named<T>(PhantomData<T>);
/// `window`.
pub struct Window;
/// `in_flight`.
pub struct InFlight;
/// `gap`.
pub struct Gap;
/// `cpus`.
pub struct Cpus;
/// `sqpoll_idle_ms`.
pub struct SqpollIdle;

impl<T: FromStr<Err = UnknownValue> + Clone> Axis for Named<T> {
    type Value = T;

    fn read(text: &str) -> Result<T, String> {
        parse_value(text).map_err(|e| e.to_string())
    }
}

/// Axes that a function of the command line reads already.
macro_rules! axis_by {
    ($($name:ident: $value:ty = $read:expr;)+) => { $(
        impl Axis for $name {
            type Value = $value;

            fn read(text: &str) -> Result<$value, String> {
                $read(text).map_err(|e| e.to_string())
            }
        }
    )+ };
}
axis_by! {
    Window: u32 = parse_window;
    InFlight: u32 = parse_in_flight;
    Gap: u32 = parse_gap;
    Cpus: CpuList = str::parse::<CpuList>;
    SqpollIdle: u32 = |text| parse_number("sqpoll_idle_ms", text, 1, SQPOLL_IDLE_MAX_MS);
}

/// One value or a list of them, and no empty list.
pub struct List<A: Axis>(pub Vec<A::Value>);

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

/// A table with a list for each axis of a query that it mentions, and some other keys.
macro_rules! query_table {
    ($(#[$doc:meta])* $name:ident { $($(#[$key_doc:meta])* $key:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            engine: Option<List<Named<EngineKind>>>,
            backend: Option<List<Named<EngineBackend>>>,
            direct: Option<List<Named<Direct>>>,
            cache: Option<List<Named<CacheState>>>,
            policy: Option<List<Named<PolicyKind>>>,
            window: Option<List<Window>>,
            submit: Option<List<Named<Submit>>>,
            in_flight: Option<List<InFlight>>,
            gap: Option<List<Gap>>,
            pool: Option<List<Named<PoolKind>>>,
            delivery: Option<List<Named<Delivery>>>,
            cpus: Option<List<Cpus>>,
            sqpoll_idle_ms: Option<List<SqpollIdle>>,
            $($(#[$key_doc])* pub $key: $type,)*
        }

        impl $name {
            /// The axes that are mentioned.
            pub fn axes(&self) -> QueryAxes {
                fn values<A: Axis>(list: &Option<List<A>>) -> Option<Vec<A::Value>> {
                    list.as_ref().map(|list| list.0.clone())
                }
                QueryAxes {
                    engine: values(&self.engine),
                    backend: values(&self.backend),
                    direct: values(&self.direct),
                    cache: values(&self.cache),
                    policy: values(&self.policy),
                    window: values(&self.window),
                    submit: values(&self.submit),
                    in_flight: values(&self.in_flight),
                    gap: values(&self.gap),
                    pool: values(&self.pool),
                    delivery: values(&self.delivery),
                    cpus: values(&self.cpus),
                    sqpoll_idle_ms: values(&self.sqpoll_idle_ms),
                }
            }
        }
    };
}

query_table! {
    /// `[[matrix]]`: a product of axes.
    MatrixTable {
        /// Another number of runs than the protocol's.
        runs: Option<toml::Spanned<u32>>,
    }
}
query_table! {
    /// `[[exclude]]`: cells that are left out.
    ExcludeTable {
        /// Why.
        reason: String,
    }
}
query_table! {
    /// A pattern inside of `[[ratio]]`.
    PatternTable {}
}

/// Values on some axes of a query.
#[derive(Default, Clone)]
pub struct QueryAxes {
    engine: Option<Vec<EngineKind>>,
    backend: Option<Vec<EngineBackend>>,
    direct: Option<Vec<Direct>>,
    cache: Option<Vec<CacheState>>,
    policy: Option<Vec<PolicyKind>>,
    window: Option<Vec<u32>>,
    submit: Option<Vec<Submit>>,
    in_flight: Option<Vec<u32>>,
    gap: Option<Vec<u32>>,
    pool: Option<Vec<PoolKind>>,
    delivery: Option<Vec<Delivery>>,
    /// Lists of CPUs.
    pub cpus: Option<Vec<CpuList>>,
    /// Idle times of a poller.
    pub sqpoll_idle_ms: Option<Vec<u32>>,
}

/// Where a cell lies, the axes outside of [`Cell`] included.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The reader's and the engine's values.
    pub cell: Cell,
    /// The CPUs that the matrix names.
    pub cpus: Option<CpuList>,
    /// The poller's idle time.
    pub sqpoll_idle_ms: u32,
}

impl Place {
    /// The cell's name. CPUs are mentioned where the matrix names them, the idle time where it is not the usual one.
    pub fn name(&self) -> String {
        let mut name = self.cell.name();
        if self.cell.backend == EngineBackend::UringSqpoll
            && self.sqpoll_idle_ms != crate::experiment::spec::SQPOLL_IDLE_DEFAULT_MS
        {
            name.push_str(&format!("-idle{}ms", self.sqpoll_idle_ms));
        }
        if let Some(cpus) = &self.cpus {
            name.push_str(&format!("-cpu{cpus}"));
        }
        name
    }
}

impl QueryAxes {
    /// The lists over those of `base`.
    pub fn over(&self, base: &Matrix) -> Matrix {
        fn or<T: Clone>(list: &Option<Vec<T>>, base: &[T]) -> Vec<T> {
            list.clone().unwrap_or_else(|| base.to_vec())
        }
        Matrix {
            engine: or(&self.engine, &base.engine),
            backend: or(&self.backend, &base.backend),
            direct: or(&self.direct, &base.direct),
            cache: or(&self.cache, &base.cache),
            policy: or(&self.policy, &base.policy),
            window: or(&self.window, &base.window),
            submit: or(&self.submit, &base.submit),
            in_flight: or(&self.in_flight, &base.in_flight),
            gap: or(&self.gap, &base.gap),
            pool: or(&self.pool, &base.pool),
            delivery: or(&self.delivery, &base.delivery),
        }
    }

    /// Whether a cell has, on every axis that is mentioned, one of the values.
    pub fn matches(&self, place: &Place) -> bool {
        fn is<T: PartialEq>(list: &Option<Vec<T>>, value: &T) -> bool {
            list.as_ref().is_none_or(|list| list.contains(value))
        }
        let cell = &place.cell;
        is(&self.engine, &cell.engine)
            && is(&self.backend, &cell.backend)
            && is(&self.direct, &cell.direct)
            && is(&self.cache, &cell.cache)
            && is(&self.policy, &cell.policy)
            && is(&self.window, &cell.window)
            && is(&self.submit, &cell.submit)
            && is(&self.in_flight, &cell.in_flight)
            && is(&self.gap, &cell.gap)
            && is(&self.pool, &cell.pool)
            && is(&self.delivery, &cell.delivery)
            && is(&self.sqpoll_idle_ms, &place.sqpoll_idle_ms)
            && self.cpus.as_ref().is_none_or(|list| place.cpus.as_ref().is_some_and(|cpus| list.contains(cpus)))
    }

    /// The cell with the first value of every axis that is mentioned.
    pub fn moved(&self, place: &Place) -> Place {
        fn first<T: Clone>(list: &Option<Vec<T>>, value: T) -> T {
            list.as_ref().and_then(|list| list.first().cloned()).unwrap_or(value)
        }
        let cell = place.cell;
        Place {
            cell: Cell {
                engine: first(&self.engine, cell.engine),
                backend: first(&self.backend, cell.backend),
                direct: first(&self.direct, cell.direct),
                cache: first(&self.cache, cell.cache),
                policy: first(&self.policy, cell.policy),
                window: first(&self.window, cell.window),
                submit: first(&self.submit, cell.submit),
                in_flight: first(&self.in_flight, cell.in_flight),
                gap: first(&self.gap, cell.gap),
                pool: first(&self.pool, cell.pool),
                delivery: first(&self.delivery, cell.delivery),
            },
            cpus: first(&self.cpus.as_ref().map(|l| l.iter().cloned().map(Some).collect()), place.cpus.clone()),
            sqpoll_idle_ms: first(&self.sqpoll_idle_ms, place.sqpoll_idle_ms),
        }
    }

    /// Axes with more than one value.
    pub fn has_lists(&self) -> bool {
        fn many<T>(list: &Option<Vec<T>>) -> bool {
            list.as_ref().is_some_and(|list| list.len() > 1)
        }
        many(&self.engine)
            || many(&self.backend)
            || many(&self.direct)
            || many(&self.cache)
            || many(&self.policy)
            || many(&self.window)
            || many(&self.submit)
            || many(&self.in_flight)
            || many(&self.gap)
            || many(&self.pool)
            || many(&self.delivery)
            || many(&self.cpus)
            || many(&self.sqpoll_idle_ms)
    }

    /// Whether no axis is mentioned.
    pub fn is_empty(&self) -> bool {
        self.engine.is_none()
            && self.backend.is_none()
            && self.direct.is_none()
            && self.cache.is_none()
            && self.policy.is_none()
            && self.window.is_none()
            && self.submit.is_none()
            && self.in_flight.is_none()
            && self.gap.is_none()
            && self.pool.is_none()
            && self.delivery.is_none()
            && self.cpus.is_none()
            && self.sqpoll_idle_ms.is_none()
    }
}
