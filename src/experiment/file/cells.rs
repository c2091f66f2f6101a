//! The cells of a query's experiment: products of axes, exclusions with their reasons, and baselines.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::axes::{ExcludeTable, MatrixTable, Place, QueryAxes};
use super::{Fault, RatioTable};
use crate::engine::EngineBackend;
use crate::experiment::cpus::CpuList;
use crate::experiment::definition::{Pair, Ratio};
use crate::experiment::plan::{Cells, LeftOut, Matrix, expand};
use crate::experiment::record::CacheState;
use crate::experiment::spec::{PlanCell, Point, SQPOLL_IDLE_DEFAULT_MS};

/// What all matrices of a file share.
pub struct Common {
    /// State of the page cache.
    pub cache: CacheState,
    /// Timed runs of a cell.
    pub runs: u32,
    /// Upper limit of the number that a matrix sets for itself.
    pub runs_max: Option<u32>,
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

/// Resolves the tables of a file.
pub fn resolve(
    matrices: &[Spanned<MatrixTable>],
    excludes: &[Spanned<ExcludeTable>],
    ratios: &[Spanned<RatioTable>],
    common: &Common,
) -> Result<Resolved, Fault> {
    if matrices.is_empty() {
        return Err(Fault::new(None, "there is no [[matrix]], so there is nothing to run", MATRIX_HELP));
    }
    let mut left_out = Vec::new();
    let mut candidates = candidates(matrices, common, &mut left_out)?;
    if candidates.is_empty() {
        let (what, why): (Vec<&str>, Vec<&str>) = left_out.iter().map(|l| (l.what.as_str(), l.why.as_str())).unzip();
        let what = format!("no combination of the matrix is possible: {}", what.join("; "));
        return Err(Fault::new(Some(matrices[0].span()), what, why.join("; ")));
    }
    exclude(&mut candidates, excludes, &mut left_out)?;
    if candidates.is_empty() {
        let help = "take an [[exclude]] back, or widen the matrix";
        return Err(Fault::new(
            excludes.first().map(Spanned::span),
            "every cell is excluded, so there is nothing to run",
            help,
        ));
    }
    let ratios = ratios.iter().map(|ratio| pairs(ratio, &candidates)).collect::<Result<_, _>>()?;
    let cells = candidates.into_iter().map(|candidate| {
        let Place { cell, cpus, sqpoll_idle_ms } = candidate.place.clone();
        let cpus = cpus.or_else(|| common.cpus.clone());
        PlanCell { name: candidate.place.name(), point: Point::Query(cell), runs: candidate.runs, cpus, sqpoll_idle_ms }
    });
    Ok(Resolved { cells: cells.collect(), left_out, ratios })
}

const MATRIX_HELP: &str = "write for example:\n  [[matrix]]\n  engine = [\"turso\", \"sqlite\"]\n  window = [0, 32]";

fn candidates(
    matrices: &[Spanned<MatrixTable>],
    common: &Common,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<Candidate>, Fault> {
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut seen: BTreeMap<String, (u32, Range<usize>)> = BTreeMap::new();
    let base = Matrix { cache: vec![common.cache], ..Matrix::default() };
    for table in matrices {
        let matrix = table.get_ref();
        let runs = match &matrix.runs {
            None => common.runs,
            Some(runs) => {
                let own = super::runs_of(*runs.get_ref())
                    .map_err(|what| Fault::new(Some(runs.span()), what, super::RUNS_HELP))?;
                common.runs_max.map_or(own, |most| own.min(most))
            }
        };
        let axes = matrix.axes();
        let product = expand(&[axes.over(&base)], common.path_is_utf8);
        left_out.extend(product.left_out.iter().filter(|l| !left_out.contains(l)).cloned().collect::<Vec<_>>());
        for place in places(&product, &axes) {
            match seen.get(&place.name()) {
                None => {
                    seen.insert(place.name(), (runs, table.span()));
                    candidates.push(Candidate { place, runs });
                }
                Some((other, _)) if *other != runs => {
                    let what = format!(
                        "{} is in an earlier matrix too, with {other} runs there and {runs} here",
                        place.name()
                    );
                    return Err(Fault::new(Some(table.span()), what, "take it out of one of the two"));
                }
                Some(_) => {}
            }
        }
    }
    Ok(candidates)
}

/// The product with the axes that are not the reader's.
fn places(product: &Cells, axes: &QueryAxes) -> Vec<Place> {
    let cpus: Vec<Option<CpuList>> =
        axes.cpus.as_ref().map_or_else(|| vec![None], |list| list.iter().cloned().map(Some).collect());
    let idles = axes.sqpoll_idle_ms.clone().unwrap_or_else(|| vec![SQPOLL_IDLE_DEFAULT_MS]);
    let mut places = Vec::new();
    for &cell in &product.cells {
        // Without a poller its idle time does not matter.
        let idles =
            if cell.backend == EngineBackend::UringSqpoll { idles.as_slice() } else { &[SQPOLL_IDLE_DEFAULT_MS] };
        for &sqpoll_idle_ms in idles {
            places.extend(cpus.iter().map(|cpus| Place { cell, cpus: cpus.clone(), sqpoll_idle_ms }));
        }
    }
    places
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
            if pattern.matches(&candidate.place) {
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
    let of = ratio.of.as_ref().map(super::axes::PatternTable::axes).unwrap_or_default();
    if baseline.is_empty() || baseline.has_lists() {
        return fault(
            "a baseline has one value on each axis that it names",
            "write for example baseline = { window = 0 }",
        );
    }
    let names: Vec<String> = candidates.iter().map(|candidate| candidate.place.name()).collect();
    let mut pairs = Vec::new();
    for (candidate, cell) in candidates.iter().zip(&names) {
        let other = baseline.moved(&candidate.place).name();
        if of.matches(&candidate.place) && other != *cell && names.contains(&other) {
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
