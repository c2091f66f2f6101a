//! What the engine, its reader and the watch report, put under the names of a record.

use super::cpus::CpuList;
use super::record::{Asked, Record};
use crate::engine::{EngineBackend, EngineReport};
use crate::measure::Measured;
use crate::page::config::{Delivery, Direct, PoolKind};
use crate::page::report::ReaderReport;
use crate::workload::scan::ScanReport;

const OWN_IO: &str = "the engine's own I/O reads, not ioscope's reader";
const NO_RING: &str = "pread has no ring";
const NO_POLLER: &str = "no SQPOLL thread";

/// Leaves that only ioscope's reader can fill.
const READER_LEAVES: [&str; 25] = [
    "delivery",
    "pages_lent",
    "backend",
    "direct",
    "direct_proof",
    "alignment_bytes",
    "pool",
    "pool_bytes",
    "pool_huge_bytes",
    "sq_entries",
    "sqpoll_tid",
    "sqpoll_cpus_allowed",
    "sqpoll_work_s",
    "sqpoll_total_s",
    "sqes",
    "enter_calls",
    "wakeups",
    "cqes",
    "pread_calls",
    "short_reads",
    "retries",
    "pages_asked",
    "pages_from_window",
    "pages_prefetched",
    "pages_wasted",
];

/// The CPU that the poller is bound to: the one that a scan names, else the last one of the list. With a single CPU it
/// shares it with the application.
pub fn poller_cpu(asked: &Asked, cpus: Option<&CpuList>) -> Option<u32> {
    let named = asked.scan.and_then(|scan| scan.sqpoll_cpu);
    named.or(cpus.map(CpuList::last)).filter(|_| asked.backend == EngineBackend::UringSqpoll)
}

/// What the watch measured.
pub fn measured(record: &mut Record, measured: Measured) {
    record.times.user_s = measured.user_s;
    record.times.system_s = measured.system_s;
    record.times.sqpoll_s = measured.sqpoll_s;
    record.times.iowq_s = measured.iowq_s;
    record.ring.sqes_traced = measured.sqes_traced;
    record.block.bios = measured.bios;
    record.block.bios_merged = measured.bios_merged;
    record.block.requests_allocated = measured.requests_allocated;
    record.block.device_requests = measured.device_requests;
    record.block.device_bytes = measured.device_bytes;
    record.block.diskstats_reads = measured.diskstats_reads;
    record.block.diskstats_reads_merged = measured.diskstats_reads_merged;
    record.hardware.cycles = measured.cycles;
    record.hardware.instructions = measured.instructions;
    record.hardware.cache_references = measured.cache_references;
    record.hardware.cache_misses = measured.cache_misses;
    record.hardware.hardware_enabled_ns = measured.hardware_enabled_ns;
    record.hardware.hardware_running_ns = measured.hardware_running_ns;
    record.reasons.extend(measured.reasons);
    record.warnings.extend(measured.warnings);
}

/// What the engine and its reader report. The error says which mode was asked for and is not in force.
pub fn engine_report(record: &mut Record, report: EngineReport) -> Result<(), String> {
    record.effective.engine_version = Some(report.engine_version);
    match report.reader {
        Some(reader) => {
            reader_report(record, reader);
            unmet_mode(record)
        }
        None => {
            record.explain(&READER_LEAVES, OWN_IO);
            record.explain(&["bytes_read"], OWN_IO);
            if matches!(record.asked.backend, EngineBackend::Builtin | EngineBackend::BuiltinUring) {
                Ok(())
            } else {
                Err(format!("asked for backend {}, and the engine's own I/O was in force", record.asked.backend))
            }
        }
    }
}

/// What a scan reports, and what the watch has measured already. The error says which mode was asked for and is not in
/// force.
pub fn scan_report(record: &mut Record, report: ScanReport) -> Result<(), String> {
    const NO_ENGINE: &str = "no engine: the reader alone";
    record.explain(&["engine_version", "journal_mode"], NO_ENGINE);
    record.times.wall_s = Some(report.wall.as_secs_f64());
    let times = &record.times;
    let parts = [times.user_s, times.system_s, times.sqpoll_s, times.iowq_s];
    let cpu_s = parts.into_iter().sum::<Option<f64>>();
    let results = report.results(cpu_s);
    record.explain_null("iops_per_cpu_s", results.iops_per_cpu_s.is_none(), "the CPU time of one part is not known");
    record.explain_null("after_pause", results.after_pause.is_none(), "no pause was made");
    record.explain_null("touch", results.touch.is_none(), "no touch probe was asked for");
    if results.latency.is_none() {
        let reason = "read in order, a page comes from a window: its time says nothing of a read";
        record.explain(&["latency", "turns"], reason);
    }
    for latency in [results.latency, results.after_pause].into_iter().flatten() {
        for (leaf, reason) in latency.reasons() {
            record.explain(&[leaf], &reason);
        }
    }
    if let Some(touch) = &results.touch {
        let few = format!("{} blocks were touched: too few", touch.touch_blocks);
        record.explain_null("touch_ns_per_line_p50", touch.touch_ns_per_line_p50.is_none(), &few);
        record.explain_null("touch_ns_per_line_p95", touch.touch_ns_per_line_p95.is_none(), &few);
        let reason = "nothing is copied or prefetched at delivery, or too few blocks";
        let leaf = "touch_prepare_ns_per_line_p50";
        record.explain_null(leaf, touch.touch_prepare_ns_per_line_p50.is_none(), reason);
    }
    record.scan = Some(results);
    reader_report(record, report.reader);
    unmet_mode(record)
}

fn reader_report(record: &mut Record, reader: ReaderReport) {
    let ring = reader.backend != "pread";
    let effective = &mut record.effective;
    effective.direct = Some(if reader.direct { Direct::Required } else { Direct::Disabled });
    effective.direct_proof = reader.direct_proof;
    effective.alignment_bytes = Some(reader.alignment_bytes);
    let all_huge = reader.pool_bytes > 0 && reader.pool_huge_bytes >= reader.pool_bytes;
    effective.pool = Some(if all_huge { PoolKind::Huge } else { PoolKind::Normal });
    effective.delivery = Some(if reader.pages_lent > 0 { Delivery::ZeroCopy } else { Delivery::Copy });
    effective.pages_lent = Some(reader.pages_lent);
    effective.pool_bytes = Some(reader.pool_bytes);
    effective.pool_huge_bytes = Some(reader.pool_huge_bytes);
    effective.ring_flags = reader.ring_flags;
    effective.sq_entries = reader.sq_entries;
    effective.backend = Some(reader.backend);
    if record.asked.pool == PoolKind::Huge && !all_huge {
        record.warnings.push(format!(
            "huge pages back {} of the pool's {} bytes; /sys/kernel/mm/transparent_hugepage/enabled has to be 'madvise' or \
             'always', and memory free in pieces of 2 MiB",
            reader.pool_huge_bytes, reader.pool_bytes
        ));
    }

    record.ring.sqes = Some(reader.sqes);
    record.ring.enter_calls = Some(reader.enter_calls);
    record.ring.wakeups = reader.sqpoll.is_some().then_some(reader.wakeups);
    record.ring.cqes = Some(reader.cqes);
    record.ring.pread_calls = Some(reader.pread_calls);
    record.ring.short_reads = Some(reader.short_reads);
    record.ring.retries = Some(reader.retries);
    record.pages.pages_asked = Some(reader.pages_asked);
    record.pages.pages_from_window = Some(reader.pages_from_window);
    record.pages.pages_prefetched = Some(reader.pages_prefetched);
    record.pages.pages_wasted = Some(reader.pages_wasted);
    record.pages.bytes_read = Some(reader.bytes_read);

    if let Some(poller) = reader.sqpoll {
        record.effective.sqpoll_tid = Some(poller.tid);
        record.effective.sqpoll_cpus_allowed = Some(poller.cpus_allowed);
        record.times.sqpoll_work_s = poller.work_us.map(|us| us as f64 / 1e6);
        record.times.sqpoll_total_s = poller.total_us.map(|us| us as f64 / 1e6);
        let reason = "this kernel's fdinfo of a ring does not tell it (Linux 6.9 and later do)";
        record.explain_null("sqpoll_work_s", poller.work_us.is_none(), reason);
        record.explain_null("sqpoll_total_s", poller.total_us.is_none(), reason);
    } else {
        let leaves = ["sqpoll_tid", "sqpoll_cpus_allowed", "sqpoll_work_s", "sqpoll_total_s", "wakeups"];
        record.explain(&leaves, NO_POLLER);
    }
    record.explain_null("sq_entries", record.effective.sq_entries.is_none(), if ring { OWN_IO } else { NO_RING });
    let reason = "direct I/O was not asked for";
    record.explain_null("direct_proof", record.effective.direct_proof.is_none(), reason);
}

/// Compares what is in force with what was asked.
fn unmet_mode(record: &Record) -> Result<(), String> {
    let (asked, effective) = (&record.asked, &record.effective);
    let unmet = |axis: &str, asked: &str, in_force: &str| {
        Err(format!("mode not reached: {axis} {asked} was asked for, and {in_force} was in force"))
    };
    match &effective.backend {
        Some(backend) if backend != asked.backend.as_str() => return unmet("backend", asked.backend.as_str(), backend),
        _ => {}
    }
    match effective.direct {
        Some(direct) if direct != asked.direct => return unmet("direct", asked.direct.as_str(), direct.as_str()),
        _ => {}
    }
    // A list that cannot be read was refused before the run.
    let cpus = asked.cpus.as_ref().and_then(|list| list.parse().ok());
    let cpu = poller_cpu(asked, cpus.as_ref());
    match (cpu, &effective.sqpoll_cpus_allowed) {
        (Some(cpu), Some(allowed)) if *allowed != cpu.to_string() => {
            unmet("SQPOLL thread on CPU", &cpu.to_string(), &format!("CPU {allowed}"))
        }
        _ => Ok(()),
    }
}

/// Compares our own count of SQEs with the kernel's, where both are there.
pub fn cross_check_sqes(record: &mut Record) {
    if let (Some(ours), Some(traced)) = (record.ring.sqes, record.ring.sqes_traced)
        && ours != traced
    {
        record.warnings.push(format!("the reader submitted {ours} SQEs, and the kernel's tracepoint saw {traced}"));
    }
}

impl Record {
    /// Notes why `name` is `null`, if it is.
    fn explain_null(&mut self, name: &str, is_null: bool, reason: &str) {
        if is_null {
            self.explain(&[name], reason);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::record::tests::blank;
    use crate::page::report::SqpollReport;

    fn report(backend: &str) -> EngineReport {
        let reader = ReaderReport {
            backend: backend.to_owned(),
            sqes: 10,
            pool_bytes: 1 << 21,
            sqpoll: (backend == "uring-sqpoll").then(|| SqpollReport {
                tid: 7,
                cpus_allowed: "1".to_owned(),
                work_us: Some(1500),
                ..SqpollReport::default()
            }),
            ..ReaderReport::default()
        };
        EngineReport { reader: Some(reader), engine_version: "3".to_owned() }
    }

    #[test]
    fn the_mode_in_force_is_compared_with_the_one_asked() {
        let mut record = blank();
        assert_eq!(engine_report(&mut record, report("uring")), Ok(()));
        assert_eq!(record.effective.backend.as_deref(), Some("uring"));

        let mut record = blank();
        record.asked.backend = EngineBackend::UringSqpoll;
        let error = engine_report(&mut record, report("uring")).unwrap_err();
        assert_eq!(error, "mode not reached: backend uring-sqpoll was asked for, and uring was in force");

        let mut record = blank();
        record.asked.direct = Direct::Required;
        assert!(engine_report(&mut record, report("uring")).unwrap_err().contains("direct required was asked for"));

        let mut record = blank();
        let own = EngineReport { reader: None, ..report("uring") };
        assert!(engine_report(&mut record, own).unwrap_err().contains("own I/O was in force"));
    }

    #[test]
    fn the_poller_has_to_be_where_it_was_bound() {
        let mut record = blank();
        record.asked.backend = EngineBackend::UringSqpoll;
        record.asked.cpus = Some("0-1".to_owned());
        assert_eq!(engine_report(&mut record, report("uring-sqpoll")), Ok(()));
        assert_eq!(record.times.sqpoll_work_s, Some(0.0015));
        assert!(record.reasons.contains_key("sqpoll_total_s"));
        record.asked.cpus = Some("0".to_owned());
        let error = engine_report(&mut record, report("uring-sqpoll")).unwrap_err();
        assert!(error.contains("SQPOLL thread on CPU 0 was asked for, and CPU 1 was in force"), "{error}");
    }

    #[test]
    fn every_null_of_a_reader_and_of_own_io_has_its_reason() {
        for (backend, reader) in [
            (EngineBackend::Uring, "uring"),
            (EngineBackend::Pread, "pread"),
            (EngineBackend::UringSqpoll, "uring-sqpoll"),
            (EngineBackend::Builtin, ""),
        ] {
            let mut record = blank();
            record.asked.backend = backend;
            let mut report = report(reader);
            if reader.is_empty() {
                report.reader = None;
            } else if let Some(r) = report.reader.as_mut() {
                r.sq_entries = (reader != "pread").then_some(64);
            }
            engine_report(&mut record, report).unwrap();
            let others = "answer answer_ok cache cpus_allowed page_size_bytes journal_mode wall_s user_s system_s sqpoll_s iowq_s sqes_traced bios bios_merged \
                requests_allocated device_requests device_bytes diskstats_reads diskstats_reads_merged cycles instructions \
                cache_references cache_misses hardware_enabled_ns hardware_running_ns resident_pages_before \
                resident_pages_after file_pages";
            let others: Vec<&str> = others.split_whitespace().collect();
            let unexplained: Vec<String> =
                record.unexplained().into_iter().filter(|n| !others.contains(&n.as_str())).collect();
            assert_eq!(unexplained, Vec::<String>::new(), "{backend}");
        }
    }

    #[test]
    fn counts_of_sqes_that_disagree_are_a_warning() {
        let mut record = blank();
        record.ring.sqes = Some(5);
        cross_check_sqes(&mut record);
        record.ring.sqes_traced = Some(5);
        cross_check_sqes(&mut record);
        assert_eq!(record.warnings, Vec::<String>::new());
        record.ring.sqes_traced = Some(4);
        cross_check_sqes(&mut record);
        assert_eq!(record.warnings, ["the reader submitted 5 SQEs, and the kernel's tracepoint saw 4"]);
    }

    #[test]
    fn a_pool_without_huge_pages_says_so() {
        let mut record = blank();
        record.asked.pool = PoolKind::Huge;
        engine_report(&mut record, report("uring")).unwrap();
        assert_eq!(record.effective.pool, Some(PoolKind::Normal));
        assert!(record.warnings[0].starts_with("huge pages back 0 of the pool's 2097152 bytes"));
    }
}
