//! One behaviour suite over every backend x direct x submit x page size x file size, and pairwise over the rest.

use std::path::Path;

use ioscope::page::PageReader;
use ioscope::page::config::{BackendKind, Direct, PoolKind, ReaderConfig, Submit};
use ioscope::page::direct::{DirectProof, prove};

use crate::pairwise;
use crate::sample::{Random, compare, file_of, walk};

const PAGE_SIZES: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];

/// Opens a reader, or says why this machine has none. Only what a machine may lack is skipped: a kernel without
/// io_uring, a file system without direct I/O.
pub fn open(path: &Path, page_size: u32, config: &ReaderConfig, proof: Option<&DirectProof>) -> Option<PageReader> {
    match PageReader::open(path, page_size, config, proof) {
        Ok(reader) => Some(reader),
        Err(error @ ioscope::page::PageError::Ring(_)) => {
            ioscope::skipped!("{} readers: {error}", config.backend);
            None
        }
        Err(error) => panic!("{config:?}: {error}"),
    }
}

/// A proof for `Direct::Required`, or `None` and a note where the file system has no direct I/O.
pub fn proof_for(path: &Path) -> Option<DirectProof> {
    prove(path).map_err(|error| ioscope::skipped!("direct readers: {error}")).ok()
}

#[test]
fn every_backend_gives_the_bytes_of_the_file() {
    // A whole number of pages of every size, and a number that is a multiple of nothing.
    let lens = [65_536 * 24, 65_536 * 17 + 4_096 * 3 + 777];
    let configs = pairwise::rows(&[5, 3, 3, 2]);
    let mut random = Random(42);
    let mut next = 0;
    for len in lens {
        let (file, bytes) = file_of(len);
        let proof = proof_for(file.path());
        for &backend in BackendKind::ALL {
            for &direct in Direct::ALL {
                if direct == Direct::Required && proof.is_none() {
                    continue;
                }
                for &submit in Submit::ALL {
                    for page_size in PAGE_SIZES {
                        let row = &configs[next % configs.len()];
                        next += 1;
                        let config = ReaderConfig {
                            backend,
                            direct,
                            submit,
                            window: [0, 1, 4, 32, 100][row[0]],
                            in_flight: [1, 4, 16][row[1]],
                            gap: [0, 8, 32][row[2]],
                            pool: [PoolKind::Normal, PoolKind::Huge][row[3]],
                            sqpoll_idle_ms: 10,
                            ..ReaderConfig::default()
                        };
                        let Some(mut reader) = open(file.path(), page_size, &config, proof.as_ref()) else { continue };
                        let pages = len.div_ceil(page_size as usize) as u64;
                        let walk = walk(pages, &mut random);
                        compare(&mut reader, page_size as usize, &bytes, &walk, &format!("{page_size} {config:?}"));
                        let report = reader.report();
                        assert_eq!(report.backend, backend.as_str());
                        assert_eq!(report.direct, direct == Direct::Required);
                        assert_eq!(report.pages_asked, walk.len() as u64, "{config:?}");
                        assert_eq!(report.sqes > 0, backend != BackendKind::Pread);
                        assert_eq!(report.sqpoll.is_some(), backend == BackendKind::UringSqpoll);
                    }
                }
            }
        }
    }
}

#[test]
fn every_pair_of_the_other_axes_gives_the_bytes_of_the_file() {
    let (file, bytes) = file_of(4096 * 700 + 1234);
    let backends = BackendKind::ALL;
    let windows = [0, 1, 2, 7, 32, 256];
    let in_flights = [1, 2, 4, 16];
    let gaps = [0, 1, 8, 32];
    let sizes = [backends.len(), Submit::ALL.len(), windows.len(), in_flights.len(), gaps.len(), PoolKind::ALL.len()];
    let mut random = Random(7);
    for row in pairwise::rows(&sizes) {
        let config = ReaderConfig {
            backend: backends[row[0]],
            submit: Submit::ALL[row[1]],
            window: windows[row[2]],
            in_flight: in_flights[row[3]],
            gap: gaps[row[4]],
            pool: PoolKind::ALL[row[5]],
            sqpoll_idle_ms: 10,
            ..ReaderConfig::default()
        };
        let Some(mut reader) = open(file.path(), 4096, &config, None) else { continue };
        compare(&mut reader, 4096, &bytes, &walk(701, &mut random), &format!("{config:?}"));
    }
}

#[test]
fn a_scan_reads_each_page_once_and_waits_for_few() {
    let pages = 2_000_u64;
    let (file, bytes) = file_of(4096 * pages as usize);
    let scan: Vec<u64> = (0..pages).collect();
    for &submit in Submit::ALL {
        let config = ReaderConfig { submit, window: 32, ..ReaderConfig::default() };
        let Some(mut reader) = open(file.path(), 4096, &config, None) else { return };
        compare(&mut reader, 4096, &bytes, &scan, "scan");
        let report = reader.report();
        assert_eq!(report.bytes_read, pages * 4096, "{submit}: each page is read once");
        assert_eq!(report.pages_wasted, 0, "{submit}");
        assert!(report.pages_from_window >= pages - 8, "{submit}: {report:?}");
        match submit {
            Submit::PerPage => assert_eq!(report.sqes, pages),
            Submit::Coalesced => assert!(report.sqes < pages / 25, "{report:?}"),
        }
    }
}

#[test]
fn window_0_is_one_sqe_and_one_enter_a_page() {
    let (file, bytes) = file_of(4096 * 300);
    let config = ReaderConfig { window: 0, ..ReaderConfig::default() };
    let Some(mut reader) = open(file.path(), 4096, &config, None) else { return };
    compare(&mut reader, 4096, &bytes, &(0..300).collect::<Vec<_>>(), "window 0");
    let report = reader.report();
    assert_eq!((report.sqes, report.pages_prefetched), (300, 0));
    // A read that is interrupted is waited for again.
    assert!((300..310).contains(&report.enter_calls), "{report:?}");
}

#[test]
fn random_reads_are_not_read_ahead_of() {
    let pages = 20_000;
    let (file, bytes) = file_of(4096 * pages);
    let config = ReaderConfig { gap: 0, ..ReaderConfig::default() };
    let Some(mut reader) = open(file.path(), 4096, &config, None) else { return };
    let mut random = Random(3);
    // Never two neighbours in the order asked: every other page only.
    let walk: Vec<u64> = (0..2_000).map(|_| random.below(pages as u64 / 2) * 2).collect();
    compare(&mut reader, 4096, &bytes, &walk, "random");
    assert_eq!(reader.report().pages_prefetched, 0);
}

#[test]
fn what_was_read_ahead_is_dropped_on_demand_and_growth_is_seen() {
    use std::os::unix::fs::FileExt;
    let (file, bytes) = file_of(4096 * 64);
    for &backend in BackendKind::ALL {
        let config = ReaderConfig { backend, sqpoll_idle_ms: 10, ..ReaderConfig::default() };
        file.as_file().write_all_at(&bytes, 0).unwrap();
        file.as_file().set_len(bytes.len() as u64).unwrap();
        let Some(mut reader) = open(file.path(), 4096, &config, None) else { continue };
        compare(&mut reader, 4096, &bytes, &[0, 1, 2, 3, 4, 5], "before");
        let new = vec![0xAB; bytes.len() + 5000];
        file.as_file().write_all_at(&new, 0).unwrap();
        reader.invalidate().unwrap();
        let pages: Vec<u64> = (0..(new.len().div_ceil(4096)) as u64).collect();
        compare(&mut reader, 4096, &new, &pages, "after a writer");
        file.as_file().set_len(4096 * 3 + 5).unwrap();
        reader.invalidate().unwrap();
        compare(&mut reader, 4096, &new[..4096 * 3 + 5], &[0, 1, 2, 3, 4, 40], "after truncation");
    }
}

#[test]
fn settings_out_of_range_and_missing_proofs_are_errors() {
    let (file, _) = file_of(4096);
    let bad = |config: ReaderConfig, page_size: u32| {
        PageReader::open(file.path(), page_size, &config, None).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let base = ReaderConfig { backend: BackendKind::Pread, ..ReaderConfig::default() };
    assert!(bad(ReaderConfig { window: 4097, ..base.clone() }, 4096).contains("0 to 4096"));
    assert!(bad(ReaderConfig { in_flight: 0, ..base.clone() }, 4096).contains("1 to 16"));
    assert!(bad(ReaderConfig { in_flight: 17, ..base.clone() }, 4096).contains("1 to 16"));
    assert!(bad(ReaderConfig { gap: 33, ..base.clone() }, 4096).contains("0 to 32"));
    assert!(bad(ReaderConfig { window: 4096, in_flight: 16, ..base.clone() }, 65_536).contains("MiB"));
    assert!(bad(base.clone(), 1000).contains("power of two"));
    assert!(bad(ReaderConfig { direct: Direct::Required, ..base.clone() }, 4096).contains("not proven"));
    let missing = PageReader::open(Path::new("/nonexistent/x.db"), 4096, &base, None).err().unwrap().to_string();
    assert!(missing.contains("/nonexistent/x.db"), "{missing}");
    // A proof for another file is none for this one.
    let (other, _) = file_of(8192);
    if let Some(proof) = proof_for(other.path()) {
        let config = ReaderConfig { direct: Direct::Required, ..base };
        assert!(PageReader::open(file.path(), 4096, &config, Some(&proof)).is_err());
    }
}

#[test]
fn a_poller_is_bound_where_it_was_asked_to_be() {
    let (file, bytes) = file_of(4096 * 64);
    let allowed = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    let cpu = (0..nix::sched::CpuSet::count()).rev().find(|&cpu| allowed.is_set(cpu).unwrap_or(false)).unwrap();
    let config = ReaderConfig {
        backend: BackendKind::UringSqpoll,
        sqpoll_cpu: Some(cpu as u32),
        sqpoll_idle_ms: 10,
        ..ReaderConfig::default()
    };
    let Some(mut reader) = open(file.path(), 4096, &config, None) else { return };
    compare(&mut reader, 4096, &bytes, &(0..64).collect::<Vec<_>>(), "bound poller");
    let report = reader.report();
    assert!(report.ring_flags.iter().any(|flag| flag == "IORING_SETUP_SQ_AFF"));
    let poller = report.sqpoll.unwrap();
    assert_eq!(poller.cpus_allowed, cpu.to_string());
    assert!(poller.tid > 0 && poller.cpu_ns > 0, "{poller:?}");
}

#[test]
fn a_poller_that_cannot_be_had_is_an_error_and_never_a_plain_ring() {
    let (file, _) = file_of(4096 * 4);
    // A CPU that no machine has: the kernel refuses the poller.
    let config =
        ReaderConfig { backend: BackendKind::UringSqpoll, sqpoll_cpu: Some(1 << 20), ..ReaderConfig::default() };
    let error = PageReader::open(file.path(), 4096, &config, None).err().expect("a poller on no CPU").to_string();
    assert!(error.contains("io_uring_setup"), "{error}");
}
