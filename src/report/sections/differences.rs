//! Why counts of the block layer are not the published ones: what the numbers themselves say, and what they leave open.

use serde_json::Value;

use crate::report::grid::grouped;
use crate::report::hosts::Cell;
use crate::report::phrases::Form;

/// Requests further apart than this are worth an explanation.
const ALIKE: std::ops::RangeInclusive<f64> = 0.98..=1.02;

/// What sets a cell of per-page reads apart from the published row of its window, one sentence or two each; empty where
/// the counts are not known or do not differ.
pub fn explained(arm: &str, window: u64, cell: &Cell<'_>, published: &Value) -> Vec<String> {
    let there = |name: &str| published.get(name).and_then(Value::as_f64);
    [requests(cell, window, &there), other_bios(cell, &there)]
        .into_iter()
        .flatten()
        .map(|text| format!("{arm}, window {window}: {text}"))
        .collect()
}

/// Device requests: how many bios each holds here and there.
fn requests(cell: &Cell<'_>, window: u64, there: &dyn Fn(&str) -> Option<f64>) -> Option<String> {
    let (bios, requests) = (cell.count("bios")?, cell.count("device_requests")?);
    let (bios_there, requests_there) = (there("bios")?, there("device_requests")?);
    if requests <= 0.0 || requests_there <= 0.0 || ALIKE.contains(&(requests / requests_there)) {
        return None;
    }
    let count = |number: f64| Form::Count.write(number);
    let mut text = format!(
        "{} device requests of {:.1} bios each, published {} of {:.1}.",
        count(requests),
        bios / requests,
        count(requests_there),
        bios_there / requests_there
    );
    if window > 0 {
        let enters = cell.count("enter_calls").map(|enters| format!(" ({} calls here)", count(enters)));
        text.push_str(&format!(
            " The block layer merges what lies side by side within one plug, and a plug lasts for one `io_uring_enter`{}: a \
             batch of {window} pages that is submitted at once becomes one request, a batch that is shorter or is submitted \
             in pieces becomes more.",
            enters.unwrap_or_default()
        ));
        text.push_str(if bios / requests > bios_there / requests_there {
            " Here batches reach the kernel more nearly whole; which of the two held the published ones back, its counts do not tell."
        } else {
            " Here batches reach the kernel in smaller pieces."
        });
    }
    Some(text)
}

/// bios that belong to no SQE of the reader.
fn other_bios(cell: &Cell<'_>, there: &dyn Fn(&str) -> Option<f64>) -> Option<String> {
    let (bios, sqes) = (cell.count("bios")?, cell.count("sqes")?);
    let (bios_there, sqes_there) = (there("bios")?, there("sqes")?);
    let (more, more_there) = (bios - sqes, bios_there - sqes_there);
    if more < 0.0 || more.round() == more_there.round() {
        return None;
    }
    Some(format!(
        "{} bios above the SQEs, published {}: reads of the same disk that are not the reader's, by the file system for its \
         own maps, by the engine beside its pages, or by other processes.",
        grouped(more.round() as u64),
        Form::Count.write(more_there)
    ))
}
