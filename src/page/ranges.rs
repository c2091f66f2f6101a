//! Sets of page or unit numbers as ranges, and their compact form in files.

use std::ops::Range;

/// Most ranges that a reader keeps of what it read for nothing: at 16 bytes each, 1 MiB.
pub const RANGES_MAX: usize = 65_536;

/// Sorts ranges and joins those that touch or overlap; empty ones vanish.
pub fn merge(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Numbers in all of the ranges together.
pub fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// The compact form of merged ranges: numbers left out since the last range (the first one: since 0), length of this
/// range, and so on in turn. Pages of two b-trees that lie among each other make small numbers.
pub fn encode(ranges: &[Range<u64>]) -> Vec<u64> {
    let mut end = 0;
    let mut code = Vec::with_capacity(ranges.len() * 2);
    for range in ranges {
        code.push(range.start.saturating_sub(end));
        code.push(range.end - range.start);
        end = range.end;
    }
    code
}

/// Undoes [`encode`]; `None` for what it does not write.
pub fn decode(code: &[u64]) -> Option<Vec<Range<u64>>> {
    let mut end = 0_u64;
    let mut ranges = Vec::with_capacity(code.len() / 2);
    for pair in code.chunks(2) {
        let &[skip, length] = pair else { return None };
        let start = end.checked_add(skip)?;
        end = start.checked_add(length)?;
        ranges.push(start..end);
    }
    Some(ranges)
}

/// How many numbers two merged sets have in common.
pub fn common(a: &[Range<u64>], b: &[Range<u64>]) -> u64 {
    let (mut i, mut j, mut total) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        total += x.end.min(y.end).saturating_sub(x.start.max(y.start));
        if x.end <= y.end { i += 1 } else { j += 1 }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(ranges: &[Range<u64>]) -> BTreeSet<u64> {
        ranges.iter().cloned().flatten().collect()
    }

    fn any_ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        proptest::collection::vec((0u64..200, 0u64..9).prop_map(|(start, length)| start..start + length), 0..40)
    }

    #[test]
    fn what_encode_does_not_write_is_refused() {
        assert_eq!(decode(&[1]), None);
        assert_eq!(decode(&[u64::MAX, 1]), None);
        assert_eq!(decode(&[]), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn merging_keeps_the_set(ranges in any_ranges()) {
            let merged = merge(ranges.clone());
            prop_assert_eq!(set(&merged), set(&ranges));
            prop_assert!(merged.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert_eq!(count(&merged), set(&ranges).len() as u64);
        }

        #[test]
        fn the_compact_form_is_read_as_it_was_written(ranges in any_ranges()) {
            let merged = merge(ranges);
            prop_assert_eq!(decode(&encode(&merged)), Some(merged));
        }

        #[test]
        fn what_is_common_is_the_intersection(a in any_ranges(), b in any_ranges()) {
            let expected = set(&a).intersection(&set(&b)).count() as u64;
            prop_assert_eq!(common(&merge(a), &merge(b)), expected);
        }

        #[test]
        fn any_numbers_are_decoded_or_refused(code in proptest::collection::vec(any::<u64>(), 0..9)) {
            let _ = decode(&code);
        }
    }
}
