//! Whose pages were read and not used: the extra SQEs of a window, explained by name.

use std::ops::Range;

use crate::page::ranges;
use crate::workload::btrees::Btrees;

/// Pages of one kind of one b-tree that were read for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The b-tree.
    pub btree: String,
    /// The table that it is, or is an index of.
    pub table: String,
    /// `leaf`, `interior` or `overflow`.
    pub kind: &'static str,
    /// Pages that were wasted.
    pub pages: u64,
    /// Pages of this kind that it has.
    pub of: u64,
}

/// Whose the wasted pages of one run were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wasted {
    /// All of them, as the reader counted.
    pub total: u64,
    /// By owner, largest first.
    pub shares: Vec<Share>,
    /// Pages that belong to no b-tree: free ones.
    pub unowned: u64,
    /// Pages that were read for nothing more than once: counted in `total` each time, in the shares once.
    pub repeated: u64,
}

/// Which b-trees the wasted pages belong to.
pub fn by_btree(total: u64, pages: &[Range<u64>], btrees: &Btrees) -> Wasted {
    let mut shares = Vec::new();
    for btree in &btrees.btrees {
        for (kind, code) in btree.parts() {
            let Some(own) = ranges::decode(code) else { continue };
            let wasted = ranges::common(pages, &own);
            if wasted > 0 {
                let (btree, table) = (btree.name.clone(), btree.table.clone());
                shares.push(Share { btree, table, kind, pages: wasted, of: ranges::count(&own) });
            }
        }
    }
    shares.sort_by(|a, b| b.pages.cmp(&a.pages).then_with(|| (&a.btree, a.kind).cmp(&(&b.btree, b.kind))));
    let owned: u64 = shares.iter().map(|share| share.pages).sum();
    let distinct = ranges::count(pages);
    Wasted { total, shares, unowned: distinct.saturating_sub(owned), repeated: total.saturating_sub(distinct) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::btrees::Btree;
    use proptest::prelude::*;

    fn btree(name: &str, leaves: &[Range<u64>], interior: &[Range<u64>]) -> Btree {
        Btree {
            name: name.to_owned(),
            table: "T".to_owned(),
            leaf_pages: ranges::encode(leaves),
            interior_pages: ranges::encode(interior),
            overflow_pages: Vec::new(),
        }
    }

    proptest! {
        #[test]
        fn every_wasted_page_is_accounted_for(
            pages in proptest::collection::btree_set(1u64..120, 0..60), repeated in 0u64..5
        ) {
            let file = Btrees { schema: 1, file_bytes: 0, page_size_bytes: 4096, btrees: vec![
                btree("T", &[2..40], &[1..2, 40..41]), btree("I", &[41..60, 70..80], &[]),
            ] };
            let merged = ranges::merge(pages.iter().map(|page| *page..page + 1).collect());
            let wasted = by_btree(pages.len() as u64 + repeated, &merged, &file);
            let owned: u64 = wasted.shares.iter().map(|share| share.pages).sum();
            prop_assert_eq!(owned + wasted.unowned + wasted.repeated, wasted.total);
            prop_assert!(wasted.shares.iter().all(|share| share.pages <= share.of));
            prop_assert!(wasted.shares.windows(2).all(|pair| pair[0].pages >= pair[1].pages));
        }
    }
}
