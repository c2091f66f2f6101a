//! Which runs, which values, what is never pooled.

use serde_json::{Value, json};

use super::gallery::spec;
use super::sample::{self, record};
use crate::report::figure::{DrawOptions, FigureError, FigureSpec, draw};

fn csv(spec: &FigureSpec, records: &[Value]) -> String {
    draw(spec, records, &DrawOptions::default()).unwrap().csv
}

fn refused(spec: &FigureSpec, records: &[Value]) -> String {
    draw(spec, records, &DrawOptions::default()).unwrap_err().to_string()
}

/// Runs of one cell: (run, counted, wall, bios).
fn cell(window: u64, runs: &[(u64, bool, f64, Option<u64>)]) -> Vec<Value> {
    let asked = json!({ "engine": "turso", "window": window, "gap": 0 });
    let made = |(run, counted, wall, bios): &(u64, bool, f64, Option<u64>)| {
        let groups = json!({ "times": { "wall_s": wall }, "block": { "bios": bios } });
        record(&format!("w{window}"), *run, *counted, &asked, &groups)
    };
    runs.iter().map(made).collect()
}

fn two_windows() -> Vec<Value> {
    let mut records = cell(0, &[(1, false, 11.0, None), (2, false, 12.0, None), (1, true, 13.5, Some(195_516))]);
    let timed = (1..=7).map(|run| (run, false, 1.0 + run as f64 / 100.0, None));
    let counted = [(1, true, 1.2, Some(218_493)), (2, true, 1.3, Some(218_490))];
    records.extend(cell(32, &timed.chain(counted).collect::<Vec<_>>()));
    records
}

fn window_spec(y: &[&str], panels: bool) -> FigureSpec {
    let mut value = json!({ "name": "f", "title": "t", "kind": "line", "x": "window", "y": y });
    if panels {
        value["panels"] = json!("quantity");
    }
    spec(value)
}

#[test]
fn times_are_from_timed_runs_and_counts_from_counted_ones() {
    insta::assert_snapshot!(csv(&window_spec(&["wall_s", "bios"], true), &two_windows()), @r"
    panel,series,x_name,x,quantity,source,n,median,low_95,high_95,min,max,host,samples,note
    ,wall time,window,0,wall_s,timed runs,2,11.5,,,11,12,3f9a1c77e0b24d55,11 12,
    ,wall time,window,32,wall_s,timed runs,7,1.04,1.02,1.06,1.01,1.07,3f9a1c77e0b24d55,1.01 1.02 1.03 1.04 1.05 1.06 1.07,
    ,wall time,window,0,bios,counted runs,1,195516,,,195516,195516,3f9a1c77e0b24d55,195516,
    ,wall time,window,32,bios,counted runs,2,218490,,,218490,218493,3f9a1c77e0b24d55,218493 218490,
    ");
}

#[test]
fn a_time_for_each_line_is_a_time_and_is_never_taken_from_a_run_that_tracepoints_slowed() {
    let run = |run: u64, counted: bool, ns: f64| {
        let groups = json!({ "scan": { "touch": { "touch_ns_per_line_p50": ns } } });
        record("c", run, counted, &json!({ "window": 32 }), &groups)
    };
    let mut records: Vec<Value> = (1..=7).map(|at| run(at, false, 1.0 + at as f64 / 100.0)).collect();
    records.push(run(1, true, 4.9));
    let csv = csv(&window_spec(&["touch_ns_per_line_p50"], false), &records);
    assert!(csv.contains(",touch_ns_per_line_p50,timed runs,7,1.04,"), "{csv}");
}

#[test]
fn failed_runs_are_not_drawn_and_a_wrong_answer_takes_its_cell_along() {
    let mut records = two_windows();
    records[0]["error"] = json!("timed out after 60 s");
    records[0]["times"]["wall_s"] = json!(0.001);
    records[5]["answer_ok"] = json!(false);
    let drawing = draw(&window_spec(&["wall_s"], false), &records, &DrawOptions::default()).unwrap();
    insta::assert_snapshot!(format!("{}\n{}", drawing.csv, drawing.warnings.join("\n")), @r"
    panel,series,x_name,x,quantity,source,n,median,low_95,high_95,min,max,host,samples,note
    ,wall time,window,0,wall_s,timed runs,1,12,,,12,12,3f9a1c77e0b24d55,12,
    ,wall time,window,32,wall_s,timed runs,0,,,,,,3f9a1c77e0b24d55,,a run of this cell gave a wrong answer

    w0: 1 of 3 runs failed and are not drawn (timed out after 60 s)
    w32: 1 of 9 runs failed and are not drawn (its answer is wrong)
    ");
}

#[test]
fn the_order_of_records_does_not_matter() {
    let records = sample::readahead();
    let spec = spec(json!({
        "name": "f", "title": "t", "kind": "line", "x": "window", "y": "wall_s", "series": ["engine", "submit"],
        "log_x": true,
    }));
    let mut shuffled = records.clone();
    crate::experiment::random::SplitMix64::new(7).shuffle(&mut shuffled);
    let options = DrawOptions::default();
    assert_eq!(draw(&spec, &records, &options).unwrap(), draw(&spec, &shuffled, &options).unwrap());
}

#[test]
fn cells_are_never_pooled() {
    let mut records = cell(32, &[(1, false, 1.0, None)]);
    let mut other = cell(32, &[(1, false, 2.0, None)]);
    other[0]["asked"]["gap"] = json!(16);
    other[0]["cell"] = json!("w32-gap16");
    records.extend(other);
    insta::assert_snapshot!(refused(&window_spec(&["wall_s"], false), &records), @"figure `f`: one point would pool runs of different cells, which differ in `gap` (0, 16); name each such axis in `series`, `panels` or `x`, or choose one value of it in `filter`");
    let mut filtered = window_spec(&["wall_s"], false);
    filtered.filter = serde_json::from_value(json!({ "gap": 16 })).unwrap();
    assert!(csv(&filtered, &records).contains(",2,"), "the filter chooses one cell");
}

#[test]
fn machines_are_never_pooled() {
    let mut records = cell(32, &[(1, false, 1.0, None), (2, false, 1.1, None)]);
    records[1]["environment"]["host"] = json!("77aa00bb11cc22dd");
    for kind in ["line", "bars", "stacked"] {
        let mut spec = window_spec(&["wall_s"], false);
        spec.kind = serde_json::from_value(json!(kind)).unwrap();
        let csv = csv(&spec, &records);
        let rows: Vec<&str> = csv.lines().skip(1).collect();
        assert_eq!(rows.len(), 2, "{kind}: {csv}");
        assert!(rows.iter().all(|row| row.contains(",timed runs,1,")), "{kind}: {csv}");
        assert!(csv.contains("host 77aa00") && csv.contains("host 3f9a1c"), "{kind}: {csv}");
    }
}

#[test]
fn names_that_do_not_exist_are_errors_that_list_those_that_do() {
    let records = two_windows();
    let mut by_axis = window_spec(&["wall_s"], false);
    by_axis.series = vec!["motor".to_owned()];
    let mut by_x = window_spec(&["wall_s"], false);
    by_x.x = vec!["windw".to_owned()];
    let unit = {
        let mut spec = window_spec(&["wall_s"], false);
        spec.y_unit = Some("MiB".to_owned());
        spec
    };
    let mixed = window_spec(&["wall_s", "bios"], false);
    let errors = [
        refused(&by_axis, &records),
        refused(&by_x, &records),
        refused(&window_spec(&["wal_s"], false), &records),
        refused(&unit, &records),
        refused(&mixed, &records),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    figure `f`: no record has an axis `motor`; there are engine, gap, window
    figure `f`: no record has an axis `windw`; a measured quantity can be x of kind = "line" only, and alone
    figure `f`: no record has `wal_s`; there are average_request_kib, bios, cpu_s, cpus_used, iops_per_cpu_s, ipc, merged_percent, miss_rate_percent, misses_per_page, ops_per_cpu_s, read_bytes_per_s, sqes_per_enter, sqpoll_spin_s, wall_s, wasted_percent
    figure `f`: unit `MiB` is not one of ns, µs, ms, s, us, min
    figure `f`: `wall_s` and `bios` cannot share an axis (s and a count): use panels = "quantity"
    "#);
}

#[test]
fn a_specification_is_checked_before_anything_is_drawn() {
    let good = json!({ "name": "f", "title": "t", "kind": "line", "x": "window", "y": "wall_s" });
    let with = |changes: Value| {
        let mut value = good.clone();
        for (key, change) in changes.as_object().unwrap() {
            value[key] = change.clone();
        }
        match serde_json::from_value::<FigureSpec>(value) {
            Ok(spec) => spec.check().map_or_else(|error| error.to_string(), |()| "accepted".to_owned()),
            Err(error) => error.to_string(),
        }
    };
    let answers = [
        with(json!({})),
        with(json!({ "name": "../x" })),
        with(json!({ "kolor": 1 })),
        with(json!({ "kind": "pie" })),
        with(json!({ "y": [] })),
        with(json!({ "kind": "bars", "log_y": true })),
        with(json!({ "kind": "timeline" })),
        with(json!({ "height_mm": 3 })),
        with(json!({ "reference": [{ "x": 0 }] })),
        with(json!({ "reference": [{ "x": 0, "y": 1, "quantity": "bios" }] })),
    ];
    insta::assert_snapshot!(answers.join("\n"), @r#"
    accepted
    figure `../x`: `name` becomes a file's name: use 1 to 100 letters, digits, `-` and `_`
    unknown field `kolor`, expected one of `name`, `title`, `caption`, `kind`, `x`, `y`, `series`, `filter`, `panels`, `log_x`, `log_y`, `x_label`, `y_label`, `x_unit`, `y_unit`, `labels`, `reference`, `width`, `height_mm`, `run`, `note`
    unknown variant `pie`, expected one of `line`, `bars`, `stacked`, `timeline`
    figure `f`: `y` names 0 quantities: name 1 to 8
    figure `f`: a bar's length means nothing on a logarithmic axis: use kind = "line", or leave out `log_x` and `log_y`
    figure `f`: a timeline has time for x and a panel for each y: leave out `x`, `panels`, `log_x` and `reference`
    figure `f`: `height_mm` is 3: use 30 to 240
    figure `f`: a `reference` needs either `y` or `key`, and not both
    figure `f`: a `reference` has quantity `bios`, which is not in `y` (wall_s)
    "#);
}

#[test]
fn published_values_are_looked_up_by_key() {
    let reference = sample::reference();
    let with = |entry: Value| {
        let mut spec = window_spec(&["bios"], false);
        spec.reference = vec![serde_json::from_value(entry).unwrap()];
        let options = DrawOptions { reference: Some(&reference), ..DrawOptions::default() };
        match draw(&spec, &two_windows(), &options) {
            Ok(drawing) if !drawing.warnings.is_empty() => {
                assert!(!drawing.csv.contains("published"), "{}", drawing.csv);
                drawing.warnings.join("; ")
            }
            Ok(drawing) => drawing.csv.lines().last().unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        }
    };
    let answers = [
        with(json!({ "x": 32, "key": "article.readahead.window_32.sqes", "label": "article" })),
        with(json!({ "x": 32, "key": "article.readahead.window_32.merged_percent" })),
        with(json!({ "x": 32, "key": "article.readahead.window_32.merged_percent.1" })),
        with(json!({ "x": 32, "key": "article.readahead.window_33.sqes" })),
        with(json!({ "x": 32, "key": "article.readahead.window_32.note" })),
        with(json!({ "x": "two", "y": 1 })),
        with(json!({ "x": 32, "y": 1, "series": "nobody" })),
        with(json!({ "x": 32, "y": [2, 1] })),
    ];
    insta::assert_snapshot!(answers.join("\n"), @r#"
    ,published: article,window,32,bios,published,,218212,,,,,,,
    ,published,window,32,bios,published,,,,,91,93,,,
    ,published,window,32,bios,published,,93,,,,,,,
    figure `f`: the published figures have no `article.readahead.window_33.sqes`: at `window_33` there are window_0, window_32
    figure `f`: published figure `article.readahead.window_32.note` is neither a number nor a range of two: name one, as in `article.readahead.window_32.note.0`
    figure `f`: a `reference` has x = "two", and x is a number in this figure
    a published value is left out: it belongs to the series `nobody`, and there are bios
    figure `f`: a `reference` has the range 2 to 1: lower end first
    "#);
}

#[test]
fn a_leaf_name_that_is_not_unique_needs_its_path() {
    let asked = json!({ "window": 32 });
    let groups = json!({ "queries": { "by_id": { "p99_us": 69.0 }, "by_email": { "p99_us": 71.0 } } });
    let records = [record("c", 1, false, &asked, &groups)];
    assert!(
        csv(&window_spec(&["p99_us"], false), &records)
            .contains("name one of queries.by_email.p99_us, queries.by_id.p99_us")
    );
    assert!(csv(&window_spec(&["by_id.p99_us"], false), &records).contains(",69,"));
}

#[test]
fn derived_quantities_follow_from_one_run() {
    let asked = json!({ "window": 32, "backend": "uring" });
    let groups = json!({
        "times": { "wall_s": 2.0, "user_s": 1.0, "system_s": 0.5, "sqpoll_s": null, "iowq_s": 0.0 },
        "scan": { "iops": 3000.0 },
        "block": { "bios": 200, "bios_merged": 150, "device_requests": 50, "device_bytes": 819_200 },
    });
    let records = [record("c", 1, false, &asked, &groups)];
    let value = |name: &str| {
        csv(&window_spec(&[name], false), &records).lines().nth(1).unwrap().split(',').nth(7).unwrap().to_owned()
    };
    assert_eq!(value("merged_percent"), "75");
    assert_eq!(value("average_request_kib"), "16");
    assert_eq!(value("cpu_s"), "1.5");
    assert_eq!(value("iops_per_cpu_s"), "4000");
    // What the record itself has under that name comes first.
    let mut stored = records.clone();
    stored[0]["scan"]["iops_per_cpu_s"] = json!(4100.0);
    assert!(csv(&window_spec(&["iops_per_cpu_s"], false), &stored).contains(",4100,"));
    // A poller whose time was not measured is not a poller that took none.
    let mut polled = records.clone();
    polled[0]["asked"]["backend"] = json!("uring-sqpoll");
    polled[0]["reasons"] = json!({ "sqpoll_s": "no permission" });
    assert!(csv(&window_spec(&["cpu_s"], false), &polled).contains("no permission"));
}

#[test]
fn a_timeline_shows_the_run_of_the_median_wall_and_gaps_where_nothing_was_measured() {
    let records = sample::sampled();
    let mut timeline = spec(json!({
        "name": "f", "title": "t", "kind": "timeline", "y": ["merged_percent"], "filter": { "engine": "sqlite" },
    }));
    let rows = csv(&timeline, &records);
    assert_eq!(rows.lines().count(), 121);
    assert!(
        rows.lines()
            .skip(1)
            .all(|row| row.contains("samples of a run") && row.ends_with("run 2") || row.ends_with("not measured"))
    );
    timeline.run = Some(3);
    assert!(csv(&timeline, &records).contains("run 3"));
    timeline.filter.clear();
    timeline.y = vec!["requests".to_owned()];
    assert!(refused(&timeline, &records).contains("there are bytes_per_s, cpu_percent, merged_percent"));
    timeline.y = vec!["cpu_percent".to_owned()];
    assert!(matches!(draw(&timeline, &records, &DrawOptions::default()), Err(FigureError::Pooled { .. })));
}

#[test]
fn a_figure_is_a_table_of_an_experiment_file() {
    let table = r#"
        name = "merged"
        title = "bios merged"
        kind = "line"
        x = "window"
        y = "merged_percent"
        series = ["engine", "submit"]
        log_x = true
        width = "page"
        [filter]
        backend = "uring"
        window = [0, 1, 32]
        [labels]
        turso = "Turso"
        [[reference]]
        x = 32
        key = "article.readahead.window_32.merged_percent"
        label = "article"
        [[reference]]
        x = 32
        y = [91, 93]
    "#;
    let from_toml: FigureSpec = toml::from_str(table).unwrap();
    from_toml.check().unwrap();
    let again: FigureSpec = serde_json::from_value(serde_json::to_value(&from_toml).unwrap()).unwrap();
    assert_eq!(again, from_toml);
    let csv = draw(
        &from_toml,
        &sample::readahead(),
        &DrawOptions { reference: Some(&sample::reference()), ..DrawOptions::default() },
    );
    let csv = csv.unwrap().csv;
    assert_eq!(csv.lines().filter(|row| row.contains(",published")).count(), 2, "{csv}");
    assert!(csv.contains("\"Turso, per-page\",window,32,merged_percent,counted runs,2,"), "{csv}");
}

#[test]
fn series_of_one_colour_are_those_of_one_value_of_the_first_axis_however_many_each_has() {
    let arm = |backend: &str, direct: &str| json!({ "backend": backend, "direct": direct, "window": 8 });
    let arms =
        [arm("pread", "disabled"), arm("uring", "disabled"), arm("uring", "required"), arm("uring-sqpoll", "required")];
    let groups = json!({ "times": { "wall_s": 1.0 } });
    let records: Vec<Value> = (0..4).map(|at| record(&format!("c{at}"), 1, false, &arms[at], &groups)).collect();
    let spec = spec(json!({
        "name": "f", "title": "t", "kind": "line", "x": "window", "y": "wall_s", "series": ["backend", "direct"],
    }));
    let data = crate::report::figure::select::select(&spec, &records, 1, None).unwrap();
    let looks: Vec<(usize, usize)> = data.series.iter().map(|series| (series.look.color, series.look.dash)).collect();
    assert_eq!(looks, [(0, 0), (1, 0), (1, 1), (2, 0)]);
}

#[test]
fn an_empty_label_leaves_a_value_out_of_the_name() {
    let arm = |threads: u32| json!({ "backend": "uring", "threads": threads, "window": 8 });
    let groups = json!({ "times": { "wall_s": 1.0 } });
    let records = [record("a", 1, false, &arm(1), &groups), record("b", 1, false, &arm(2), &groups)];
    let spec = spec(json!({
        "name": "f", "title": "t", "kind": "line", "x": "window", "y": "wall_s", "series": ["backend", "threads"],
        "labels": { "threads=1": "", "threads=2": "two threads" },
    }));
    let data = crate::report::figure::select::select(&spec, &records, 1, None).unwrap();
    let names: Vec<&str> = data.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["wall time", "two threads"]);
}

#[test]
fn times_of_each_line_are_taken_from_the_runs_without_tracepoints() {
    let asked = json!({ "backend": "uring", "window": 8 });
    let probe = |ns: f64| json!({ "scan": { "touch": { "touch_ns_per_line_p50": ns } } });
    let records = [record("c", 1, true, &asked, &probe(9.0)), record("c", 1, false, &asked, &probe(2.0))];
    let rows = csv(&window_spec(&["touch_ns_per_line_p50"], false), &records);
    assert!(rows.contains("timed runs,1,2,") && !rows.contains(",9,"), "{rows}");
}

#[test]
fn a_name_that_several_axes_make_can_be_given_another_one_as_a_whole() {
    let arm = |backend: &str, idle: u32| json!({ "backend": backend, "sqpoll_idle_ms": idle });
    let groups = json!({ "times": { "wall_s": 1.0 } });
    let records = [
        record("a", 1, false, &arm("uring", 1000), &groups),
        record("b", 1, false, &arm("uring-sqpoll", 3), &groups),
        record("c", 1, false, &arm("uring-sqpoll", 1000), &groups),
    ];
    let mut figure = json!({
        "name": "f", "title": "t", "kind": "bars", "x": ["backend", "sqpoll_idle_ms"], "y": "wall_s",
        "labels": {
            "uring": "plain ring", "uring-sqpoll": "", "sqpoll_idle_ms=3": "3", "sqpoll_idle_ms=1000": "1000",
            "plain ring, 1000": "plain ring",
        },
    });
    let select =
        |figure: &Value| crate::report::figure::select::select(&spec(figure.clone()), &records, 1, None).unwrap();
    assert_eq!(select(&figure).x.categories.unwrap(), ["plain ring", "3", "1000"]);

    figure["kind"] = json!("line");
    (figure["series"], figure["x"]) = (json!("backend"), json!("sqpoll_idle_ms"));
    figure["labels"] = json!({ "uring-sqpoll": "SQPOLL", "SQPOLL": "SQPOLL, second CPU" });
    let names: Vec<String> = select(&figure).series.into_iter().map(|series| series.name).collect();
    assert_eq!(names, ["uring", "SQPOLL, second CPU"]);
}
