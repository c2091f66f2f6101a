#![allow(clippy::unwrap_used)]
use super::*;
use crate::experiment::record::Record;
use crate::report::fixture::{campaign, cells, environment, records};
use crate::report::study::tests::study;
use serde_json::{Value, json};

const CELLS: &str = "engine=sqlite direct=required window=0,32,256";

/// A campaign of seven timed runs, changed.
fn changed(text: &str, plan: impl Fn(&mut Value), record: impl Fn(&mut Record)) -> Study {
    let chosen = cells(text);
    let mut campaign = campaign(&chosen, 7, &[]);
    plan(&mut campaign);
    let mut all = records(&chosen, 7);
    all.iter_mut().for_each(record);
    study(&campaign, &all, None)
}

fn same() -> Study {
    changed(CELLS, |_| (), |_| ())
}

fn differences(second: &Study) -> Vec<String> {
    match render(&same(), second, false) {
        Err(Refusal::Differences(differences)) => differences,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn the_same_campaign_twice_has_not_moved() {
    let text = render(&same(), &same(), false).unwrap();
    assert!(
        text.contains("Made in the same way")
            && text.contains("No cell moved: of 3 cells that could be judged none is resolved."),
        "{text}"
    );
    assert!(!text.contains("Counts that differ"), "{text}");
}

#[test]
fn cells_that_moved_are_named_and_new_ones_too() {
    let second = changed(
        "engine=sqlite direct=required window=0,32,64",
        |_| (),
        |record| {
            if record.asked.window == 32 {
                record.times.wall_s = record.times.wall_s.map(|wall| wall * 0.8);
                record.ring.sqes = Some(50);
            }
        },
    );
    insta::assert_snapshot!(render(&same(), &second, false).unwrap());
}

#[test]
fn other_experiments_are_refused_whatever_is_accepted() {
    let other = changed(
        CELLS,
        |plan| plan["about"]["name"] = json!("sqpoll"),
        |record| record.experiment = "sqpoll".to_owned(),
    );
    let refusal = render(&same(), &other, true).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the first is of experiment 'readahead' and the second of 'sqpoll': there is nothing to compare"
    );
}

#[test]
fn every_silent_difference_is_named() {
    for (path, value, expected) in [
        ("/experiment_digest", json!("x"), "experiment file: fnv1a64:0123456789abcdef and x"),
        ("/plan/data", json!("TPC-H, scale 0.1"), "data set: TPC-H, scale 1, pages of 4096 bytes and TPC-H, scale 0.1"),
        ("/made_with/data/size_bytes", json!(4096), "database, bytes: 245760 and 4096"),
        ("/made_with/data/change_counter", json!(8), "content of the database: one state and another, by its header"),
        ("/plan/counters", json!("all"), "counters: both and all"),
        ("/plan/warmup", json!(2), "warm-up rounds: 0 and 2"),
        ("/plan/timeout_s", json!(null), "time limit, s: 600 and none"),
        ("/plan/seed", json!(9), "seed of the order: 1 and 9"),
        ("/made_with/ioscope_version", json!("0.2.0"), "ioscope: 0.1.0 and 0.2.0"),
        ("/made_with/binary_digest", json!("y"), "program file: fnv1a64:2123456789abcdef and y"),
    ] {
        let second = changed(CELLS, |plan| *plan.pointer_mut(path).unwrap() = value.clone(), |_| ());
        assert_eq!(differences(&second), [expected]);
    }
    let slower_queue = changed(
        CELLS,
        |_| (),
        |record| {
            record.environment.nomerges = Some(2);
            record.environment.id = record.environment.digest();
        },
    );
    assert_eq!(differences(&slower_queue), ["nomerges: 0 and 2"]);
    let elsewhere = changed(CELLS, |_| (), |record| record.environment = environment(0xb2));
    assert_eq!(differences(&elsewhere), ["machine: a1c0ffee00c0ffee and b2c0ffee00c0ffee"]);
}

#[test]
fn accepted_differences_stand_at_the_top() {
    let second = changed(CELLS, |plan| plan["made_with"]["binary_digest"] = json!("y"), |_| ());
    let text = render(&same(), &second, true).unwrap();
    let head: String = text.lines().take(5).collect::<Vec<_>>().join("\n");
    assert!(head.contains("**Not made in the same way**") && head.contains("- program file: "), "{text}");
}

#[test]
fn failed_cells_are_not_judged() {
    let second = changed(
        CELLS,
        |_| (),
        |record| {
            if record.asked.window == 0 {
                record.error = Some("killed".to_owned());
            }
        },
    );
    let text = render(&same(), &second, false).unwrap();
    assert!(text.contains("of 2 cells that could be judged") && text.contains("no timed runs on both sides"), "{text}");
    let none = study(&campaign(&[], 7, &[]), &[], None);
    assert!(render(&none, &none, false).is_ok());
}
