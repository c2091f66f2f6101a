#![allow(clippy::unwrap_used)]
use super::*;
use crate::experiment::campaign::{
    CAMPAIGN_SCHEMA, DataIdentity, KeptOverrides, MadeWith, Plan, Shard, digest, runs_of,
};
use crate::experiment::file::{self, Overrides};
use crate::measure::environment::Environment;

const TEXT: &str = "\
name = \"e\"
question = \"?\"
workload = { kind = \"query\", sql = \"tpch/q06\" }
protocol = { runs = 3 }
[[matrix]]
";

/// The folder of a shard, whose runs were made on `host`.
fn shard(folder: &Path, text: &str, number: u32, count: u32, host: &str) -> PathBuf {
    let definition = file::parse(text, Path::new("e.toml"), &Overrides::default()).unwrap();
    let experiment = definition.experiment("/nowhere/x.db".into());
    let shard = Shard { number, count };
    let plan = Plan::of(&definition, &experiment);
    let data = DataIdentity {
        path: host.to_owned(),
        manifest: None,
        size_bytes: 1,
        modified_unix_ns: i64::from(number),
        change_counter: None,
    };
    let made_with = MadeWith {
        ioscope_version: "1".to_owned(),
        binary_digest: "d".to_owned(),
        data,
        environment: Environment { host: Some(host.to_owned()), ..Environment::default() },
    };
    let campaign = Campaign {
        schema: CAMPAIGN_SCHEMA,
        about: definition.about.clone(),
        experiment_digest: digest(text.as_bytes()),
        plan_digest: plan.digest(),
        plan,
        overrides: KeptOverrides::default(),
        shard: Some(shard),
        made_with,
        changes: Vec::new(),
        sources: Vec::new(),
        created_unix_s: 1,
    };
    let records: Vec<Record> = runs_of(&experiment, Some(shard))
        .into_iter()
        .map(|run| {
            let mut record = experiment.run_spec(run).blank_record();
            record.environment.host = Some(host.to_owned());
            record
        })
        .collect();
    let path = folder.join(format!("{number}of{count}"));
    Folder::lock(&path).unwrap().write_merged(text, &campaign, &records).unwrap();
    path
}

#[test]
fn shards_become_one_campaign_whose_records_keep_their_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let a = shard(folder.path(), TEXT, 1, 2, "a");
    let b = shard(folder.path(), TEXT, 2, 2, "b");
    let out = folder.path().join("whole");
    let merged = merge(&[a.clone(), b.clone()], &out, 9).unwrap();
    assert_eq!((merged.records, merged.missing.len(), merged.hosts.len()), (8, 0, 2));
    let campaign = folder::read_campaign(&out).unwrap().unwrap();
    assert_eq!((campaign.sources.len(), campaign.shard, campaign.created_unix_s), (2, None, 9));
    assert_eq!(campaign.sources[1].made_with.environment.host.as_deref(), Some("b"));
    assert_eq!(std::fs::read_to_string(out.join(EXPERIMENT_FILE)).unwrap(), TEXT);
    // Again, and with a folder that holds the same records: the same.
    let again = merge(&[a.clone(), b, out.clone(), a], &folder.path().join("again"), 9).unwrap();
    assert_eq!((again.records, again.campaign.sources.len()), (8, 2));
    assert!(matches!(merge(std::slice::from_ref(&out), &out, 9), Err(MergeError::Exists(_))));
}

#[test]
fn what_is_missing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let a = shard(folder.path(), TEXT, 1, 4, "a");
    let merged = merge(&[a], &folder.path().join("whole"), 9).unwrap();
    assert_eq!((merged.records, merged.missing.len()), (2, 6));
    assert!(merged.missing.iter().all(|run| !run.counted));
}

#[test]
fn other_experiments_and_runs_made_twice_are_refused() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let out = first.path().join("whole");
    let a = shard(first.path(), TEXT, 1, 2, "a");
    let text = TEXT.replace("runs = 3", "runs = 4");
    let other = shard(second.path(), &text, 2, 2, "b");
    let error = merge(&[a.clone(), other], &out, 9).unwrap_err().to_string();
    assert!(error.contains("their files differ; the plan: number of runs 8 in the first, 10 in the other"), "{error}");
    let twice = shard(second.path(), TEXT, 1, 2, "b");
    let error = merge(&[a, twice], &out, 9).unwrap_err();
    assert!(matches!(error, MergeError::Twice { .. }), "{error}");
    assert!(!out.exists());
    let error = merge(&[first.path().to_owned()], &out, 9).unwrap_err().to_string();
    assert!(error.ends_with("is no results folder: campaign.json is missing"), "{error}");
}
