//! What a child process does: one run, the same steps in the same order for every cell.

mod scan;

use std::path::Path;
use std::time::Instant;

use super::compose;
use super::cpus::{self, CpuList};
use super::record::{Asked, CacheState, Record};
use super::spec::{FAILED, RunSpec, Workload};
use crate::dataset;
use crate::engine::{self, EngineBackend, EngineKind, EngineReport, EngineSpec};
use crate::measure::environment::Environment;
use crate::measure::sampler::Sampler;
use crate::measure::{Measured, Watch, WatchOptions, residency};
use crate::page::config::{BackendKind, Direct, ReaderConfig};
use crate::page::direct::{self, DirectProof};
use crate::workload::answer::{self, Verdict};
use crate::workload::database::{self, Header};
use crate::workload::query::{self, Query, Rows};

/// Reason of a verdict that is `null`.
const NO_KNOWN_ANSWER: &str = "no answer is known for this query on this database";

/// Carries out one run in this process. A run that fails is a record with its reason.
pub fn run(spec: &RunSpec) -> Record {
    let mut record = spec.blank_record();
    let path = spec.database_path();
    if let Err(error) = measure(spec, &path, &mut record) {
        record.error = Some(error);
    }
    record.environment = Environment::read(Some(&path));
    if record.error.is_some() {
        record.explain_rest(FAILED);
    }
    record
}

/// An error as one line.
fn text(error: impl std::error::Error + 'static) -> String {
    super::error_line(&error)
}

/// The steps. Whatever opens and closes the database comes before the engine opens it or after it has closed it:
/// closing a descriptor drops the engine's POSIX locks.
fn measure(spec: &RunSpec, path: &Path, record: &mut Record) -> Result<(), String> {
    match (&spec.workload, spec.asked.engine) {
        (Workload::Query(asked), Some(engine)) => measure_query(spec, asked, engine, path, record),
        (Workload::Query(_), None) => {
            Err("a query, and no engine to answer it: the specification is broken".to_owned())
        }
        (Workload::Scan, _) => scan::measure(spec, path, record),
    }
}

fn measure_query(
    spec: &RunSpec,
    asked_query: &Query,
    engine: EngineKind,
    path: &Path,
    record: &mut Record,
) -> Result<(), String> {
    let cpus = confine(spec, record)?;
    let header = database::check(path).map_err(|error| format!("{error}; {}", error.help()))?.header;
    record.effective.page_size_bytes = Some(header.page_size_bytes);
    record.effective.journal_mode = Some(if header.wal_mode { "wal" } else { "rollback" }.to_owned());
    let direct_proof = proof(spec, path)?;
    // Before any ring or thread exists: perf counters are inherited by what is started later, and by that only.
    let mut watch = Watch::open(&WatchOptions { counters: spec.counted, file: path.to_owned() });
    prepare_cache(spec, path, record)?;

    let engine_spec = engine_spec(spec, engine, &header, cpus.as_ref(), direct_proof);
    watch.start();
    let begin = Instant::now();
    let sampler = sampler(spec, &watch)?;
    let mut engine = engine::open(&engine_spec).map_err(text)?;
    let (rows, end) = query::ask(engine.as_mut(), asked_query).map_err(text)?;
    watch.sample_threads();
    let report = engine.close().map_err(text)?;
    samples(sampler, record)?;
    let measured = watch.stop();

    record.times.wall_s = Some(end.duration_since(begin).as_secs_f64());
    resident_after(path, record);
    compose_and_judge(&asked_query.sql, path, record, &rows, report, measured)
}

fn confine(spec: &RunSpec, record: &mut Record) -> Result<Option<CpuList>, String> {
    let cpus: Option<CpuList> = match &spec.asked.cpus {
        Some(list) => Some(list.parse().map_err(text)?),
        None => None,
    };
    if let Some(cpus) = &cpus {
        cpus.confine().map_err(text)?;
    }
    match cpus::allowed_list() {
        Ok(list) => record.effective.cpus_allowed = Some(list),
        Err(errno) => record.explain(&["cpus_allowed"], &format!("sched_getaffinity failed: {errno}")),
    }
    Ok(cpus)
}

/// Starts the samples that the run asks for.
fn sampler(spec: &RunSpec, watch: &Watch) -> Result<Option<Sampler>, String> {
    let device = watch.device().cloned().map_err(str::to_owned);
    spec.sample.map(|interval| Sampler::start(interval.get(), device)).transpose()
}

/// Ends the samples, and keeps them.
fn samples(sampler: Option<Sampler>, record: &mut Record) -> Result<(), String> {
    let Some(sampler) = sampler else { return Ok(()) };
    let sampled = sampler.stop()?;
    for (name, reason) in &sampled.reasons {
        record.explain(&[name], reason);
    }
    record.samples = Some(sampled.samples);
    record.sampling = Some(sampled.sampling);
    Ok(())
}

fn proof(spec: &RunSpec, path: &Path) -> Result<Option<DirectProof>, String> {
    match spec.asked.direct {
        Direct::Required => direct::prove(path).map(Some).map_err(text),
        Direct::Disabled => Ok(None),
    }
}

fn resident_after(path: &Path, record: &mut Record) {
    match residency::resident_pages(path) {
        Ok(after) => record.residency.resident_pages_after = Some(after.resident),
        Err(error) => record.explain(&["resident_pages_after"], &text(error)),
    }
}

/// Brings the page cache into the state asked for, and proves it. Direct reads bypass the page cache: for them a state
/// that cannot be proven is a warning and not a failure.
fn prepare_cache(spec: &RunSpec, path: &Path, record: &mut Record) -> Result<(), String> {
    let made = match spec.asked.cache {
        CacheState::Cold => residency::make_cold(path),
        CacheState::Warm => residency::make_warm(path),
    };
    match made.and_then(|_| residency::resident_pages(path)) {
        Ok(before) => {
            record.residency.resident_pages_before = Some(before.resident);
            record.residency.file_pages = Some(before.total);
            record.effective.cache = match spec.asked.cache {
                CacheState::Cold if before.resident == 0 => Some(CacheState::Cold),
                CacheState::Warm if before.resident >= before.total => Some(CacheState::Warm),
                state => {
                    let reason = format!("{} of {} pages were resident: not {state}", before.resident, before.total);
                    record.explain(&["cache"], &reason);
                    return unproven(spec, record, &reason);
                }
            };
            Ok(())
        }
        Err(error) => {
            let reason = text(error);
            record.explain(&["cache", "resident_pages_before", "file_pages"], &reason);
            unproven(spec, record, &reason)
        }
    }
}

fn unproven(spec: &RunSpec, record: &mut Record, reason: &str) -> Result<(), String> {
    match spec.asked.direct {
        Direct::Required => {
            record.warnings.push(format!("{reason} (direct reads bypass the page cache)"));
            Ok(())
        }
        Direct::Disabled => Err(format!("cache {} was not reached: {reason}", spec.asked.cache)),
    }
}

fn engine_spec(
    spec: &RunSpec,
    engine: EngineKind,
    header: &Header,
    cpus: Option<&CpuList>,
    direct_proof: Option<DirectProof>,
) -> EngineSpec {
    EngineSpec {
        kind: engine,
        backend: spec.asked.backend,
        reader: reader_config(&spec.asked, cpus),
        direct_proof,
        page_size: header.page_size_bytes,
        path: spec.database_path(),
    }
}

fn reader_config(asked: &Asked, cpus: Option<&CpuList>) -> ReaderConfig {
    let backend = match asked.backend {
        EngineBackend::Pread => BackendKind::Pread,
        EngineBackend::UringSqpoll => BackendKind::UringSqpoll,
        // Where the engine's own I/O reads, the reader's settings are ignored.
        EngineBackend::Uring | EngineBackend::Builtin | EngineBackend::BuiltinUring => BackendKind::Uring,
    };
    ReaderConfig {
        backend,
        direct: asked.direct,
        submit: asked.submit,
        policy: asked.policy,
        window: asked.window,
        in_flight: asked.in_flight,
        gap: asked.gap,
        pool: asked.pool,
        delivery: asked.delivery,
        sqpoll_cpu: compose::poller_cpu(asked, cpus),
        sqpoll_idle_ms: asked.sqpoll_idle_ms,
    }
}

/// Fills the record, then says what of it is not as asked.
fn compose_and_judge(
    sql: &str,
    path: &Path,
    record: &mut Record,
    rows: &Rows,
    report: EngineReport,
    measured: Measured,
) -> Result<(), String> {
    compose::measured(record, measured);
    let unmet = compose::engine_report(record, report);
    compose::cross_check_sqes(record);
    if !rows.is_whole() {
        let reason = format!("{} rows, of which no more than {} are kept", rows.count, query::ANSWER_MAX_ROWS);
        record.explain(&["answer", "answer_ok"], &reason);
        return unmet;
    }
    record.answer = Some(answer::format_rows(&rows.kept));
    let verdict = answer::known_query(sql)
        .and_then(|number| answer::check(number, dataset::manifest_of(path).as_ref(), &rows.kept));
    match verdict {
        None => {
            record.explain(&["answer_ok"], NO_KNOWN_ANSWER);
            unmet
        }
        Some(Verdict::Right) => {
            record.answer_ok = Some(true);
            unmet
        }
        Some(Verdict::Wrong(what)) => {
            record.answer_ok = Some(false);
            Err(format!("wrong answer: {what}"))
        }
    }
}
