//! A run over time: the device's counters and the process's CPU time, read at an interval by a thread of its own.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use super::device::{BlockDevice, DiskStats, ReadStats};

/// What happened since the sample before, and what was the case at its time. The device's part is the whole disk's, of
/// every process, reads only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was taken, in seconds from the start of the measured phase.
    pub t_s: f64,
    /// Reads that the device had been given and not completed (sysfs `inflight`), at that moment.
    pub requests_in_flight: Option<u64>,
    /// Bytes of the reads completed since the sample before (sysfs `stat`), per second.
    pub bytes_per_s: Option<f64>,
    /// Share of bios merged into a request, since the sample before: reads merged of reads merged and completed (sysfs
    /// `stat`); `null` where there was neither.
    pub merged_percent: Option<f64>,
    /// CPU time of all the process's threads, io_uring's own included, since the sample before; 100 is one CPU.
    pub cpu_percent: Option<f64>,
}

/// How the samples were taken, and what that cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Time between two samples, as asked, in seconds.
    pub sample_interval_s: f64,
    /// CPU time of the thread that took them, in seconds; it is in the run's user and system time too.
    pub sampler_cpu_s: Option<f64>,
}

/// What a sampler brings back.
#[derive(Debug)]
pub struct Sampled {
    /// The samples, in order of time.
    pub samples: Vec<Sample>,
    /// How they were taken.
    pub sampling: Sampling,
    /// Why a value is `null`, by its name.
    pub reasons: Vec<(&'static str, String)>,
}

/// A thread that takes samples until it is stopped. Dropped, it is stopped as well.
#[derive(Debug)]
pub struct Sampler {
    thread: JoinHandle<Sampled>,
    stop: Sender<()>,
}

impl Sampler {
    /// Starts a thread that takes a sample each `interval`, of the process and, where there is one, the device.
    ///
    /// # Errors
    ///
    /// The thread cannot be made.
    pub fn start(interval: Duration, device: Result<BlockDevice, String>) -> Result<Sampler, String> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || {
                let mut series = Series::begin(device);
                let mut due = series.begin + interval;
                // Nobody ever sends: the channel's end is the signal, and waiting for it is the sleep.
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(until(due)) {
                    series.take(Duration::ZERO);
                    // A sample that came late is not made up for by others in a burst.
                    while due <= Instant::now() {
                        due += interval;
                    }
                }
                series.take(interval / 4);
                series.end(interval)
            })
            .map_err(|e| format!("the sampling thread could not be made: {e}"))?;
        Ok(Sampler { thread, stop })
    }

    /// Ends the sampling with a last sample.
    ///
    /// # Errors
    ///
    /// The thread died.
    pub fn stop(self) -> Result<Sampled, String> {
        drop(self.stop);
        self.thread.join().map_err(|_| "the sampling thread died".to_owned())
    }
}

fn until(due: Instant) -> Duration {
    due.saturating_duration_since(Instant::now())
}

/// All that is read at one moment.
#[derive(Debug, Clone)]
struct Reading {
    at: Instant,
    disk: Result<DiskStats, String>,
    in_flight: Result<ReadStats, String>,
    cpu_s: Result<f64, String>,
}

fn reading(device: &Result<BlockDevice, String>) -> Reading {
    let of = |device: &Result<BlockDevice, String>| device.as_ref().map_err(Clone::clone).cloned();
    Reading {
        at: Instant::now(),
        disk: of(device).and_then(|device| device.stats()),
        in_flight: of(device).and_then(|device| device.in_flight()),
        cpu_s: cpu_s(UsageWho::RUSAGE_SELF),
    }
}

fn cpu_s(who: UsageWho) -> Result<f64, String> {
    let usage = getrusage(who).map_err(|e| format!("getrusage failed: {e}"))?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}

/// The samples so far.
struct Series {
    device: Result<BlockDevice, String>,
    begin: Instant,
    last: Reading,
    samples: Vec<Sample>,
    reasons: Vec<(&'static str, String)>,
}

impl Series {
    fn begin(device: Result<BlockDevice, String>) -> Series {
        let last = reading(&device);
        Series { device, begin: last.at, last, samples: Vec::new(), reasons: Vec::new() }
    }

    /// Takes a sample, unless there is one and less than `least` has passed since: rates over next to no time are
    /// noise.
    fn take(&mut self, least: Duration) {
        let now = reading(&self.device);
        if !self.samples.is_empty() && now.at.duration_since(self.last.at) < least {
            return;
        }
        let sample = between(&self.last, &now, self.begin, &mut self.reasons);
        self.samples.extend(sample);
        self.last = now;
    }

    fn end(mut self, interval: Duration) -> Sampled {
        let sampler_cpu_s = cpu_s(UsageWho::RUSAGE_THREAD).map_err(|why| self.reasons.push(("sampler_cpu_s", why)));
        self.reasons.dedup_by_key(|(name, _)| *name);
        let sampling = Sampling { sample_interval_s: interval.as_secs_f64(), sampler_cpu_s: sampler_cpu_s.ok() };
        Sampled { samples: self.samples, sampling, reasons: self.reasons }
    }
}

/// The sample between two readings; `None` where no time lies between them.
fn between(last: &Reading, now: &Reading, begin: Instant, reasons: &mut Vec<(&'static str, String)>) -> Option<Sample> {
    let elapsed_s = now.at.duration_since(last.at).as_secs_f64();
    if elapsed_s <= 0.0 {
        return None;
    }
    let mut explain = |name: &'static str, why: &str| {
        if reasons.iter().all(|(known, _)| *known != name) {
            reasons.push((name, why.to_owned()));
        }
    };
    let disk = match (&last.disk, &now.disk) {
        (Ok(last), Ok(now)) => Ok((
            now.sectors_read.wrapping_sub(last.sectors_read),
            now.reads.wrapping_sub(last.reads),
            now.reads_merged.wrapping_sub(last.reads_merged),
        )),
        (Err(why), _) | (_, Err(why)) => Err(why),
    };
    let (bytes_per_s, merged_percent) = match disk {
        Err(why) => {
            explain("bytes_per_s", why);
            explain("samples.merged_percent", why);
            (None, None)
        }
        Ok((sectors, reads, merged)) => {
            let bios = reads + merged;
            if bios == 0 {
                explain("samples.merged_percent", "no read was completed or merged between two samples");
            }
            (Some(sectors as f64 * 512.0 / elapsed_s), (bios > 0).then(|| 100.0 * merged as f64 / bios as f64))
        }
    };
    let cpu_percent = match (&last.cpu_s, &now.cpu_s) {
        (Ok(last), Ok(now)) => Some(100.0 * (now - last).max(0.0) / elapsed_s),
        (Err(why), _) | (_, Err(why)) => {
            explain("cpu_percent", why);
            None
        }
    };
    let in_flight = now.in_flight.as_ref().map_err(|why| explain("requests_in_flight", why));
    Some(Sample {
        t_s: now.at.duration_since(begin).as_secs_f64(),
        requests_in_flight: in_flight.ok().map(|stats| stats.reads_in_flight),
        bytes_per_s,
        merged_percent,
        cpu_percent,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(begin: Instant, ms: u64, disk: Result<DiskStats, String>, in_flight: u64, cpu_s: f64) -> Reading {
        Reading {
            at: begin + Duration::from_millis(ms),
            disk,
            in_flight: Ok(ReadStats { reads_in_flight: in_flight }),
            cpu_s: Ok(cpu_s),
        }
    }

    #[test]
    fn a_sample_is_what_happened_since_the_one_before() {
        let begin = Instant::now();
        let before = DiskStats { reads: 10, reads_merged: 100, sectors_read: 1000, ..DiskStats::default() };
        let after = DiskStats { reads: 11, reads_merged: 119, sectors_read: 1160, ..DiskStats::default() };
        let mut reasons = Vec::new();
        let (last, now) = (at(begin, 50, Ok(before), 3, 1.0), at(begin, 100, Ok(after), 7, 1.025));
        let sample = between(&last, &now, begin, &mut reasons).unwrap();
        assert!((sample.t_s - 0.1).abs() < 1e-9 && sample.requests_in_flight == Some(7));
        assert!((sample.bytes_per_s.unwrap() - 160.0 * 512.0 / 0.05).abs() < 1e-3);
        assert!((sample.merged_percent.unwrap() - 95.0).abs() < 1e-9);
        assert!((sample.cpu_percent.unwrap() - 50.0).abs() < 1e-6);
        assert_eq!(reasons, []);
    }

    #[test]
    fn what_is_not_known_is_null_and_has_a_reason_once() {
        let begin = Instant::now();
        let mut reasons = Vec::new();
        let quiet = at(begin, 0, Ok(DiskStats::default()), 0, 0.0);
        let sample = between(&quiet, &at(begin, 50, Ok(DiskStats::default()), 0, 0.0), begin, &mut reasons).unwrap();
        assert_eq!((sample.merged_percent, sample.bytes_per_s), (None, Some(0.0)));
        let gone = at(begin, 100, Err("no statistics".to_owned()), 0, 0.0);
        for _ in 0..2 {
            let sample = between(&quiet, &gone, begin, &mut reasons).unwrap();
            assert_eq!((sample.merged_percent, sample.bytes_per_s), (None, None));
        }
        let names: Vec<&str> = reasons.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["samples.merged_percent", "bytes_per_s"]);
        assert_eq!(between(&gone, &gone, begin, &mut reasons), None);
    }

    #[test]
    fn a_sampler_sees_the_cpu_time_of_its_process_and_says_what_it_took() {
        let sampler = Sampler::start(Duration::from_millis(5), Err("no device".to_owned())).unwrap();
        let begin = Instant::now();
        while cpu_s(UsageWho::RUSAGE_THREAD).unwrap() < 0.05 && begin.elapsed() < Duration::from_secs(60) {
            std::hint::black_box((0..10_000).sum::<u64>());
        }
        let sampled = sampler.stop().unwrap();
        let last = sampled.samples.last().unwrap();
        assert!(sampled.samples.windows(2).all(|pair| pair[0].t_s < pair[1].t_s));
        assert!(sampled.samples.iter().any(|sample| sample.cpu_percent.unwrap() > 0.0));
        assert_eq!((last.requests_in_flight, last.bytes_per_s), (None, None));
        assert!(sampled.reasons.contains(&("requests_in_flight", "no device".to_owned())));
        assert!(sampled.sampling.sampler_cpu_s.unwrap() > 0.0);
    }
}
