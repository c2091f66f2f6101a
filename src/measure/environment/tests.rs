#![allow(clippy::unwrap_used)]
use super::*;

fn sample() -> Environment {
    Environment {
        kernel_release: Some("6.18.0".to_owned()),
        memory_bytes: Some(24 << 30),
        nomerges: Some(0),
        ..Environment::default()
    }
}

#[test]
fn the_hash_is_fnv_1a() {
    // The authors' own vectors.
    let of = |text: &str| {
        let mut hash = Fnv::new();
        hash.write(text.as_bytes());
        hash.hex()
    };
    assert_eq!(of(""), "cbf29ce484222325");
    assert_eq!(of("a"), "af63dc4c8601ec8c");
    assert_eq!(of("foobar"), "85944171f73967e8");
}

#[test]
fn the_id_changes_with_a_setting_and_not_with_what_varies() {
    let id = sample().digest();
    assert_eq!(id, sample().digest());
    assert_ne!(id, Environment { nomerges: Some(2), ..sample() }.digest());
    assert_ne!(id, Environment { scheduler: Some("none".to_owned()), ..sample() }.digest());
    assert_eq!(id, Environment { file_bytes: Some(1), host: Some("x".to_owned()), ..sample() }.digest());
    assert_eq!(id, Environment { memory_bytes: Some((24 << 30) - (9 << 20)), ..sample() }.digest());
    assert_eq!(id, Environment { turso_version: Some("9".to_owned()), ..sample() }.digest());
}

#[test]
fn the_id_is_the_same_in_every_build() {
    assert_eq!(sample().digest(), "808b891d0f21123a");
}

#[test]
fn every_field_is_a_value_or_has_a_reason() {
    for db in [None, Some(Path::new("Cargo.toml")), Some(Path::new("/nonexistent/x.db"))] {
        let environment = Environment::read(db);
        let serde_json::Value::Object(fields) = serde_json::to_value(&environment).unwrap() else { unreachable!() };
        for (name, value) in &fields {
            assert_eq!(value.is_null(), environment.reasons.contains_key(name), "{name} of {db:?}");
        }
        assert_eq!(environment.id, environment.digest());
    }
}

#[test]
fn fields_of_other_versions_are_tolerated() {
    let read: Environment = serde_json::from_str(r#"{"id":"1","from_the_future":[1]}"#).unwrap();
    assert_eq!(read, Environment { id: "1".to_owned(), ..Environment::default() });
}

#[test]
fn a_record_gives_back_what_was_written() {
    let environment = Environment::read(Some(Path::new("Cargo.toml")));
    let text = serde_json::to_string(&environment).unwrap();
    assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), environment);
}

#[test]
fn the_version_of_turso_is_the_one_that_is_pinned() {
    let pin = format!("turso = {{ version = \"={TURSO_VERSION}\"");
    assert!(include_str!("../../../Cargo.toml").contains(&pin), "Cargo.toml does not pin {TURSO_VERSION}");
}

#[test]
fn the_chosen_of_several_is_in_brackets() {
    assert_eq!(chosen("always [madvise] never").unwrap(), "madvise");
    assert_eq!(chosen("none").unwrap(), "none");
    assert!(chosen("a b").is_err() && chosen("").is_err());
}

#[test]
fn cpu_models_of_several_architectures_are_read() {
    assert_eq!(cpu_model("processor\t: 0\nmodel\t: 1\nmodel name\t: AMD EPYC\n").unwrap(), "AMD EPYC");
    assert_eq!(cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n").unwrap(), "implementer 0x41 part 0xd0c");
    assert!(cpu_model("").is_err());
}

#[test]
fn the_nearest_folder_stands_in_for_a_file_that_is_not_there_yet() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(existing(&root.path().join("a/b.db")).unwrap(), root.path());
}
