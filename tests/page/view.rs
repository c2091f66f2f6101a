//! Pages seen where they lie in the pool, and held while others are read.

use std::collections::VecDeque;

use ioscope::page::PageReader;
use ioscope::page::config::{BackendKind, Direct, ReaderConfig, Submit};
use ioscope::page::layout::HELD_MAX_PAGES;
use ioscope::page::reader::Ticket;

use crate::sample::{Random, file_of, walk};
use crate::suite::{open, proof_for};

#[test]
fn a_page_seen_in_the_pool_is_the_page_of_the_file() {
    let len = 4096 * 400 + 777;
    let (file, bytes) = file_of(len);
    let proof = proof_for(file.path());
    for &backend in BackendKind::ALL {
        for (direct, submit, window) in [
            (Direct::Disabled, Submit::PerPage, 0),
            (Direct::Disabled, Submit::Coalesced, 32),
            (Direct::Required, Submit::PerPage, 32),
            (Direct::Required, Submit::Coalesced, 256),
        ] {
            if direct == Direct::Required && proof.is_none() {
                continue;
            }
            let config =
                ReaderConfig { backend, direct, submit, window, sqpoll_idle_ms: 10, ..ReaderConfig::default() };
            let Some(mut reader) = open(file.path(), 4096, &config, proof.as_ref()) else { continue };
            for page in walk(len.div_ceil(4096) as u64, &mut Random(7)) {
                let offset = page as usize * 4096;
                let expected = &bytes[offset..(offset + 4096).min(len)];
                let same = reader.with_page(offset as u64, |seen| seen == expected).unwrap();
                assert!(same, "{config:?}: page {page}");
            }
            assert_eq!(reader.with_page(1 << 40, <[u8]>::len).unwrap(), 0, "behind the end");
        }
    }
}

#[test]
fn held_pages_keep_their_bytes_however_many_follow() {
    let len = 4096 * 1500 + 5;
    let (file, bytes) = file_of(len);
    let check = |reader: &PageReader, ticket: &Ticket, page: u64, what: &str| {
        let offset = page as usize * 4096;
        assert!(reader.view(ticket).unwrap() == &bytes[offset..(offset + 4096).min(len)], "{what}: page {page}");
    };
    for &backend in BackendKind::ALL {
        for (window, held_max) in [(0, 1), (0, 40), (1, 5), (4, 100), (32, 1), (32, 500), (512, 700), (4096, 9)] {
            let config = ReaderConfig { backend, window, in_flight: 2, sqpoll_idle_ms: 10, ..ReaderConfig::default() };
            let opened = PageReader::open_holding(file.path(), 4096, &config, None, held_max + 1);
            let mut reader = match opened {
                Ok(reader) => reader,
                Err(error) => {
                    ioscope::skipped!("held pages over {backend}: {error}");
                    continue;
                }
            };
            let what = format!("{backend} window {window} held {held_max}");
            let mut held: VecDeque<(Ticket, u64)> = VecDeque::new();
            for page in 0..len.div_ceil(4096) as u64 {
                held.push_back((reader.fetch(page * 4096).unwrap(), page));
                if held.len() > held_max as usize {
                    let (ticket, page) = held.pop_front().unwrap();
                    check(&reader, &ticket, page, &what);
                    reader.release(ticket);
                }
            }
            for (ticket, page) in held {
                check(&reader, &ticket, page, &what);
                reader.release(ticket);
            }
            let report = reader.report();
            assert_eq!(report.pages_wasted, 0, "{what}: a scan in order wastes nothing");
            assert_eq!(report.short_reads, 0);
        }
    }
    let config = ReaderConfig::default();
    let error = PageReader::open_holding(file.path(), 4096, &config, None, HELD_MAX_PAGES + 1).err().unwrap();
    assert!(error.to_string().contains("pages held: it is 0 to"), "{error}");
}

#[test]
fn more_tickets_than_there_is_room_for_are_refused_and_the_reader_goes_on() {
    let (file, bytes) = file_of(4096 * 64);
    let config = ReaderConfig { backend: BackendKind::Pread, window: 0, ..ReaderConfig::default() };
    let mut reader = PageReader::open(file.path(), 4096, &config, None).unwrap();
    let mut held = Vec::new();
    let error = loop {
        match reader.fetch(held.len() as u64 * 4096) {
            Ok(ticket) => held.push(ticket),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("busy"), "{error}");
    assert!(!held.is_empty());
    held.drain(..).for_each(|ticket| reader.release(ticket));
    assert!(reader.with_page(4096 * 63, |seen| seen == &bytes[4096 * 63..]).unwrap());
}
