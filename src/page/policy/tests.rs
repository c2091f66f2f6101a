//! Properties that hold for any order in which pages are asked for.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Asks for `pages` one after the other, takes every batch that is wanted, and returns the batches.
fn drive(policy: &mut Sequential, pages: &[u64], end: u64) -> Vec<Range<u64>> {
    let mut batches = Vec::new();
    for &page in pages {
        policy.asked(page);
        while let Some(batch) = policy.next(end) {
            policy.started(&batch);
            batches.push(batch);
        }
    }
    batches
}

fn any_walk() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(
        prop_oneof![
            (0_u64..500).prop_map(|page| vec![page]),
            (0_u64..500, 1_u64..60).prop_map(|(from, count)| (from..from + count).collect()),
            (0_u64..500, 1_u64..30, 1_u64..6)
                .prop_map(|(from, count, step)| { (0..count).map(|i| from + i * step).collect() }),
        ],
        0..20,
    )
    .prop_map(|runs| runs.concat())
}

proptest! {
    #[test]
    fn batches_are_bounded_and_follow_the_cursor(
        walk in any_walk(), window in 0_u32..600, in_flight in 1_u32..=16, gap in 0_u32..=32, end in 1_u64..700,
    ) {
        let mut policy = Sequential::new(window, in_flight, gap);
        for &page in &walk {
            policy.asked(page);
            let mut taken = 0;
            while let Some(batch) = policy.next(end) {
                prop_assert!(batch.start < batch.end && batch.end <= end, "{batch:?} beyond {end}");
                prop_assert!(batch.end - batch.start <= u64::from(window), "{batch:?}");
                prop_assert!(batch.start >= page, "{batch:?} lies behind {page}");
                let ahead_max = u64::from(window) * (u64::from(in_flight) + 1);
                prop_assert!(batch.end <= page + 1 + ahead_max, "{batch:?} is too far from {page}");
                policy.started(&batch);
                taken += 1;
                prop_assert!(taken <= 1_000, "no end of batches");
            }
        }
    }

    #[test]
    fn a_refused_batch_is_offered_again(walk in any_walk(), window in 1_u32..100) {
        let mut policy = Sequential::new(window, 4, 8);
        for &page in &walk {
            policy.asked(page);
            prop_assert_eq!(policy.next(10_000), policy.next(10_000));
        }
    }

    #[test]
    fn a_scan_is_read_once_without_gaps(window in 1_u32..300, in_flight in 1_u32..=16, end in 3_u64..3_000) {
        let mut policy = Sequential::new(window, in_flight, 0);
        let batches = drive(&mut policy, &(0..end).collect::<Vec<_>>(), end);
        let mut next = 1;
        for batch in batches {
            prop_assert_eq!(batch.start, next);
            next = batch.end;
        }
        prop_assert_eq!(next, end);
    }

    #[test]
    fn pages_far_apart_are_not_read_ahead_of(count in 1_u64..100, gap in 0_u32..=32, window in 0_u32..=4096) {
        let step = u64::from(gap) + 2;
        let pages: Vec<u64> = (0..count).map(|i| i * step).collect();
        prop_assert!(drive(&mut Sequential::new(window, 4, gap), &pages, u64::MAX).is_empty());
        let backwards: Vec<u64> = (0..count).rev().collect();
        prop_assert!(drive(&mut Sequential::new(window, 4, gap), &backwards, u64::MAX).is_empty());
    }

    #[test]
    fn two_scans_at_once_are_both_followed(window in 1_u32..100, offset in 2_000_u64..5_000) {
        let pages: Vec<u64> = (0..500).flat_map(|i| [i, offset + i]).collect();
        let batches = drive(&mut Sequential::new(window, 2, 0), &pages, u64::MAX);
        let read: BTreeSet<u64> = batches.into_iter().flatten().collect();
        let missed = (1..500).flat_map(|i| [i, offset + i]).filter(|page| !read.contains(page)).count();
        prop_assert_eq!(missed, 0);
    }
}

#[test]
fn a_stream_starts_small_and_rises_fast() {
    let mut policy = Sequential::new(256, 4, 0);
    let batches = drive(&mut policy, &(0..100).collect::<Vec<_>>(), u64::MAX);
    assert_eq!(batches[0], 1..5);
    let sizes: Vec<u64> = batches.iter().map(|batch| batch.end - batch.start).collect();
    assert!(sizes.windows(2).all(|pair| pair[0] <= pair[1]), "{sizes:?}");
    assert_eq!(sizes.last(), Some(&256));
    // The batch being consumed, and four in flight.
    assert!(batches.last().unwrap().end <= 100 + 5 * 256 && batches.last().unwrap().end > 99 + 4 * 256);
}

#[test]
fn a_page_further_on_is_served_without_moving_the_stream() {
    let mut policy = Sequential::new(32, 4, 8);
    drive(&mut policy, &(0..100).collect::<Vec<_>>(), u64::MAX);
    let cursor = policy.streams[0].clone();
    // An interior page, 90 pages ahead, and one far behind.
    assert!(drive(&mut policy, &[190, 3], u64::MAX).is_empty());
    assert_eq!((policy.streams[0].cursor, policy.streams[0].next), (cursor.cursor, cursor.next));
    assert!(policy.expects(&(cursor.next - 1..cursor.next)));
}

#[test]
fn look_ahead_decays_while_a_stream_is_not_asked_for() {
    let mut policy = Sequential::new(256, 4, 0);
    drive(&mut policy, &(0..100).collect::<Vec<_>>(), u64::MAX);
    let next = policy.streams[0].next;
    let full = policy.streams[0].ahead;
    assert!(policy.expects(&(next - 1..next)));
    let random: Vec<u64> = (0..DECAY_AFTER * 12).map(|i| 1_000_000 + i * 1_000).collect();
    drive(&mut policy, &random, u64::MAX);
    assert!(!policy.expects(&(next - 1..next)), "an abandoned stream gives its frames back");
    policy.asked(100);
    let stream = policy.streams.iter().find(|stream| stream.cursor == 100).unwrap();
    assert!(stream.ahead < full / 8, "it starts anew from a small look-ahead: {stream:?}");
}

#[test]
fn what_was_dropped_is_wanted_again() {
    let mut policy = Sequential::new(32, 4, 0);
    drive(&mut policy, &(0..100).collect::<Vec<_>>(), u64::MAX);
    policy.forget();
    policy.asked(100);
    assert_eq!(policy.next(u64::MAX).map(|batch| batch.start), Some(101));
}
