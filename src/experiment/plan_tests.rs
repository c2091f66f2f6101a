#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;

fn names(cells: &Cells) -> Vec<String> {
    cells.cells.iter().map(Cell::name).collect()
}

#[test]
fn the_first_command_has_four_cells_in_the_order_of_its_lists() {
    let matrix = Matrix { direct: vec![Direct::Required], window: vec![0, 32], ..Matrix::default() };
    let cells = expand(&[matrix], true);
    assert_eq!(
        names(&cells),
        ["turso-uring-direct-w0", "turso-uring-direct-w32", "sqlite-uring-direct-w0", "sqlite-uring-direct-w32"]
    );
    assert_eq!(cells.left_out, []);
}

#[test]
fn axes_that_do_not_matter_do_not_multiply() {
    let matrix = Matrix::default()
        .with("backend=builtin,uring window=0,256 submit=per-page,coalesced pool=normal,huge engine=sqlite")
        .unwrap();
    assert_eq!(
        names(&expand(&[matrix], true)),
        [
            "sqlite-builtin",
            "sqlite-uring-w0",
            "sqlite-uring-w256",
            "sqlite-uring-w256-huge",
            "sqlite-uring-w256-coalesced",
            "sqlite-uring-w256-coalesced-huge",
        ]
    );
}

#[test]
fn combinations_that_make_no_sense_are_left_out_once_with_the_reason() {
    let matrix = Matrix::default()
        .with("backend=builtin-uring,builtin direct=disabled,required cache=cold,warm window=0,32")
        .unwrap();
    let cells = expand(&[matrix], true);
    assert_eq!(
        names(&cells),
        [
            "turso-builtin-uring",
            "turso-builtin-uring-warm",
            "turso-builtin",
            "turso-builtin-warm",
            "sqlite-builtin",
            "sqlite-builtin-warm"
        ]
    );
    let what: Vec<&str> = cells.left_out.iter().map(|l| l.what.as_str()).collect();
    assert_eq!(what, ["builtin-uring x direct required", "builtin x direct required", "sqlite x builtin-uring"]);
}

#[test]
fn a_path_that_is_not_text_leaves_turso_out() {
    let cells = expand(&[Matrix::default()], false);
    assert_eq!(names(&cells), ["sqlite-uring-w32"]);
    assert!(cells.left_out[0].why.contains("UTF-8"), "{:?}", cells.left_out);
}

#[test]
fn several_matrices_follow_each_other_without_repeats() {
    let base = Matrix { engine: vec![EngineKind::Sqlite], ..Matrix::default() };
    let builtin = base.with("backend=builtin cache=warm").unwrap();
    let cells = expand(&[builtin, base.clone(), base], true);
    assert_eq!(names(&cells), ["sqlite-builtin-warm", "sqlite-uring-w32"]);
}

#[test]
fn refusals_name_the_known_values_and_the_near_one() {
    let refusal = |text: &str| Matrix::default().with(text).unwrap_err().to_string();
    assert_eq!(
        refusal("backend=io-uring"),
        "unknown backend 'io-uring'; known: pread, uring, uring-sqpoll, builtin, builtin-uring"
    );
    assert_eq!(refusal("engine=sqlit"), "unknown engine 'sqlit'; known: sqlite, turso; did you mean 'sqlite'?");
    assert_eq!(refusal("window=4097"), "window '4097' is out of range; a whole number from 0 to 4096");
    assert_eq!(refusal("in-flight=0"), "in-flight '0' is out of range; a whole number from 1 to 16");
    assert_eq!(refusal("gap=-1"), "gap '-1' is out of range; a whole number from 0 to 32");
    assert_eq!(refusal("builtin"), "'builtin' is not of the form AXIS=VALUE,VALUE");
    assert!(refusal("windw=3").ends_with("did you mean 'window'?"));
}

prop_compose! {
    fn matrices()(
        engine in subsequence(EngineKind::ALL.to_vec(), 1..=2),
        backend in subsequence(EngineBackend::ALL.to_vec(), 1..=5),
        direct in subsequence(Direct::ALL.to_vec(), 1..=2),
        cache in subsequence(CacheState::ALL.to_vec(), 1..=2),
        window in proptest::collection::vec(0u32..=4096, 1..3),
        submit in subsequence(Submit::ALL.to_vec(), 1..=2),
        in_flight in proptest::collection::vec(1u32..=16, 1..3),
        gap in proptest::collection::vec(0u32..=32, 1..3),
        pool in subsequence(PoolKind::ALL.to_vec(), 1..=2),
    ) -> Matrix {
        Matrix { engine, backend, direct, cache, policy: vec![PolicyKind::Sequential], window, submit, in_flight, gap, pool, delivery: vec![crate::page::config::Delivery::Copy] }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_cell_is_asked_for_once_and_makes_sense(matrix in matrices(), utf8: bool) {
        let plan = expand(std::slice::from_ref(&matrix), utf8);
        let unique: BTreeSet<String> = names(&plan).into_iter().collect();
        prop_assert_eq!(unique.len(), plan.cells.len());
        for cell in &plan.cells {
            prop_assert!(cell.refusal(utf8).is_none());
            prop_assert!(matrix.engine.contains(&cell.engine) && matrix.backend.contains(&cell.backend));
            prop_assert!(matrix.direct.contains(&cell.direct) && matrix.cache.contains(&cell.cache));
            prop_assert!(matrix.window.contains(&cell.window) && matrix.submit.contains(&cell.submit));
        }
        // Whatever is not a cell has a reason.
        prop_assert!(!plan.cells.is_empty() || !plan.left_out.is_empty());
        for cell in product(&matrix) {
            let kept = plan.cells.contains(&cell.canonical(&matrix));
            prop_assert_eq!(kept, cell.refusal(utf8).is_none());
        }
    }

    #[test]
    fn the_same_matrix_gives_the_same_cells(matrix in matrices()) {
        prop_assert_eq!(expand(std::slice::from_ref(&matrix), true), expand(&[matrix.clone(), matrix], true));
    }

    #[test]
    fn any_text_is_answered(text in ".{0,40}") {
        let _ = Matrix::default().with(&text);
    }
}
