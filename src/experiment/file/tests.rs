#![allow(clippy::unwrap_used)]
use super::*;
use crate::experiment::campaign::Plan;
use proptest::prelude::*;

const SMALL: &str = "\
name = \"small\"
question = \"?\"
[workload]
kind = \"query\"
sql = \"tpch/q06\"
";

fn at(text: &str) -> Result<Definition, FileError> {
    parse(text, Path::new("e.toml"), &Overrides::default())
}

/// The small file with other lines after it; its own are five.
fn with(text: &str) -> Result<Definition, FileError> {
    at(&format!("{SMALL}{text}"))
}

fn error(text: &str) -> String {
    with(text).unwrap_err().to_string()
}

fn names(definition: &Definition) -> Vec<(&str, u32)> {
    definition.cells.iter().map(|cell| (cell.name.as_str(), cell.runs)).collect()
}

fn shipped(name: &str) -> Definition {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments").join(name);
    load(&path, &Overrides::default()).unwrap().definition
}

#[test]
fn the_smallest_file_has_a_cell_for_each_engine() {
    let definition = with("[[matrix]]\n").unwrap();
    assert_eq!(names(&definition), [("turso-uring-w32", 7), ("sqlite-uring-w32", 7)]);
    assert_eq!(definition.about.title, "small");
    assert_eq!(definition.workload.name(), "q06");
    assert_eq!(definition.dataset.to_string(), "TPC-H, scale 1, pages of 4096 bytes");
}

#[test]
fn matrices_are_united_and_keep_their_own_runs() {
    let definition = with(
        "[protocol]\nruns = 5\n[[matrix]]\nengine = \"sqlite\"\nwindow = 0\nruns = 3\n\
         [[matrix]]\nengine = \"sqlite\"\nwindow = [8, 32]\nsubmit = [\"per-page\", \"coalesced\"]\n\
         [[exclude]]\nwindow = 8\nsubmit = \"coalesced\"\nreason = \"too many\"\n",
    )
    .unwrap();
    assert_eq!(
        names(&definition),
        [("sqlite-uring-w0", 3), ("sqlite-uring-w8", 5), ("sqlite-uring-w32", 5), ("sqlite-uring-w32-coalesced", 5)]
    );
    assert_eq!(
        definition.left_out,
        [super::super::plan::LeftOut { what: "sqlite-uring-w8-coalesced".to_owned(), why: "too many".to_owned() }]
    );
}

#[test]
fn cpus_and_the_idle_time_are_axes_and_in_the_name() {
    let definition = with(
        "[[matrix]]\nengine = \"sqlite\"\nbackend = [\"uring\", \"uring-sqpoll\"]\ncpus = [\"0\", \"0,1\"]\n\
         sqpoll_idle_ms = [1000, 10]\n[[ratio]]\ntitle = \"r\"\nbaseline = { backend = \"uring\" }\n",
    )
    .unwrap();
    let names: Vec<&str> = names(&definition).iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "sqlite-uring-w32-cpu0",
            "sqlite-uring-w32-cpu0-1",
            "sqlite-uring-sqpoll-w32-cpu0",
            "sqlite-uring-sqpoll-w32-cpu0-1",
            "sqlite-uring-sqpoll-w32-idle10ms-cpu0",
            "sqlite-uring-sqpoll-w32-idle10ms-cpu0-1",
        ]
    );
    let pairs: Vec<(&str, &str)> =
        definition.ratios[0].pairs.iter().map(|pair| (pair.cell.as_str(), pair.baseline.as_str())).collect();
    assert_eq!(
        pairs,
        [
            ("sqlite-uring-sqpoll-w32-cpu0", "sqlite-uring-w32-cpu0"),
            ("sqlite-uring-sqpoll-w32-cpu0-1", "sqlite-uring-w32-cpu0-1"),
            ("sqlite-uring-sqpoll-w32-idle10ms-cpu0", "sqlite-uring-w32-cpu0"),
            ("sqlite-uring-sqpoll-w32-idle10ms-cpu0-1", "sqlite-uring-w32-cpu0-1"),
        ]
    );
}

#[test]
fn scans_stand_beside_the_query_or_alone() {
    let scans = "[[scan]]\nbackend = [\"uring\", \"uring-sqpoll\"]\nrandom = 1000\ndepth = [1, 8]\ncpus = \"0\"\n\
                 [[scan]]\nrandom = 1000\ndepth = 8\nthreads = 2\ncpus = \"0,1\"\nruns = 3\n\
                 [[exclude]]\nbackend = \"uring-sqpoll\"\ndepth = 1\nreason = \"r\"\n\
                 [[ratio]]\ntitle = \"poller\"\nbaseline = { backend = \"uring\" }\n\
                 [[ratio]]\ntitle = \"depth\"\nbaseline = { depth = 1 }\n";
    let alone = at(&format!("name = \"s\"\nquestion = \"?\"\n{scans}")).unwrap();
    assert_eq!(
        names(&alone),
        [
            ("scan-uring-random-n1000-qd1-cpu0", 7),
            ("scan-uring-random-n1000-qd8-cpu0", 7),
            ("scan-uring-sqpoll-random-n1000-qd8-cpu0", 7),
            ("scan-uring-random-n1000-qd8-t2-cpu0-1", 3),
        ]
    );
    let pair = |cell: &str, baseline: &str| crate::experiment::definition::Pair {
        cell: cell.into(),
        baseline: baseline.into(),
    };
    assert_eq!(alone.ratios[0].pairs, [pair(names(&alone)[2].0, names(&alone)[1].0)]);
    assert_eq!(alone.ratios[1].pairs, [pair(names(&alone)[1].0, names(&alone)[0].0)]);
    let beside = with(&format!("[[matrix]]\nengine = \"sqlite\"\n{scans}")).unwrap();
    assert_eq!(beside.cells.len(), 1 + 4);
    let experiment = beside.experiment("x".into());
    let asked: Vec<String> = experiment.cells.iter().map(|cell| experiment.asked(cell).query).collect();
    assert_eq!(asked, ["q06", "scan", "scan", "scan", "scan"]);
    let plan = Plan::of(&beside, &experiment);
    assert_eq!((&plan.cells[1].axes["depth"], plan.cells[0].axes.get("depth")), (&1.into(), None));
}

#[test]
fn the_command_line_goes_before_the_file() {
    let overrides = Overrides { runs: Some(2), scale: Some(Scale::new(0.01).unwrap()), ..Overrides::default() };
    let text = format!("{SMALL}[[matrix]]\nwindow = 0\nruns = 3\n[[matrix]]\nwindow = 8\nruns = 1\n[[matrix]]\n");
    let definition = parse(&text, Path::new("e.toml"), &overrides).unwrap();
    assert_eq!(definition.cells.iter().map(|cell| cell.runs).collect::<Vec<_>>(), [2, 2, 1, 1, 2, 2]);
    assert_eq!(definition.dataset.to_string(), "TPC-H, scale 0.01, pages of 4096 bytes");
}

#[test]
fn a_query_lies_beside_the_experiment() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.sql"), "SELECT 1").unwrap();
    let text = SMALL.replace("tpch/q06", "mine.sql") + "[[matrix]]\n";
    let definition = parse(&text, &folder.path().join("e.toml"), &Overrides::default()).unwrap();
    assert_eq!(definition.workload.name(), "mine");
    let missing = at(&(SMALL.replace("tpch/q06", "no.sql") + "[[matrix]]\n")).unwrap_err();
    assert_eq!(missing.to_string(), "e.toml, line 5: query no.sql: No such file or directory (os error 2)");
}

#[test]
fn published_values_come_with_what_is_said_of_them() {
    let about = shipped("readahead.toml").about;
    assert_eq!(about.reference[0].values["window_32"]["sqes"], 218_212);
    assert!(about.reference[0].source["query"].is_string() && about.reference[0].source.get("readahead").is_none());
    let text = SMALL.replace("question", "reference = [\"article.readahed\"]\nquestion") + "[[matrix]]\n";
    let error = at(&text).unwrap_err().to_string();
    assert!(error.starts_with("e.toml, line 2: the published values that are built in has no section"), "{error}");
    assert!(error.ends_with("did you mean 'article.readahead'?"), "{error}");
}

/// Whatever is wrong is told once, with its line and what is known.
#[test]
fn errors_name_the_line_and_the_nearest_known_value() {
    let unknown_key = error("[[matrix]]\nwindow = 1\nwindw = 3\n");
    assert!(unknown_key.starts_with("e.toml, line 8: unknown key 'windw'; known here: "), "{unknown_key}");
    assert!(unknown_key.ends_with("did you mean 'window'?"), "{unknown_key}");
    assert!(error("[protcol]\n").contains("line 6: unknown key 'protcol'"));
    assert_eq!(
        error("[[matrix]]\nengine = [\"turso\",\n \"sqlit\"]\n"),
        "e.toml, line 8: unknown engine 'sqlit'; known: sqlite, turso; did you mean 'sqlite'?"
    );
    assert_eq!(
        error("[[matrix]]\nwindow = [0, 5000]\n"),
        "e.toml, line 7: window '5000' is out of range; a whole number from 0 to 4096"
    );
    assert_eq!(
        error("[[matrix]]\nwindow = []\n"),
        "e.toml, line 7: the list is empty, so there is nothing to run; name a value, or leave the axis out"
    );
    assert_eq!(error(""), "e.toml: there is no [[matrix]] and no [[scan]], so there is nothing to run");
    assert_eq!(
        error("[protocol]\nruns = 0\n[[matrix]]\n"),
        "e.toml, line 7: runs = 0 is out of range; a whole number from 1 to 10000"
    );
    assert_eq!(
        error("[[matrix]]\nruns = 0\n"),
        "e.toml, line 7: runs = 0 is out of range; a whole number from 1 to 10000"
    );
    assert_eq!(
        error("[[matrix]]\nengine = \"sqlite\"\n[[exclude]]\nengine = \"sqlite\"\nreason = \"all\"\n"),
        "e.toml, line 8: every cell is excluded, so there is nothing to run"
    );
    assert_eq!(
        error("[[matrix]]\nengine = \"sqlite\"\n[[exclude]]\nengine = \"turso\"\nreason = \"r\"\n"),
        "e.toml, line 8: this [[exclude]] meets no cell"
    );
    assert_eq!(error("[[matrix]]\n[[exclude]]\nengine = \"turso\"\n"), "e.toml, line 7: the key 'reason' is missing");
    assert_eq!(
        error("[[matrix]]\n[[exclude]]\nengine = \"turso\"\nreason = \" \"\n"),
        "e.toml, line 7: the reason of this [[exclude]] is empty"
    );
    assert_eq!(
        error("[[matrix]]\nbackend = \"builtin\"\ndirect = \"required\"\n"),
        "e.toml, line 6: no combination of the matrix is possible: builtin x direct required"
    );
    assert_eq!(
        error("[[matrix]]\nwindow = 0\nruns = 3\n[[matrix]]\nwindow = [0, 1]\n"),
        "e.toml, line 9: turso-uring-w0 is in an earlier table too, with 3 runs there and 7 here"
    );
    assert_eq!(
        error("[[matrix]]\n[[ratio]]\ntitle = \"r\"\nbaseline = { window = 0 }\n"),
        "e.toml, line 7: no cell of this [[ratio]] has its baseline among the cells"
    );
    assert_eq!(
        error("[protocol]\ntimeout = \"soon\"\n"),
        "e.toml, line 7: 'soon' is no duration; write it as 90, 500ms, 10m or 2h, or none"
    );
    assert_eq!(
        error("[protocol]\ncpus = \"0-\"\n"),
        "e.toml, line 7: '0-' is not a list of CPUs; write it as 0, 0-3, 0,2 or 0-6:2"
    );
    assert_eq!(
        error("[dataset]\nkind = \"tpcds\"\n[[matrix]]\n"),
        "e.toml, line 7: unknown data set 'tpcds'; known: tpch; did you mean 'tpch'?"
    );
    assert!(error("[dataset]\nscale = -1\n").starts_with("e.toml, line 7: scale -1 is out of range"));
    assert!(error("[dataset]\npage_size = 1000\n").starts_with("e.toml, line 7: page_size 1000 is none of SQLite's"));
    assert!(error("[[matrix\n").starts_with("e.toml, line 6: "));
    let unknown_workload = at(&SMALL.replace("\"query\"", "\"quary\"")).unwrap_err().to_string();
    assert_eq!(unknown_workload, "e.toml, line 4: unknown workload 'quary'; known: query; did you mean 'query'?");
    assert_eq!(
        at("name = \"x\"\nquestion = \"?\"\n[[matrix]]\n").unwrap_err().to_string(),
        "e.toml, line 3: there is no [workload], so the cells of this [[matrix]] ask nothing"
    );
    assert!(error("[[scan]]\nengine = \"turso\"\n").starts_with("e.toml, line 7: unknown key 'engine'"));
    assert!(
        error("[[scan]]\nbackend = \"builtin\"\n")
            .starts_with("e.toml, line 7: unknown backend 'builtin'; known: pread,")
    );
    assert!(error("[[scan]]\nthink = \"2 us\"\n").starts_with("e.toml, line 7: '2 us' is no span of time"));
    assert!(error("[[scan]]\nrandom = 0\n").starts_with("e.toml, line 7: random '0' is out of range"));
    assert!(at(&SMALL.replace("small", "../x")).unwrap_err().to_string().starts_with("e.toml, line 1: the name"));
}

#[test]
fn the_shipped_experiments_ask_what_they_say() {
    let readahead = shipped("readahead.toml");
    assert_eq!(readahead.cells.len(), 2 + 2 * 9 * 2 - 2);
    assert!(readahead.cells.iter().filter(|cell| cell.runs == 3).all(|cell| cell.name.ends_with("-direct-w0")));
    assert_eq!(readahead.ratios[0].pairs.len(), readahead.cells.len() - 2);
    assert_eq!(readahead.ratios[1].pairs.len(), 2 * 8);
    let sqpoll = shipped("sqpoll.toml");
    let of =
        |definition: &Definition, prefix: &str| names(definition).iter().filter(|n| n.0.starts_with(prefix)).count();
    // (a) 8; (b) 2 * 6 + 6 + 5; (c) 2 * 4; (d) a plain ring and four idle times.
    assert_eq!((sqpoll.cells.len() - of(&sqpoll, "scan"), of(&sqpoll, "scan")), (8, 23 + 8 + 5));
    let pairs: Vec<usize> = sqpoll.ratios.iter().map(|ratio| ratio.pairs.len()).collect();
    // Each poller has a plain ring; each of two engines on two backends has one CPU; five depths have two threads.
    assert_eq!(pairs, [4 + 12 + 4 + 4, 4, 5, 3]);
    let misses = shipped("cache-misses.toml");
    assert_eq!((misses.cells.len() - of(&misses, "scan"), of(&misses, "scan")), (8 + 2 + 6 + 2, 12 + 6));
    for definition in [&readahead, &sqpoll, &misses] {
        let what = &definition.left_out;
        assert!(what.iter().all(|left_out| left_out.why.contains("per-page cell again")), "{what:?}");
    }
}

/// Every section of the published values can be asked for.
#[test]
fn the_published_values_are_readable() {
    let text = include_str!("../../../experiments/reference.toml");
    let table: toml::Table = toml::from_str(text).unwrap();
    assert_eq!(table.keys().map(String::as_str).collect::<Vec<_>>(), ["app", "article", "turso_8389"]);
}

#[test]
fn the_plan_is_the_same_wherever_the_database_lies() {
    let definition = with("[[matrix]]\n").unwrap();
    let plan = |path: &str| Plan::of(&definition, &definition.experiment(path.into()));
    assert_eq!(plan("/a/x.db").digest(), plan("data/y.db").digest());
    let read: Plan = serde_json::from_str(&serde_json::to_string(&plan("x")).unwrap()).unwrap();
    assert_eq!(read, plan("x"));
    assert_eq!(plan("x").cells[0].axes["window"], 32);
    assert_eq!(plan("x").order.len(), 2 * 8);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in ".{0,200}") {
        let _ = at(&text);
        let _ = with(&text);
    }

    #[test]
    fn any_change_of_a_shipped_file_is_answered(at_byte in 0usize..2000, with in "[a-z0-9\\[\\]{}=\". ,]{0,3}") {
        let text = include_str!("../../../experiments/readahead.toml");
        let at_byte = at_byte % text.len();
        if text.is_char_boundary(at_byte) && text.is_char_boundary(at_byte + 1) {
            let changed = format!("{}{with}{}", &text[..at_byte], &text[at_byte + 1..]);
            let _ = at(&changed);
        }
    }
}
