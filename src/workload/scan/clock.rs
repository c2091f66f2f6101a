//! A clock for spans of some ten nanoseconds, whose own cost is known.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "reads the time stamp counter"))]

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// How long the counter is compared with the system's clock.
const CALIBRATION: Duration = Duration::from_millis(20);
/// Spans of nothing that are timed to know what timing costs.
const OVERHEAD_SPANS: usize = 1001;

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    /// The time stamp counter, so many nanoseconds a tick.
    Tsc(f64),
    /// CLOCK_MONOTONIC.
    Monotonic,
}

/// A clock for short spans.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FineClock {
    source: Source,
    overhead_ns: f64,
}

impl FineClock {
    /// The time stamp counter where it runs at one rate whatever the CPU does (flags `constant_tsc` and `nonstop_tsc` of
    /// /proc/cpuinfo, Intel SDM volume 3, 19.17.1), else CLOCK_MONOTONIC. Takes some 20 ms.
    pub fn calibrated() -> FineClock {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        FineClock::with(if cfg!(target_arch = "x86_64") && has_invariant_tsc(&flags) {
            Source::Tsc(ns_per_tick())
        } else {
            Source::Monotonic
        })
    }

    fn with(source: Source) -> FineClock {
        let mut clock = FineClock { source, overhead_ns: 0.0 };
        let mut spans: Vec<f64> = (0..OVERHEAD_SPANS)
            .map(|_| {
                let begin = clock.now();
                clock.ns_between(begin, clock.now())
            })
            .collect();
        spans.sort_by(f64::total_cmp);
        clock.overhead_ns = spans[OVERHEAD_SPANS / 2];
        clock
    }

    /// A reading, in units of the clock.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self.source {
            Source::Tsc(_) => ticks(),
            Source::Monotonic => monotonic_ns(),
        }
    }

    /// Nanoseconds between two readings, without what the reading itself takes; 0 at least.
    pub fn ns_between(&self, begin: u64, end: u64) -> f64 {
        let units = end.saturating_sub(begin) as f64;
        let ns = match self.source {
            Source::Tsc(ns_per_tick) => units * ns_per_tick,
            Source::Monotonic => units,
        };
        (ns - self.overhead_ns).max(0.0)
    }

    /// What timing an empty span takes, in nanoseconds: the median, which [`FineClock::ns_between`] subtracts.
    pub fn overhead_ns(&self) -> f64 {
        self.overhead_ns
    }

    /// The clock's name: `tsc` or `monotonic`.
    pub fn name(&self) -> &'static str {
        match self.source {
            Source::Tsc(_) => "tsc",
            Source::Monotonic => "monotonic",
        }
    }
}

fn monotonic_ns() -> u64 {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    ORIGIN.elapsed().as_nanos() as u64
}

/// The time stamp counter, after everything before has ended and before anything after has begun.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both instructions are part of x86-64; a kernel that forbids RDTSC to user space (PR_TSC_SIGSEGV) does so at
    // the process's own request only.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    monotonic_ns()
}

fn ns_per_tick() -> f64 {
    let (begin, begin_ticks) = (Instant::now(), ticks());
    std::thread::sleep(CALIBRATION);
    let (elapsed, end_ticks) = (begin.elapsed(), ticks());
    elapsed.as_nanos() as f64 / (end_ticks.saturating_sub(begin_ticks)).max(1) as f64
}

/// Whether every CPU listed has a counter that neither stops nor changes its rate.
fn has_invariant_tsc(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags")).peekable();
    flags.peek().is_some()
        && flags.all(|line| ["constant_tsc", "nonstop_tsc"].iter().all(|f| line.split_whitespace().any(|w| w == *f)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_used_where_every_cpu_has_it() {
        assert!(has_invariant_tsc("flags\t\t: fpu tsc constant_tsc nonstop_tsc\nflags\t: nonstop_tsc constant_tsc\n"));
        assert!(!has_invariant_tsc("flags\t\t: constant_tsc nonstop_tsc\nflags\t: constant_tsc\n"));
        assert!(!has_invariant_tsc("flags\t\t: constant_tsc_x nonstop_tsc\n"));
        assert!(!has_invariant_tsc(""));
    }

    #[test]
    fn both_sources_agree_with_the_system_clock() {
        for clock in [FineClock::calibrated(), FineClock::with(Source::Monotonic)] {
            let (begin, instant) = (clock.now(), Instant::now());
            std::thread::sleep(Duration::from_millis(5));
            let (told, slept) = (clock.ns_between(begin, clock.now()), instant.elapsed().as_nanos() as f64);
            // The span lies around the system clock's own, and a preemption may fall between the readings.
            assert!(told > 4.5e6 && told < slept + 1e9, "{}: {told} {slept}", clock.name());
            assert!(clock.overhead_ns() < 1e6, "{clock:?}");
        }
    }

    #[test]
    fn a_span_is_never_negative() {
        let clock = FineClock::with(Source::Monotonic);
        assert_eq!((clock.ns_between(5, 5), clock.ns_between(5, 3)), (0.0, 0.0));
    }
}
