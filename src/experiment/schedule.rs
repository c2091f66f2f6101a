//! The order of runs: rounds of one run of each cell, shuffled, so that drift of the machine meets all cells alike.

use super::random::SplitMix64;

crate::page::config::axis! {
    /// Which runs have tracepoints and hardware counters on.
    Counters = "counters" {
        /// None: every run is timed.
        None = "none",
        /// Every run is counted; its wall includes the cost of counting.
        All = "all",
        /// Timed runs, whose walls are compared, and one counted run of each cell, whose counts are reported.
        Both = "both",
    }
}

/// One run of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRun {
    /// Index of the cell.
    pub cell: usize,
    /// Number among the cell's timed, or among its counted, runs; from 1.
    pub run: u32,
    /// Whether counters are on.
    pub counted: bool,
}

/// All runs in order. With `Both` the round of counted runs comes first: it also meets a failing cell early and
/// takes the first touch of the data (by a host's cache, say) away from the runs that are compared.
pub fn schedule(cells: usize, runs: u32, counters: Counters, seed: u64) -> Vec<PlannedRun> {
    let mut rounds: Vec<(u32, bool)> = Vec::new();
    if counters == Counters::Both {
        rounds.push((1, true));
    }
    rounds.extend((1..=runs).map(|run| (run, counters == Counters::All)));

    let mut random = SplitMix64::new(seed);
    let mut planned = Vec::with_capacity(cells * rounds.len());
    for (run, counted) in rounds {
        let mut order: Vec<usize> = (0..cells).collect();
        random.shuffle(&mut order);
        planned.extend(order.into_iter().map(|cell| PlannedRun { cell, run, counted }));
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_run_with_counters_both_is_a_counted_and_a_timed_run() {
        let planned = schedule(1, 1, Counters::Both, 0);
        assert_eq!(
            planned,
            [PlannedRun { cell: 0, run: 1, counted: true }, PlannedRun { cell: 0, run: 1, counted: false }]
        );
    }

    #[test]
    fn another_seed_is_another_order() {
        let orders: std::collections::BTreeSet<Vec<usize>> =
            (0..20).map(|seed| schedule(6, 2, Counters::None, seed).iter().map(|p| p.cell).collect()).collect();
        assert!(orders.len() > 15, "{} of 20 seeds gave an order of their own", orders.len());
    }

    proptest! {
        #[test]
        fn every_round_has_each_cell_once(cells in 0usize..12, runs in 1u32..8, which in 0usize..3, seed: u64) {
            let counters = Counters::ALL[which];
            let planned = schedule(cells, runs, counters, seed);
            let rounds = runs as usize + usize::from(counters == Counters::Both);
            prop_assert_eq!(planned.len(), cells * rounds);
            for round in planned.chunks(cells.max(1)) {
                let mut seen: Vec<usize> = round.iter().map(|p| p.cell).collect();
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..cells).collect::<Vec<_>>());
                prop_assert!(round.iter().all(|p| (p.run, p.counted) == (round[0].run, round[0].counted)));
            }
            let counted = planned.iter().filter(|p| p.counted).count();
            let expected = match counters { Counters::None => 0, Counters::All => cells * runs as usize, Counters::Both => cells };
            prop_assert_eq!(counted, expected);
            prop_assert_eq!(planned, schedule(cells, runs, counters, seed));
        }
    }
}
