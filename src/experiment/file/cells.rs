//! The cells of an experiment: products of axes, exclusions with their reasons, and baselines.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::axes::{ExcludeTable, MatrixTable, PatternTable, ScanTable};
use super::place::{self, Place};
use super::{Fault, RatioTable};
use crate::experiment::cpus::CpuList;
use crate::experiment::definition::{Pair, Ratio};
use crate::experiment::plan::{LeftOut, Matrix};
use crate::experiment::record::CacheState;
use crate::experiment::spec::{PlanCell, Point};

/// What all matrices of a file share.
pub struct Common {
    /// State of the page cache.
    pub cache: CacheState,
    /// Timed runs of a cell.
    pub runs: u32,
    /// Upper limit of the number that a matrix sets for itself.
    pub runs_max: Option<u32>,
    /// Most random reads of a scan.
    pub reads_max: Option<u64>,
    /// CPUs of runs whose matrix names none.
    pub cpus: Option<CpuList>,
    /// Whether the database's path is text.
    pub path_is_utf8: bool,
}

/// The cells of the file, what is left out, and the ratios.
pub struct Resolved {
    /// The cells.
    pub cells: Vec<PlanCell>,
    /// What is left out.
    pub left_out: Vec<LeftOut>,
    /// Cells and their baselines.
    pub ratios: Vec<Ratio>,
}

/// A cell that may still be excluded.
struct Candidate {
    place: Place,
    runs: u32,
}

/// The tables of a file that make cells or choose among them.
pub struct Tables<'a> {
    /// `[[matrix]]`.
    pub matrix: &'a [Spanned<MatrixTable>],
    /// `[[scan]]`.
    pub scan: &'a [Spanned<ScanTable>],
    /// `[[exclude]]`.
    pub exclude: &'a [Spanned<ExcludeTable>],
    /// `[[ratio]]`.
    pub ratio: &'a [Spanned<RatioTable>],
}

/// Resolves the tables of a file.
pub fn resolve(tables: &Tables, common: &Common) -> Result<Resolved, Fault> {
    let first = tables.matrix.first().map(Spanned::span).or_else(|| tables.scan.first().map(Spanned::span));
    if first.is_none() {
        return Err(Fault::new(
            None,
            "there is no [[matrix]] and no [[scan]], so there is nothing to run",
            MATRIX_HELP,
        ));
    }
    let mut left_out = Vec::new();
    let mut candidates = candidates(tables, common, &mut left_out)?;
    if candidates.is_empty() {
        let (what, why): (Vec<&str>, Vec<&str>) = left_out.iter().map(|l| (l.what.as_str(), l.why.as_str())).unzip();
        let what = format!("no combination of the matrix is possible: {}", what.join("; "));
        return Err(Fault::new(first, what, why.join("; ")));
    }
    exclude(&mut candidates, tables.exclude, &mut left_out)?;
    if candidates.is_empty() {
        let span = tables.exclude.first().map(Spanned::span);
        let help = "take an [[exclude]] back, or widen the matrix";
        return Err(Fault::new(span, "every cell is excluded, so there is nothing to run", help));
    }
    let ratios = tables.ratio.iter().map(|ratio| pairs(ratio, &candidates)).collect::<Result<_, _>>()?;
    let cells = candidates.into_iter().map(|candidate| {
        let name = candidate.place.name();
        let Place { point, cpus, sqpoll_idle_ms } = candidate.place;
        let cpus = cpus.or_else(|| common.cpus.clone());
        PlanCell { name, point, runs: candidate.runs, cpus, sqpoll_idle_ms }
    });
    Ok(Resolved { cells: cells.collect(), left_out, ratios })
}

const MATRIX_HELP: &str = "write for example:\n  [[matrix]]\n  engine = [\"turso\", \"sqlite\"]\n  window = [0, 32]";

fn candidates(tables: &Tables, common: &Common, left_out: &mut Vec<LeftOut>) -> Result<Vec<Candidate>, Fault> {
    let base = Matrix { cache: vec![common.cache], ..Matrix::default() };
    let mut union = Union { common, candidates: Vec::new(), seen: BTreeMap::new() };
    let mut leave_out = |refused: Vec<LeftOut>| {
        for refused in refused {
            if !left_out.contains(&refused) {
                left_out.push(refused);
            }
        }
    };
    for table in tables.matrix {
        let matrix = table.get_ref();
        let (places, refused) = place::of_query(&matrix.axes(), &base, common.path_is_utf8);
        leave_out(refused);
        union.add(places, matrix.runs.as_ref(), table.span())?;
    }
    for table in tables.scan {
        let scan = table.get_ref();
        let (places, refused) = place::of_scan(&scan.axes(), &base);
        leave_out(refused);
        union.add(places, scan.runs.as_ref(), table.span())?;
    }
    Ok(union.candidates)
}

/// The union of the products.
struct Union<'a> {
    common: &'a Common,
    candidates: Vec<Candidate>,
    /// Runs of each cell by its name.
    seen: BTreeMap<String, u32>,
}

impl Union<'_> {
    fn add(&mut self, places: Vec<Place>, own: Option<&Spanned<u32>>, span: Range<usize>) -> Result<(), Fault> {
        let runs = match own {
            None => self.common.runs,
            Some(runs) => {
                let own = super::runs_of(*runs.get_ref())
                    .map_err(|what| Fault::new(Some(runs.span()), what, super::RUNS_HELP))?;
                self.common.runs_max.map_or(own, |most| own.min(most))
            }
        };
        for mut place in places {
            if let (Some(most), Point::Scan(scan)) = (self.common.reads_max, &mut place.point) {
                scan.axes.random = scan.axes.random.map(|reads| reads.min(most));
            }
            let name = place.name();
            match self.seen.get(&name) {
                None => {
                    self.seen.insert(name, runs);
                    self.candidates.push(Candidate { place, runs });
                }
                Some(&other) if other != runs => {
                    let what = format!("{name} is in an earlier table too, with {other} runs there and {runs} here");
                    return Err(Fault::new(Some(span), what, "take it out of one of the two"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

fn exclude(
    candidates: &mut Vec<Candidate>,
    excludes: &[Spanned<ExcludeTable>],
    left_out: &mut Vec<LeftOut>,
) -> Result<(), Fault> {
    let mut excluded: Vec<Option<usize>> = vec![None; candidates.len()];
    for (number, table) in excludes.iter().enumerate() {
        let fault = |what: &str, help: &str| Err(Fault::new(Some(table.span()), what, help));
        let exclude = table.get_ref();
        if exclude.reason.trim().is_empty() {
            return fault("the reason of this [[exclude]] is empty", "say why these cells are not measured");
        }
        let pattern = exclude.axes();
        if pattern.is_empty() {
            return fault("this [[exclude]] names no axis", "name the values to leave out, such as engine = \"turso\"");
        }
        let mut hits = 0;
        for (candidate, excluded) in candidates.iter().zip(&mut excluded) {
            if pattern.matches(&candidate.place.values()) {
                excluded.get_or_insert(number);
                hits += 1;
            }
        }
        if hits == 0 {
            return fault(
                "this [[exclude]] meets no cell",
                "`--list` shows the cells; correct the values or take it out",
            );
        }
    }
    for (candidate, number) in candidates.iter().zip(&excluded) {
        if let Some(number) = number {
            left_out.push(LeftOut {
                what: candidate.place.name(),
                why: excludes[*number].get_ref().reason.trim().to_owned(),
            });
        }
    }
    let mut kept = excluded.iter().map(Option::is_none);
    candidates.retain(|_| kept.next().unwrap_or(true));
    Ok(())
}

/// Each cell that `of` matches, with the cell that has the baseline's values and is otherwise the same.
fn pairs(table: &Spanned<RatioTable>, candidates: &[Candidate]) -> Result<Ratio, Fault> {
    let fault = |what: &str, help: &str| Err(Fault::new(Some(table.span()), what, help));
    let ratio = table.get_ref();
    let baseline = ratio.baseline.axes();
    let of = ratio.of.as_ref().map(PatternTable::axes).unwrap_or_default();
    if baseline.is_empty() || baseline.has_lists() {
        return fault(
            "a baseline has one value on each axis that it names",
            "write for example baseline = { window = 0 }",
        );
    }
    let names: Vec<String> = candidates.iter().map(|candidate| candidate.place.name()).collect();
    let mut pairs = Vec::new();
    for (candidate, cell) in candidates.iter().zip(&names) {
        let Some(other) = candidate.place.moved(&baseline).map(|place| place.name()) else { continue };
        if of.matches(&candidate.place.values()) && other != *cell && names.contains(&other) {
            pairs.push(Pair { cell: cell.clone(), baseline: other });
        }
    }
    if pairs.is_empty() {
        return fault(
            "no cell of this [[ratio]] has its baseline among the cells",
            "a cell is set against the one that has the baseline's values and is otherwise the same; `--list` shows the cells",
        );
    }
    Ok(Ratio { title: ratio.title.clone(), pairs })
}
