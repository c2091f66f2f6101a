#![allow(clippy::unwrap_used)]
use super::*;
use crate::experiment::record::tests::blank;

#[test]
fn a_folder_in_use_names_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b");
    let held = Folder::lock(&path).unwrap();
    let error = Folder::lock(&path).unwrap_err().to_string();
    let pid = std::process::id();
    assert!(error.ends_with(&format!("a/b is in use by another runner, process {pid}")), "{error}");
    assert!(matches!(check_unused(&path), Err(FolderError::InUse { .. })));
    drop(held);
    assert!(!path.exists(), "nothing came of it");
    assert!(check_unused(&path).is_ok());
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.tex"), "").unwrap();
    let error = Folder::lock(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("is no results folder: it holds thesis.tex and no campaign.json"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(matches!(Folder::lock(&folder.path().join("thesis.tex")), Err(FolderError::Io { .. })));
}

/// The lock is not handed to child processes, so that one that outlives its runner does not hold it.
#[test]
fn a_child_does_not_hold_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let held = Folder::lock(&path).unwrap();
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    drop(held);
    let again = Folder::lock(&path);
    child.kill().unwrap();
    child.wait().unwrap();
    again.unwrap();
}

#[test]
fn a_record_that_cannot_be_written_leaves_nothing_of_itself() {
    if !Path::new("/dev/full").exists() {
        crate::skipped!("a_record_that_cannot_be_written_leaves_nothing_of_itself: no /dev/full");
        return;
    }
    let mut log = RunLog { path: "/dev/full".into(), file: File::options().append(true).open("/dev/full").unwrap() };
    assert_eq!(log.append(&blank()).unwrap_err().kind(), io::ErrorKind::StorageFull);
}
