//! Both engines on ioscope's reader agree with plain SQLite on the 22 TPC-H queries, at SF 0.01.

use std::path::Path;

use ioscope::dataset::{self, Progress, Scale};
use ioscope::engine::{EngineBackend, EngineKind, Value};
use ioscope::page::config::{Delivery, Direct, Submit};
use ioscope::workload::answer;

use crate::helper::{Arm, open, rows, try_rows};

/// Queries that Turso 0.8.3 does not support, with the word that its error must hold: a new version that does
/// support one fails this test, and the list shrinks.
const TURSO_UNSUPPORTED: [(u8, &str); 0] = [];

/// Largest relative difference of two sums of the same numbers, added in another order.
const SUM_TOLERANCE: f64 = 1e-9;

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Real(a), Value::Real(b)) => (a - b).abs() <= SUM_TOLERANCE * a.abs().max(1.0),
        (Value::Real(real), Value::Integer(integer)) | (Value::Integer(integer), Value::Real(real)) => {
            (real - *integer as f64).abs() <= SUM_TOLERANCE * real.abs().max(1.0)
        }
        _ => a == b,
    }
}

#[test]
fn all_22_queries_agree_with_plain_sqlite_and_q6_is_exact() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tpch-sf0.01.db");
    let scale = Scale::new(0.01).unwrap();
    let data = dataset::ensure(scale, 4096, &path, Progress::Silent).unwrap();
    let arm = |kind, backend, submit| Arm {
        kind,
        backend,
        direct: Direct::Disabled,
        submit,
        window: 32,
        delivery: Delivery::Copy,
    };
    let mut plain = open(&arm(EngineKind::Sqlite, EngineBackend::Builtin, Submit::PerPage), &path, 4096).unwrap();
    let lent = arm(EngineKind::Sqlite, EngineBackend::Uring, Submit::Coalesced);
    let arms = [
        Arm { delivery: Delivery::ZeroCopy, ..lent },
        arm(EngineKind::Sqlite, EngineBackend::Uring, Submit::Coalesced),
        arm(EngineKind::Sqlite, EngineBackend::Pread, Submit::PerPage),
        arm(EngineKind::Turso, EngineBackend::Uring, Submit::Coalesced),
        arm(EngineKind::Turso, EngineBackend::Builtin, Submit::PerPage),
    ];
    for number in 1..=22 {
        let sql = dataset::queries::query(number).unwrap();
        assert_eq!(answer::known_query(sql), Some(number));
        let expected = rows(&mut *plain, sql);
        for arm in &arms {
            let Some(mut engine) = open(arm, &path, 4096) else { continue };
            let seen = try_rows(&mut *engine, sql);
            let unsupported = TURSO_UNSUPPORTED.iter().find(|(query, _)| *query == number);
            if let (EngineKind::Turso, Some((_, word))) = (arm.kind, unsupported) {
                let error = seen.expect_err("Turso supports it now: strike it from the list").to_string();
                assert!(error.contains(word), "Q{number} {arm:?}: {error}");
                continue;
            }
            let seen = seen.unwrap_or_else(|error| panic!("Q{number} {arm:?}: {error}"));
            assert_eq!(seen.len(), expected.len(), "Q{number} {arm:?}");
            for (row, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
                let equal = seen.len() == expected.len() && seen.iter().zip(expected).all(|(a, b)| same(a, b));
                assert!(equal, "Q{number} {arm:?}, row {row}: {seen:?}, not {expected:?}");
            }
            if number == 6 {
                let verdict = answer::check(6, Some(&data.manifest), &seen).unwrap();
                assert!(verdict.is_right(), "{arm:?}: {verdict:?}");
            }
        }
    }
}
