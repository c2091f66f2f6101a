#![allow(clippy::unwrap_used, clippy::panic)]
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::experiment::campaign::DataIdentity;
use crate::experiment::file::{self, Overrides};
use crate::experiment::folder::{self, CAMPAIGN_FILE, FAILED_FILE, RUNS_FILE, TORN_FILE, WARMUP_FILE};
use crate::experiment::runner::Outcome;
use crate::measure::environment::Environment;

/// Answers without measuring; from run number `stop_at` on it meets a signal.
#[derive(Default)]
struct Mock {
    ran: Vec<RunId>,
    stop_at: Option<usize>,
    fail: bool,
}

impl Executor for Mock {
    fn execute(&mut self, spec: &RunSpec) -> Outcome {
        if self.stop_at == Some(self.ran.len()) {
            return Outcome::Interrupted(15);
        }
        let mut record = spec.blank_record();
        if self.fail && spec.run == 1 && !spec.counted {
            record = spec.failed_record("the device is gone");
        }
        record.explain_rest("a mock measures nothing");
        self.ran.push(RunId::of(&record));
        Outcome::Done(Box::new(record))
    }
}

struct Silent;

impl Observer for Silent {
    fn starting(&mut self, _: usize, _: usize, _: &RunSpec) {}

    fn finished(&mut self, _: &Record) -> io::Result<()> {
        Ok(())
    }
}

const TEXT: &str = "\
name = \"e\"
question = \"?\"
workload = { kind = \"query\", sql = \"tpch/q06\" }
protocol = { runs = 3, warmup = 1 }
[[matrix]]
engine = \"sqlite\"
window = 0
runs = 1
[[matrix]]
engine = [\"sqlite\", \"turso\"]
window = 32
";

/// What one sitting is asked for; the rest is the same in all of them.
#[derive(Clone)]
struct Asked {
    text: String,
    shard: Option<Shard>,
    resume: bool,
    accept_change: bool,
    retry_failed: bool,
    made_with: MadeWith,
}

impl Asked {
    fn new(resume: bool) -> Asked {
        let data = DataIdentity {
            path: "x".to_owned(),
            manifest: None,
            size_bytes: 1,
            modified_unix_ns: 0,
            change_counter: None,
        };
        let made_with = MadeWith {
            ioscope_version: "1".to_owned(),
            binary_digest: "d".to_owned(),
            data,
            environment: Environment::default(),
        };
        Asked { text: TEXT.to_owned(), shard: None, resume, accept_change: false, retry_failed: false, made_with }
    }

    fn experiment(&self) -> (Definition, Experiment) {
        let definition = file::parse(&self.text, Path::new("e.toml"), &Overrides::default()).unwrap();
        let experiment = definition.experiment("/nowhere/x.db".into());
        (definition, experiment)
    }

    fn open(&self, folder: &Path) -> Result<Sitting, SittingError> {
        let (definition, experiment) = self.experiment();
        let request = Request {
            text: &self.text,
            definition: &definition,
            experiment: &experiment,
            overrides: KeptOverrides::default(),
            shard: self.shard,
            made_with: self.made_with.clone(),
            resume: self.resume,
            accept_change: self.accept_change,
            retry_failed: self.retry_failed,
            now_unix_s: 7,
        };
        Sitting::open(Folder::lock(folder)?, &request)
    }

    fn sit(&self, folder: &Path, mock: &mut Mock) -> Finished {
        self.open(folder).unwrap().run(mock, &mut Silent)
    }

    fn plan(&self) -> Vec<RunId> {
        let (_, experiment) = self.experiment();
        runs_of(&experiment, self.shard).iter().map(|run| experiment.run_id(run)).collect()
    }
}

fn stored(folder: &Path) -> Vec<RunId> {
    folder::read_records(folder).unwrap().records.iter().map(RunId::of).collect()
}

/// Three cells: (1 + 1) + (1 + 3) + (1 + 3) runs.
const RUNS: usize = 10;

#[test]
fn stopped_after_any_number_of_runs_the_rest_is_made_in_the_same_order() {
    let whole = Asked::new(false).plan();
    assert_eq!(whole.len(), RUNS);
    for stop_at in 0..=RUNS {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Mock { stop_at: Some(stop_at), ..Mock::default() };
        let finished = Asked::new(false).sit(folder.path(), &mut first);
        assert_eq!((finished.records.len(), finished.interrupted.is_some()), (stop_at, stop_at < RUNS));
        let mut second = Mock::default();
        Asked::new(true).sit(folder.path(), &mut second);
        assert_eq!([first.ran, second.ran].concat(), whole);
        assert_eq!(stored(folder.path()), whole);
        // A third sitting has nothing to do.
        assert!(Asked::new(true).open(folder.path()).unwrap().todo.is_empty());
    }
}

#[test]
fn a_last_line_that_was_cut_is_set_aside_and_its_run_made_again() {
    let whole = Asked::new(false).plan();
    let folder = tempfile::tempdir().unwrap();
    Asked::new(false).sit(folder.path(), &mut Mock { stop_at: Some(4), ..Mock::default() });
    let file = folder.path().join(RUNS_FILE);
    let text = std::fs::read(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 30]).unwrap();
    let mut sitting = Asked::new(true).open(folder.path()).unwrap();
    assert_eq!(sitting.problems.len(), 1);
    assert!(sitting.problems[0].to_string().starts_with("line 4 is cut short"), "{}", sitting.problems[0]);
    sitting.run(&mut Mock::default(), &mut Silent);
    drop(sitting);
    assert_eq!(stored(folder.path()), whole);
    let last_line = text[..text.len() - 30].rsplit(|&byte| byte == b'\n').next().unwrap();
    assert_eq!(std::fs::read(folder.path().join(TORN_FILE)).unwrap(), [last_line, b"\n"].concat());
}

#[test]
fn a_line_in_the_middle_that_is_no_record_is_made_again_too() {
    let whole = Asked::new(false).plan();
    let folder = tempfile::tempdir().unwrap();
    Asked::new(false).sit(folder.path(), &mut Mock::default());
    let file = folder.path().join(RUNS_FILE);
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    std::fs::write(&file, text.replacen(lines[2], "{}", 1)).unwrap();
    let mut mock = Mock::default();
    Asked::new(true).sit(folder.path(), &mut mock);
    assert_eq!(mock.ran, [whole[2].clone()]);
    let read = folder::read_records(folder.path()).unwrap();
    assert_eq!((read.records.len(), read.problems.len()), (RUNS, 1));
}

#[test]
fn records_are_not_added_to_unless_somebody_says_so() {
    let folder = tempfile::tempdir().unwrap();
    Asked::new(false).sit(folder.path(), &mut Mock { stop_at: Some(0), ..Mock::default() });
    // Nothing is there yet: begun anew.
    Asked::new(false).sit(folder.path(), &mut Mock { stop_at: Some(2), ..Mock::default() });
    let error = Asked::new(false).open(folder.path()).unwrap_err();
    assert!(matches!(error, SittingError::HasRecords { lines: 2, .. }), "{error}");
    assert_eq!(stored(folder.path()).len(), 2);
}

#[test]
fn what_changed_is_named_and_an_accepted_change_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    Asked::new(false).sit(folder.path(), &mut Mock { stop_at: Some(3), ..Mock::default() });
    let plan = std::fs::read(folder.path().join(CAMPAIGN_FILE)).unwrap();
    let mut changed = Asked::new(true);
    changed.made_with.binary_digest = "other".to_owned();
    changed.made_with.data.size_bytes = 2;
    changed.text = TEXT.replace("runs = 3", "runs = 4");
    match changed.open(folder.path()).unwrap_err() {
        SittingError::Changed { what, .. } => assert_eq!(
            what,
            [
                "the experiment's file",
                "the plan: number of runs 10 then, 12 now",
                "the program: ioscope 1 (d) then, 1 (other) now",
                "the data: 1 bytes then, 2 now",
            ]
        ),
        other => panic!("{other}"),
    }
    assert_eq!(std::fs::read(folder.path().join(CAMPAIGN_FILE)).unwrap(), plan, "a refusal changes nothing");
    changed.accept_change = true;
    let mut mock = Mock::default();
    changed.sit(folder.path(), &mut mock);
    assert_eq!((mock.ran.len(), stored(folder.path())), (9, changed.plan()));
    let campaign = folder::read_campaign(folder.path()).unwrap().unwrap();
    assert_eq!((campaign.changes.len(), campaign.changes[0].records_before, campaign.changes[0].at_unix_s), (1, 3, 7));
    assert_eq!(std::fs::read_to_string(folder.path().join("experiment.toml")).unwrap(), changed.text);
    // Accepted once: it is no change any more.
    changed.accept_change = false;
    assert!(changed.open(folder.path()).unwrap().changes.is_empty());
}

#[test]
fn a_failed_run_stays_until_somebody_wants_it_made_again() {
    let folder = tempfile::tempdir().unwrap();
    Asked::new(false).sit(folder.path(), &mut Mock { fail: true, ..Mock::default() });
    assert!(Asked::new(true).open(folder.path()).unwrap().todo.is_empty());
    let again = Asked { retry_failed: true, ..Asked::new(true) };
    let mut mock = Mock::default();
    again.sit(folder.path(), &mut mock);
    assert_eq!(mock.ran.len(), 3);
    let read = folder::read_records(folder.path()).unwrap();
    assert!(read.records.iter().all(|record| record.error.is_none()));
    let mut made = stored(folder.path());
    made.sort();
    let mut planned = again.plan();
    planned.sort();
    assert_eq!(made, planned);
    let failed = crate::experiment::records::read(&folder.path().join(FAILED_FILE)).unwrap();
    assert_eq!(failed.records.len(), 3);
    assert_eq!(folder::read_campaign(folder.path()).unwrap().unwrap().changes.len(), 1);
}

#[test]
fn warm_up_runs_are_made_in_every_sitting_and_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut mock = Mock::default();
    let mut sitting = Asked::new(false).open(folder.path()).unwrap();
    let finished = sitting.warm_up(&mut mock, &mut Silent).unwrap();
    assert_eq!(finished.records.len(), 3);
    sitting.run(&mut Mock { stop_at: Some(9), ..Mock::default() }, &mut Silent);
    drop(sitting);
    assert_eq!(stored(folder.path()).len(), 9);
    assert_eq!(std::fs::read_to_string(folder.path().join(WARMUP_FILE)).unwrap().lines().count(), 3);
    // Only cells that have runs left.
    assert_eq!(Asked::new(true).open(folder.path()).unwrap().warmup.len(), 1);
}

#[test]
fn a_shard_has_a_folder_and_runs_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let shard = |text: &str| Some(text.parse::<Shard>().unwrap());
    let first = Asked { shard: shard("1/2"), ..Asked::new(false) };
    first.sit(folder.path(), &mut Mock { stop_at: Some(1), ..Mock::default() });
    let other = Asked { shard: shard("2/2"), ..Asked::new(true) };
    let error = other.open(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("holds shard 1/2, not shard 2/2"), "{error}");
    let none = tempfile::tempdir().unwrap();
    let error = Asked { shard: shard("5/5"), ..Asked::new(false) }.open(&none.path().join("x")).unwrap_err();
    assert_eq!(error.to_string(), "shard 5/5 has no runs: the plan has 4 rounds, and a shard is whole rounds");
    assert!(!none.path().join("x").exists(), "nothing is left behind");
    for bad in ["0/2", "3/2", "1", "1/0", "/", "a/b", "-1/2", "+1/2"] {
        assert!(bad.parse::<Shard>().is_err(), "{bad}");
    }
}

#[test]
fn a_newer_layout_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    Asked::new(false).sit(folder.path(), &mut Mock::default());
    let file = folder.path().join(RUNS_FILE);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"schema\":1", "\"schema\":9", 1)).unwrap();
    let error = Asked::new(true).open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("line 1 is a record of layout 9"), "{error}");
    let file = folder.path().join(CAMPAIGN_FILE);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"schema\": 1", "\"schema\": 9", 1)).unwrap();
    let error = Asked::new(true).open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("it has layout 9"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 40, ..ProptestConfig::default() })]

    /// However often it is stopped, and wherever the last line is cut, the runs are those of an undisturbed campaign.
    #[test]
    fn any_stops_and_cuts_end_in_the_same_set(stops in proptest::collection::vec((0usize..5, any::<Index>(), any::<bool>()), 0..6)) {
        let folder = tempfile::tempdir().unwrap();
        let mut resume = false;
        for (stop_at, cut, is_cut) in stops {
            Asked::new(resume).sit(folder.path(), &mut Mock { stop_at: Some(stop_at), ..Mock::default() });
            resume = true;
            let file = folder.path().join(RUNS_FILE);
            let text = std::fs::read(&file).unwrap();
            if is_cut && !text.is_empty() {
                std::fs::write(&file, &text[..cut.index(text.len())]).unwrap();
            }
        }
        Asked::new(resume).sit(folder.path(), &mut Mock::default());
        let (mut made, mut planned) = (stored(folder.path()), Asked::new(false).plan());
        made.sort();
        planned.sort();
        prop_assert_eq!(made, planned);
    }

    /// Shards are disjoint, and together they are the whole; each has whole rounds in the plan's own order.
    #[test]
    fn shards_are_a_partition(count in 1u32..8, seed: u64) {
        let asked = Asked { text: TEXT.replace("runs = 3", &format!("runs = 3, seed = {}", seed >> 1)), ..Asked::new(false) };
        let (_, experiment) = asked.experiment();
        let whole = runs_of(&experiment, None);
        let mut together = Vec::new();
        for number in 1..=count {
            let shard = runs_of(&experiment, Some(Shard { number, count }));
            prop_assert!(shard.is_sorted_by_key(|run| run.round));
            let expected: Vec<PlannedRun> = whole.iter().filter(|run| run.round % count == number - 1).copied().collect();
            prop_assert_eq!(&shard, &expected);
            together.extend(shard);
        }
        together.sort_by_key(|run| whole.iter().position(|other| other == run));
        prop_assert_eq!(together, whole);
    }
}
