#![allow(clippy::unwrap_used)]
use rusqlite::{Connection, OpenFlags};

use super::lcg::SEED_DATA;
use super::rows::{Row, Rows};
use super::*;

fn size() -> AppSize {
    AppSize::new(107, 3).unwrap()
}

fn ask(path: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{}?immutable=1", path.display()), flags).unwrap()
}

#[test]
fn a_template_holds_the_rows_that_were_drawn_and_nothing_beside_it_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep/app.db");
    let template = ensure(size(), &out, Progress::Silent).unwrap();
    assert!(!template.was_there);
    let names: Vec<_> = std::fs::read_dir(out.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");

    let connection = ask(&out);
    let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    assert_eq!(
        text("SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_schema WHERE type = 'index' ORDER BY name)"),
        "orders_status_created orders_user_created users_email users_plan_created"
    );
    // Bytes 18 and 19 of the header: 2 is WAL.
    assert_eq!(&std::fs::read(&out).unwrap()[18..20], [2, 2]);

    let mut users = connection
        .prepare("SELECT id, email, name, plan, country, created_at, last_seen_at FROM users ORDER BY id")
        .unwrap();
    let mut users = users.query([]).unwrap();
    let mut orders = connection
        .prepare("SELECT id, user_id, status, amount_cents, currency, created_at, metadata FROM orders ORDER BY id")
        .unwrap();
    let mut orders = orders.query([]).unwrap();
    let mut rows = Rows::new(size());
    let mut count = 0;
    while let Some(row) = rows.next() {
        count += 1;
        match row {
            Row::User(user) => {
                let found = users.next().unwrap().unwrap();
                let strings: Vec<String> = (1..5).map(|column| found.get(column).unwrap()).collect();
                let id = user.id;
                assert_eq!(
                    strings,
                    [
                        format!("user{id}@example.com"),
                        format!("User Number {id}"),
                        user.plan.into(),
                        user.country.into()
                    ]
                );
                let numbers: Vec<i64> = [0, 5, 6].map(|column| found.get(column).unwrap()).into();
                assert_eq!(numbers, [id, user.created_at, user.last_seen_at]);
            }
            Row::Order(order) => {
                let found = orders.next().unwrap().unwrap();
                let strings: Vec<String> = [2, 4, 6].map(|column| found.get(column).unwrap()).into();
                assert_eq!(strings, [order.status, "USD", rows.metadata()]);
                let numbers: Vec<i64> = [0, 1, 3, 5].map(|column| found.get(column).unwrap()).into();
                assert_eq!(numbers, [order.id, order.user_id, order.amount_cents, order.created_at]);
            }
        }
    }
    assert_eq!(count, 107 * 4);
    assert!(users.next().unwrap().is_none() && orders.next().unwrap().is_none());
}

#[test]
fn a_template_is_taken_as_it_is_and_one_of_another_seed_or_version_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("app.db");
    let made = ensure(size(), &out, Progress::Silent).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let again = ensure(size(), &out, Progress::Silent).unwrap();
    assert!(again.was_there);
    assert_eq!(again.manifest, made.manifest);

    for change in [
        AppManifest { seed: SEED_DATA + 1, ..made.manifest.clone() },
        AppManifest { template_version: TEMPLATE_VERSION + 1, ..made.manifest.clone() },
    ] {
        std::fs::write(Manifest::path_for(&out), serde_json::to_vec(&change).unwrap()).unwrap();
        let anew = ensure(size(), &out, Progress::Silent).unwrap();
        assert!(!anew.was_there);
        assert_eq!(std::fs::read(&out).unwrap().len(), bytes.len());
        assert_eq!(anew.manifest, made.manifest);
    }
}

#[test]
fn what_is_not_the_template_that_is_wanted_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("app.db");
    ensure(size(), &out, Progress::Silent).unwrap();
    let other = ensure(AppSize::new(107, 2).unwrap(), &out, Progress::Silent).unwrap_err();
    assert!(other.to_string().contains("number of orders of a user is 3, not 2"), "{other}");

    let mut bytes = std::fs::read(&out).unwrap();
    bytes[24] ^= 1;
    std::fs::write(&out, &bytes).unwrap();
    let written = ensure(size(), &out, Progress::Silent).unwrap_err();
    assert!(written.to_string().contains("somebody has written to the file"), "{written}");
    assert_eq!(std::fs::read(&out).unwrap(), bytes);
}
