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
        /// Every run twice in its round, timed and counted, in random order: what counting costs.
        Paired = "paired",
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
    /// Number of the round that it belongs to, from 0: a round has one run of each cell that still has any, and with
    /// `Paired` one of each kind.
    pub round: u32,
}

/// All runs in order; `runs` holds the number of each cell's timed runs. With `Both` the round of counted runs comes
/// first: it also meets a failing cell early and takes the first touch of the data (by a host's cache, say) away from
/// the runs that are compared.
///
/// Run k of every cell lies in the same round, so that two cells are compared by runs that lie near each other; a cell
/// with fewer runs is left out of the last rounds. More runs add rounds at the end and leave the others as they were.
pub fn schedule(runs: &[u32], counters: Counters, seed: u64) -> Vec<PlannedRun> {
    let kinds: &[bool] = match counters {
        Counters::None | Counters::Both => &[false],
        Counters::All => &[true],
        Counters::Paired => &[false, true],
    };
    let mut rounds: Vec<(u32, &[bool])> = Vec::new();
    if counters == Counters::Both {
        rounds.push((1, &[true]));
    }
    let most = runs.iter().copied().max().unwrap_or(0);
    rounds.extend((1..=most).map(|run| (run, kinds)));

    let mut random = SplitMix64::new(seed);
    let mut planned = Vec::new();
    for (round, (run, kinds)) in (0..).zip(rounds) {
        let mut order: Vec<(usize, bool)> =
            kinds.iter().flat_map(|&counted| (0..runs.len()).map(move |cell| (cell, counted))).collect();
        random.shuffle(&mut order);
        let due = order.into_iter().filter(|&(cell, _)| run <= runs[cell]);
        planned.extend(due.map(|(cell, counted)| PlannedRun { cell, run, counted, round }));
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_run_with_counters_both_is_a_counted_and_a_timed_run() {
        let planned = schedule(&[1], Counters::Both, 0);
        assert_eq!(
            planned,
            [
                PlannedRun { cell: 0, run: 1, counted: true, round: 0 },
                PlannedRun { cell: 0, run: 1, counted: false, round: 1 }
            ]
        );
    }

    #[test]
    fn paired_runs_lie_in_one_round_and_neither_kind_is_always_first() {
        let planned = schedule(&[40, 3], Counters::Paired, 7);
        assert_eq!(planned.len(), 86);
        let first: Vec<bool> = (1..=40)
            .map(|run| {
                let pair: Vec<&PlannedRun> = planned.iter().filter(|p| p.cell == 0 && p.run == run).collect();
                assert_eq!((pair.len(), pair[0].round, pair[0].counted), (2, pair[1].round, !pair[1].counted));
                pair[0].counted
            })
            .collect();
        let counted_first = first.iter().filter(|&&counted| counted).count();
        assert!((8..=32).contains(&counted_first), "{counted_first} of 40");
    }

    #[test]
    fn another_seed_is_another_order() {
        let orders: std::collections::BTreeSet<Vec<usize>> =
            (0..20).map(|seed| schedule(&[2; 6], Counters::None, seed).iter().map(|p| p.cell).collect()).collect();
        assert!(orders.len() > 15, "{} of 20 seeds gave an order of their own", orders.len());
    }

    proptest! {
        #[test]
        fn every_round_has_each_cell_once(cells in 0usize..12, runs in 1u32..8, which in 0usize..3, seed: u64) {
            let counters = [Counters::None, Counters::All, Counters::Both][which];
            let planned = schedule(&vec![runs; cells], counters, seed);
            let rounds = runs as usize + usize::from(counters == Counters::Both);
            prop_assert_eq!(planned.len(), cells * rounds);
            for round in planned.chunks(cells.max(1)) {
                let mut seen: Vec<usize> = round.iter().map(|p| p.cell).collect();
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..cells).collect::<Vec<_>>());
                let same = |p: &PlannedRun| (p.run, p.counted, p.round) == (round[0].run, round[0].counted, round[0].round);
                prop_assert!(round.iter().all(same));
            }
            let counted = planned.iter().filter(|p| p.counted).count();
            let expected = match counters { Counters::None => 0, Counters::All => cells * runs as usize, _ => cells };
            prop_assert_eq!(counted, expected);
            prop_assert_eq!(planned, schedule(&vec![runs; cells], counters, seed));
        }

        #[test]
        fn each_cell_has_its_own_number_of_runs_and_more_runs_change_no_earlier_round(
            runs in proptest::collection::vec(1u32..6, 1..10), more in 0u32..4, seed: u64,
        ) {
            let planned = schedule(&runs, Counters::Both, seed);
            for (cell, &runs) in runs.iter().enumerate() {
                let timed: Vec<u32> = planned.iter().filter(|p| p.cell == cell && !p.counted).map(|p| p.run).collect();
                prop_assert_eq!(timed, (1..=runs).collect::<Vec<_>>());
            }
            prop_assert!(planned.is_sorted_by_key(|p| p.round));
            let round_of = |p: &PlannedRun| if p.counted { 0 } else { p.run };
            prop_assert!(planned.iter().all(|p| p.round == round_of(p)));
            let longer: Vec<u32> = runs.iter().map(|runs| runs + more).collect();
            let longer = schedule(&longer, Counters::Both, seed);
            let was = |p: &&PlannedRun| p.counted || p.run <= runs[p.cell];
            prop_assert_eq!(longer.iter().filter(was).copied().collect::<Vec<_>>(), planned);
        }
    }
}
