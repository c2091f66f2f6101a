//! The steps of a scan's run: those of a query's, with the reader alone in the place of the engine.

use std::path::Path;

use super::{compose, confine, prepare_cache, proof, reader_config, resident_after, sampler, samples, text};
use crate::experiment::cpus::CpuList;
use crate::experiment::record::Record;
use crate::experiment::spec::RunSpec;
use crate::measure::{Watch, WatchOptions};
use crate::workload::scan::{Prepared, ScanAxes, ScanSpec, sample};

pub(super) fn measure(spec: &RunSpec, path: &Path, record: &mut Record) -> Result<(), String> {
    let axes = spec.asked.scan.ok_or("a scan without its axes: the specification is broken")?;
    let cpus = confine(spec, record)?;
    let reader = reader_config(&spec.asked, cpus.as_ref());
    let scan = ScanSpec { axes, reader, thread_cpus: thread_cpus(&axes, cpus.as_ref()) };
    scan.axes.check(scan.reader.backend).map_err(text)?;
    record.effective.page_size_bytes = Some(axes.block_bytes);
    let direct_proof = proof(spec, path)?;
    // Before any ring or thread exists: perf counters are inherited by what is started later, and by that only.
    let mut watch = Watch::open(&WatchOptions { counters: spec.counted, file: path.to_owned() });
    prepare_cache(spec, path, record)?;

    // Pools and rings are there before the phase begins: it is reads that are measured, not their preparation.
    let prepared = Prepared::open(&scan, path, direct_proof.as_ref()).map_err(text)?;
    watch.start();
    let sampler = sampler(spec, &watch)?;
    let finished = prepared.run().map_err(text)?;
    samples(sampler, record)?;
    // No read is in flight any more; the rings stay open until their pollers have been read.
    watch.sample_threads();
    let measured = watch.stop();
    let report = finished.close().map_err(text)?;

    resident_after(path, record);
    compose::measured(record, measured);
    record.answer = Some(report.answer());
    let compared = sample::compare(path, &report.samples);
    let unmet = compose::scan_report(record, report);
    compose::cross_check_sqes(record);
    match compared {
        Ok(Ok(_)) => {
            record.answer_ok = Some(true);
            unmet
        }
        Ok(Err(mismatch)) => {
            record.answer_ok = Some(false);
            Err(format!("wrong bytes: {mismatch}"))
        }
        Err(error) => {
            record.explain(&["answer_ok"], &format!("the sampled blocks could not be read again: {}", text(error)));
            unmet
        }
    }
}

/// CPUs to bind threads to: one each, where several threads are confined to several CPUs.
fn thread_cpus(axes: &ScanAxes, cpus: Option<&CpuList>) -> Vec<usize> {
    match cpus {
        Some(list) if axes.threads > 1 && list.cpus().len() > 1 => list.cpus().to_owned(),
        _ => Vec::new(),
    }
}
