//! Combinations in which every pair of values of two axes occurs.

/// Rows of indexes, one per axis, such that each pair of values of any two axes lies in some row. Greedy: each new
/// row takes, axis by axis, the value that covers most of the pairs still missing.
pub fn rows(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut missing = std::collections::BTreeSet::new();
    for a in 0..sizes.len() {
        for b in a + 1..sizes.len() {
            for x in 0..sizes[a] {
                missing.extend((0..sizes[b]).map(|y| (a, x, b, y)));
            }
        }
    }
    let mut rows = Vec::new();
    while let Some(&(a, x, b, y)) = missing.iter().next() {
        let mut row: Vec<Option<usize>> = vec![None; sizes.len()];
        (row[a], row[b]) = (Some(x), Some(y));
        for axis in 0..sizes.len() {
            if row[axis].is_some() {
                continue;
            }
            let gain = |value: usize| {
                let pair = |other: usize, theirs: usize| {
                    if other < axis { (other, theirs, axis, value) } else { (axis, value, other, theirs) }
                };
                row.iter().enumerate().filter(|(o, v)| v.is_some_and(|v| missing.contains(&pair(*o, v)))).count()
            };
            row[axis] = (0..sizes[axis]).max_by_key(|&value| gain(value));
        }
        let row: Vec<usize> = row.into_iter().flatten().collect();
        missing.retain(|&(a, x, b, y)| row[a] != x || row[b] != y);
        rows.push(row);
    }
    rows
}

#[test]
fn every_pair_occurs() {
    let sizes = [3, 2, 4, 5];
    let rows = rows(&sizes);
    assert!(rows.len() < 3 * 2 * 4 * 5 / 2, "{} rows", rows.len());
    for a in 0..sizes.len() {
        for b in a + 1..sizes.len() {
            for x in 0..sizes[a] {
                for y in 0..sizes[b] {
                    assert!(rows.iter().any(|row| row[a] == x && row[b] == y), "axes {a} {b}, values {x} {y}");
                }
            }
        }
    }
}
