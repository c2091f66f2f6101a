//! The block reader: the right bytes in the right slots, over every backend and whatever goes wrong below.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ioscope::page::blocks::{BlockReader, WaitMode};
use ioscope::page::config::{BackendKind, Direct, PoolKind, ReaderConfig};
use ioscope::page::direct::DirectProof;
use ioscope::page::pool::Pool;
use ioscope::page::report::ReaderReport;
use ioscope::page::{PageError, uring};
use proptest::prelude::*;

use crate::faults::{Faults, Faulty};
use crate::sample::{Random, file_of};
use crate::suite::proof_for;

fn open(
    path: &Path,
    block: u32,
    slots: u32,
    config: &ReaderConfig,
    proof: Option<&DirectProof>,
) -> Option<BlockReader> {
    match BlockReader::open(path, block, slots, config, proof) {
        Ok(reader) => Some(reader),
        Err(error @ PageError::Ring(uring::RingError::Setup { .. })) => {
            ioscope::skipped!("{} block readers: {error}", config.backend);
            None
        }
        Err(error) => panic!("{config:?}: {error}"),
    }
}

/// Makes `reads` reads of blocks at random, at most `depth` in flight, and compares each with `bytes`.
fn read_and_compare(reader: &mut BlockReader, block: u32, bytes: &[u8], reads: u64, depth: usize, wait: WaitMode) {
    let blocks = bytes.len().div_ceil(block as usize) as u64;
    let mut random = Random(reads ^ u64::from(block));
    let (mut queued, mut seen, mut ended) = (0, 0, Vec::new());
    while seen < reads {
        while queued < reads && reader.under_way() < depth {
            let Some(_) = reader.queue(random.below(blocks) * u64::from(block)) else { break };
            queued += 1;
        }
        reader.turn(1, wait, &mut ended).unwrap();
        assert!(!ended.is_empty() && ended.len() <= depth);
        for slot in ended.drain(..) {
            let offset = reader.offset(slot).unwrap() as usize;
            let expected = &bytes[offset..(offset + block as usize).min(bytes.len())];
            assert!(reader.block(slot).unwrap() == expected, "block at {offset}");
            reader.release(slot);
            assert!(reader.block(slot).is_err(), "a released slot has no bytes");
            seen += 1;
        }
    }
    assert_eq!(reader.under_way(), 0);
}

#[test]
fn every_backend_gives_the_bytes_and_counts_exactly() {
    let (file, bytes) = file_of(4096 * 700 + 777);
    let proof = proof_for(file.path());
    for &backend in BackendKind::ALL {
        for &direct in Direct::ALL {
            if direct == Direct::Required && proof.is_none() {
                continue;
            }
            for (block, slots, wait, pool) in [
                (512, 1, WaitMode::Sleep, PoolKind::Normal),
                (4096, 1, WaitMode::Spin, PoolKind::Huge),
                (4096, 32, WaitMode::Sleep, PoolKind::Normal),
                (4096, 128, WaitMode::Spin, PoolKind::Normal),
                (65_536, 7, WaitMode::Sleep, PoolKind::Huge),
                (1 << 20, 3, WaitMode::Spin, PoolKind::Normal),
            ] {
                let config = ReaderConfig { backend, direct, pool, sqpoll_idle_ms: 10, ..ReaderConfig::default() };
                let Some(mut reader) = open(file.path(), block, slots, &config, proof.as_ref()) else { continue };
                read_and_compare(&mut reader, block, &bytes, 500, slots as usize, wait);
                let report = reader.report();
                assert_eq!(report.backend, backend.as_str());
                assert_eq!(report.direct, direct == Direct::Required);
                assert_eq!(report.pages_asked, 500);
                let (ring, pread) = if backend == BackendKind::Pread { (0, 500) } else { (500, 0) };
                let again = report.short_reads + report.retries;
                assert_eq!((report.sqes, report.cqes), (ring + again, ring + again), "{config:?}");
                assert_eq!(report.pread_calls, pread);
                assert!(report.wakeups <= report.enter_calls);
            }
        }
    }
}

#[test]
fn a_slot_is_given_out_once_until_it_is_released() {
    let (file, _) = file_of(4096 * 8);
    let config = ReaderConfig { backend: BackendKind::Pread, ..ReaderConfig::default() };
    let mut reader = open(file.path(), 4096, 3, &config, None).unwrap();
    let slots: Vec<usize> = (0..3).map(|i| reader.queue(i * 4096).unwrap()).collect();
    assert_eq!(reader.queue(0), None);
    reader.release(slots[0]);
    assert_eq!(reader.queue(0), None, "a slot that is being read cannot be released");
    let mut ended = Vec::new();
    reader.turn(3, WaitMode::Sleep, &mut ended).unwrap();
    assert_eq!(ended.len(), 3);
    assert_eq!(reader.queue(0), None, "an ended slot is not free before it is released");
    reader.release(slots[1]);
    reader.release(slots[1]);
    assert_eq!(reader.queue(4096), Some(slots[1]));
    assert_eq!(reader.queue(0), None, "released twice, free once");
    reader.release(99);
    assert!(reader.block(99).is_err());
}

#[test]
fn a_wait_for_nothing_returns() {
    let (file, _) = file_of(4096);
    for &backend in BackendKind::ALL {
        let config = ReaderConfig { backend, sqpoll_idle_ms: 10, ..ReaderConfig::default() };
        let Some(mut reader) = open(file.path(), 4096, 4, &config, None) else { continue };
        for &wait in WaitMode::ALL {
            let mut ended = Vec::new();
            reader.turn(4, wait, &mut ended).unwrap();
            assert_eq!(ended, Vec::<usize>::new());
        }
    }
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let (file, _) = file_of(4096);
    let config = ReaderConfig { backend: BackendKind::Pread, ..ReaderConfig::default() };
    for (block, slots, expected) in [
        (0, 1, "block 0: it is a power of two"),
        (4095, 1, "block 4095"),
        (2 << 20, 1, "block 2097152"),
        (4096, 0, "0 blocks at once"),
        (4096, 40_000, "40000 blocks at once"),
        (1 << 20, 2000, "choose a smaller --depth or --block"),
    ] {
        let error = BlockReader::open(file.path(), block, slots, &config, None).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let direct = ReaderConfig { direct: Direct::Required, ..config };
    assert!(matches!(BlockReader::open(file.path(), 4096, 1, &direct, None), Err(PageError::Unproven { .. })));
    let unaligned = BlockReader::with_backend(
        Box::new(Faulty::new(
            file.path(),
            Pool::new(4096, PoolKind::Normal).unwrap(),
            Faults { alignment: 4096, ..Faults::default() },
            &Arc::default(),
        )),
        512,
        1,
        ReaderReport { alignment_bytes: 4096, ..ReaderReport::default() },
    );
    assert!(unaligned.err().unwrap().to_string().contains("multiple of 4096"));
}

#[test]
fn dropped_with_reads_in_flight_the_reader_waits_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // Reads of a pipe end when somebody writes to it, so the test decides when the kernel is done with the pool.
    let mut pipe = File::options().read(true).write(true).open(&fifo).unwrap();
    for backend in [BackendKind::Uring, BackendKind::UringSqpoll] {
        let config = ReaderConfig { backend, sqpoll_idle_ms: 10, ..ReaderConfig::default() };
        let Some(mut reader) = open(&fifo, 512, 4, &config, None) else { return };
        (0..4).for_each(|_| assert!(reader.queue(0).is_some()));
        reader.turn(0, WaitMode::Sleep, &mut Vec::new()).unwrap();
        assert_eq!(reader.under_way(), 4);
        let dropping = std::thread::spawn(move || drop(reader));
        // One-sided: a slow machine can only make a wrong reader pass.
        std::thread::sleep(Duration::from_millis(100));
        assert!(!dropping.is_finished(), "{backend}: the pool was given up while the kernel could write to it");
        pipe.write_all(&[7; 4 * 512]).unwrap();
        dropping.join().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn bytes_and_slots_survive_whatever_the_kernel_does(
        short in 0_u64..40, interrupted in 0_u64..20, again in 0_u64..20, reorder: bool, late: bool, seed: u64,
        slots in 1_u32..40, block in prop::sample::select(vec![512_u32, 4096, 16_384]),
        alignment in prop::sample::select(vec![1_u64, 512]), tail in 0_usize..5000, spin: bool,
    ) {
        let (file, bytes) = file_of(4096 * 60 + tail);
        let faults = Faults { short, interrupted, again, reorder, late: late && !spin, alignment, seed, bad_byte: None };
        let interruptions = Arc::new(AtomicU64::new(0));
        let pool = Pool::new((slots * block) as usize, PoolKind::Normal).unwrap();
        let report = ReaderReport { alignment_bytes: alignment as u32, ..ReaderReport::default() };
        let faulty = Faulty::new(file.path(), pool, faults, &interruptions);
        let mut reader = BlockReader::with_backend(Box::new(faulty), block, slots, report).unwrap();
        let wait = if spin { WaitMode::Spin } else { WaitMode::Sleep };
        read_and_compare(&mut reader, block, &bytes, 200, slots as usize, wait);
        prop_assert_eq!(reader.report().retries, interruptions.load(Ordering::Relaxed));
    }
}

#[test]
fn a_bad_block_fails_alone_and_says_where() {
    let (file, bytes) = file_of(4096 * 20);
    let faults = Faults { alignment: 1, bad_byte: Some((4096 * 7 + 5, u32::MAX)), reorder: true, ..Faults::default() };
    let pool = Pool::new(4096 * 20, PoolKind::Normal).unwrap();
    let faulty = Faulty::new(file.path(), pool, faults, &Arc::default());
    let mut reader = BlockReader::with_backend(Box::new(faulty), 4096, 20, ReaderReport::default()).unwrap();
    (0..20).for_each(|block| assert!(reader.queue(block * 4096).is_some()));
    let mut ended = Vec::new();
    reader.turn(20, WaitMode::Sleep, &mut ended).unwrap();
    for slot in ended {
        let offset = reader.offset(slot).unwrap() as usize;
        match reader.block(slot) {
            Ok(block) => assert!(offset != 4096 * 7 && block == &bytes[offset..offset + 4096]),
            Err(error) => {
                assert_eq!(offset, 4096 * 7);
                assert!(error.to_string().contains("read 4096 bytes at 28672"), "{error}");
            }
        }
    }
}
