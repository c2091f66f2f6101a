//! What is drawn: the same every time, never outside the sheet, and something for whatever data.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::gallery::{drawn, gallery, spec};
use super::sample::record;
use crate::report::figure::font::Metrics;
use crate::report::figure::{DrawOptions, Published, Reference, Scalar, draw, write};

#[test]
fn the_same_records_give_the_same_bytes() {
    for (spec, records) in gallery() {
        assert!(drawn(&spec, &records) == drawn(&spec, &records), "{}", spec.name);
    }
}

/// The bytes that another machine has to come to as well.
#[test]
fn the_svg_is_the_known_one() {
    let (spec, records) = gallery().into_iter().find(|(spec, _)| spec.name == "sqpoll-cpu").unwrap();
    insta::assert_snapshot!("sqpoll_cpu_svg", drawn(&spec, &records).svg);
}

/// An attribute's value in a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_once(&format!(" {name}=\""))?.1.split_once('"').map(|(value, _)| value)
}

/// A text on paper: what it says, and its box.
#[derive(Debug)]
struct Placed {
    text: String,
    x: (f64, f64),
    y: (f64, f64),
}

/// All texts of an SVG, measured with the font that comes along.
fn texts(svg: &str) -> Vec<Placed> {
    let metrics = Metrics::new().unwrap();
    let placed = |part: &str| {
        let (tag, rest) = part.split_once('>').unwrap();
        let tag = format!(" {tag}");
        let text = rest.split_once("</text>").unwrap().0.trim();
        let text = text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&")
            .replace("&quot;", "\"")
            .replace("&apos;", "'");
        let number = |name| attribute(&tag, name).unwrap().parse::<f64>().unwrap();
        let (x, y, size) = (number("x"), number("y"), number("font-size"));
        let width = metrics.width(&text, size);
        let before = match attribute(&tag, "text-anchor").unwrap() {
            "start" => 0.0,
            "middle" => width / 2.0,
            _ => width,
        };
        // Cap height 0.7, descent 0.21 of the size; the baseline is a quarter above y.
        match attribute(&tag, "transform") {
            None => Placed { text, x: (x - before, x - before + width), y: (y - size * 0.95, y - size * 0.04) },
            Some(_) => Placed { text, x: (x - size * 0.95, x - size * 0.04), y: (y + before - width, y + before) },
        }
    };
    svg.split("<text").skip(1).map(placed).collect()
}

fn size(svg: &str) -> (f64, f64) {
    let mut numbers = attribute(svg, "viewBox").unwrap().split(' ').map(|n| n.parse::<f64>().unwrap()).skip(2);
    (numbers.next().unwrap(), numbers.next().unwrap())
}

fn assert_legible(name: &str, svg: &str) {
    let (width, height) = size(svg);
    let texts = texts(svg);
    for (at, text) in texts.iter().enumerate() {
        let inside = text.x.0 >= 0.0 && text.x.1 <= width && text.y.0 >= 0.0 && text.y.1 <= height;
        assert!(inside, "{name}: {text:?} is outside of {width} x {height}");
        for other in &texts[at + 1..] {
            let apart =
                text.x.1 <= other.x.0 || other.x.1 <= text.x.0 || text.y.1 <= other.y.0 || other.y.1 <= text.y.0;
            assert!(apart, "{name}: {text:?} covers {other:?}");
        }
    }
}

#[test]
fn no_text_covers_another_or_leaves_the_sheet() {
    for (spec, records) in gallery() {
        let drawing = drawn(&spec, &records);
        assert_legible(&spec.name, &drawing.svg);
        // 7 pt is 2.47 mm.
        assert!(
            drawing.svg.split("font-size=\"").skip(1).all(|part| part
                .split('"')
                .next()
                .unwrap()
                .parse::<f64>()
                .unwrap()
                >= 247.0)
        );
    }
}

#[test]
fn a_quick_run_and_a_figure_without_data_say_so() {
    for (spec, records) in gallery().into_iter().filter(|(spec, _)| spec.name != "timeline") {
        assert!(drawn(&spec, &records).svg.contains("quick run: SF 0.1, 3 runs"), "{}", spec.name);
    }
    let (spec, records) = gallery().pop().unwrap();
    let said: Vec<String> = texts(&drawn(&spec, &records).svg).into_iter().map(|text| text.text).collect();
    assert!(
        said.join(" ").contains("no data: this machine has no PMU: perf_event_open says ENOENT for cycles"),
        "{said:?}"
    );
    let empty = draw(&spec, &[], &DrawOptions::default()).unwrap();
    assert!(empty.svg.contains("no data: there are no records"));
}

#[test]
fn text_cannot_break_out_of_the_svg() {
    let records = [record(
        "<c>&\"'",
        1,
        false,
        &json!({ "engine": "<script>\u{0}\u{1b}&" }),
        &json!({ "times": { "wall_s": 1.0 } }),
    )];
    let spec = spec(
        json!({ "name": "f", "title": "a < b & \"c\" \u{7}", "caption": "</desc>", "kind": "bars", "x": "engine", "y": "wall_s" }),
    );
    let svg = draw(&spec, &records, &DrawOptions::default()).unwrap().svg;
    assert!(!svg.contains("<script>") && svg.matches("</desc>").count() == 1);
}

#[test]
fn files_are_written_whole_and_nothing_else_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, records) = gallery().swap_remove(4);
    let drawing = drawn(&spec, &records);
    let target = folder.path().join("plots/sqpoll");
    let paths = write(&drawing, &target).unwrap();
    assert_eq!(std::fs::read(&paths[1]).unwrap(), drawing.png);
    write(&drawing, &target).unwrap();
    let names: BTreeSet<String> =
        std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let expected = ["csv", "pdf", "png", "svg"].map(|extension| format!("sqpoll-bars.{extension}"));
    assert_eq!(names, expected.into_iter().collect());
    let blocked = folder.path().join("file");
    std::fs::write(&blocked, "x").unwrap();
    let error = write(&drawing, &blocked).unwrap_err().to_string();
    assert!(error.contains("cannot write"), "{error}");
}

/// A value as data have had it: ordinary, extreme, or missing.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0.0f64..1e6).prop_map(|v| json!(v)),
        1 => any::<f64>().prop_map(|v| json!(v)),
        1 => any::<u64>().prop_map(|v| json!(v)),
        1 => any::<i64>().prop_map(|v| json!(v)),
        2 => Just(json!(0)),
        1 => Just(json!(7.5)),
        1 => Just(Value::Null),
        1 => Just(json!("text")),
        1 => prop::sample::select(vec![json!(f64::MAX), json!(f64::MIN_POSITIVE), json!(5e-324), json!(-0.0), json!(1e300)]),
    ]
}

fn axis_value() -> impl Strategy<Value = Value> {
    prop_oneof![3 => (0u64..600).prop_map(|v| json!(v)), 2 => value(), 1 => "[a-zA-Z<& _-]{0,40}".prop_map(|v| json!(v))]
}

#[test]
fn the_first_labels_of_both_axes_do_not_touch_in_the_corner() {
    let groups = json!({ "times": { "wall_s": 0.0 } });
    let records = [record("c", 1, false, &json!({ "x": 201 }), &groups)];
    let figure = json!({ "name": "f", "title": "t", "kind": "line", "x": "x", "y": "wall_s" });
    assert_legible("corner", &drawn(&spec(figure), &records).svg);
}

prop_compose! {
    fn records()(rows in prop::collection::vec((axis_value(), axis_value(), value(), value(), any::<bool>(), 0u64..4), 0..25)) -> Vec<Value> {
        rows.into_iter().enumerate().map(|(at, (x, s, a, b, counted, fate))| {
            let cell = format!("{x} {s}");
            let sample = json!({ "t_s": x, "a_s": a, "b": b });
            let groups = json!({ "g": { "a_s": a, "h": { "b": b } }, "samples": [sample.clone(), sample] });
            let mut made = record(&cell, at as u64, counted, &json!({ "x": x, "s": s }), &groups);
            match fate {
                0 => made["error"] = json!("failed\nover two lines"),
                1 if at % 5 == 0 => made["answer_ok"] = json!(false),
                _ => {}
            }
            made
        }).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_data_a_figure_is_drawn_or_refused(
        records in records(),
        kind in prop::sample::select(vec!["line", "bars", "stacked", "timeline"]),
        logs in (any::<bool>(), any::<bool>()),
        with_series in any::<bool>(),
        panels in prop::sample::select(vec![None, Some("quantity"), Some("s")]),
        published in prop::option::of(any::<f64>()),
        by_quantity in any::<bool>(),
    ) {
        let timeline = kind == "timeline";
        let y = if panels == Some("quantity") || timeline { json!(["a_s", "b"]) } else { json!("a_s") };
        let mut wanted = json!({ "name": "f", "title": "t", "kind": kind, "y": y, "log_y": logs.1 });
        if !timeline {
            wanted["x"] = json!(if by_quantity { "b" } else { "x" });
            wanted["log_x"] = json!(logs.0);
            if let Some(panels) = panels {
                wanted["panels"] = json!(panels);
            }
        }
        if with_series && panels != Some("s") {
            wanted["series"] = json!(["s"]);
        }
        let mut spec = spec(wanted);
        if let Some(y) = published && !timeline {
            spec.reference = vec![Reference {
                x: Scalar::Number(32.0), y: Some(Published::Value(y)), key: None, label: None,
                quantity: Some("a_s".to_owned()), series: None, panel: None,
            }];
        }
        match draw(&spec, &records, &DrawOptions { note: Some("quick run"), ..DrawOptions::default() }) {
            Ok(drawing) => {
                prop_assert!(drawing.svg.len() < 1_000_000, "{} bytes", drawing.svg.len());
                prop_assert!(!drawing.svg.contains("NaN") && !drawing.svg.contains("inf"));
                assert_legible("random", &drawing.svg);
            }
            Err(error) => prop_assert!(error.to_string().starts_with("figure `f`"), "{}", error),
        }
    }
}
