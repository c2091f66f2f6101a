//! Tests of the comparison with known answers.

use proptest::prelude::*;

use super::*;
use crate::dataset::{Progress, Scale, ensure};

fn at_scale(scale: f64, q6_revenue: &str) -> Manifest {
    static MADE: LazyLock<Manifest> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let small = Scale::new(0.01).unwrap();
        ensure(small, 4096, &folder.path().join("a.db"), Progress::Silent).unwrap().manifest
    });
    Manifest { scale, q6_revenue: q6_revenue.to_owned(), ..MADE.clone() }
}

fn sf1() -> Manifest {
    at_scale(1.0, "123141078.2283")
}

/// The known answer as an engine would give it.
fn as_rows(query: u8) -> Vec<Vec<Value>> {
    let value = |cell: &str| match (cell.parse::<i64>(), cell.parse::<f64>()) {
        // Country codes are text that looks like a number.
        (Ok(_), _) if query == 22 && cell.len() == 2 => Value::Text(cell.to_owned()),
        (Ok(integer), _) => Value::Integer(integer),
        (_, Ok(real)) => Value::Real(real),
        _ => Value::Text(cell.to_owned()),
    };
    queries::answer_sf1(query).unwrap().lines().skip(1).map(|line| line.split('|').map(value).collect()).collect()
}

fn wrong(query: u8, rows: &[Vec<Value>]) -> String {
    match check(query, Some(&sf1()), rows) {
        Some(Verdict::Wrong(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_known_answer_is_right() {
    for query in 1..=22 {
        assert_eq!(check(query, Some(&sf1()), &as_rows(query)), Some(Verdict::Right), "Q{query}");
    }
}

#[test]
fn nothing_is_said_where_nothing_is_known() {
    assert_eq!(check(6, None, &as_rows(6)), None);
    for query in [1, 5, 22] {
        assert_eq!(check(query, Some(&at_scale(0.01, "1193053.2253")), &as_rows(query)), None);
    }
    assert_eq!(check(0, Some(&sf1()), &[]), None);
    assert_eq!(check(23, Some(&sf1()), &[]), None);
}

#[test]
fn q6_is_known_at_every_scale_to_four_decimals() {
    let manifest = at_scale(0.01, "1193053.2253");
    let answer = |value: f64| check(6, Some(&manifest), &[vec![Value::Real(value)]]).unwrap();
    assert_eq!(answer(1_193_053.225_3), Verdict::Right);
    assert_eq!(answer(1_193_053.225_300_001), Verdict::Right);
    assert!(!answer(1_193_053.225_4).is_right());
    assert_eq!(
        wrong(6, &[vec![Value::Real(75_207_768.185_5)]]),
        "row 1: column revenue is known as `123141078.2283`, and `75207768.1855` was answered"
    );
    assert_eq!(
        wrong(6, &[vec![Value::Null]]),
        "row 1: column revenue is known as `123141078.2283`, and `NULL` was answered"
    );
}

#[test]
fn the_first_difference_is_named() {
    let mut rows = as_rows(3);
    rows.pop();
    assert_eq!(wrong(3, &rows), "10 rows are known and 9 were answered");
    let mut rows = as_rows(1);
    rows[2][9] = Value::Integer(2_920_373);
    assert_eq!(wrong(1, &rows), "row 3: column count_order is known as `2920374`, and `2920373` was answered");
    let mut rows = as_rows(5);
    rows[1].pop();
    assert_eq!(wrong(5, &rows), "row 2: 2 columns are known and 1 were answered");
    let mut rows = as_rows(4);
    rows.swap(0, 1);
    assert!(wrong(4, &rows).starts_with("row 1: column o_orderpriority"));
}

#[test]
fn rows_that_tie_may_be_permuted_and_no_others() {
    let known = "k|v\n1|a\n1|b\n2|c\n";
    let row = |k: i64, v: &str| vec![Value::Integer(k), Value::Text(v.into())];
    assert_eq!(compare(known, &[0], &[row(1, "b"), row(1, "a"), row(2, "c")]), Ok(()));
    assert_eq!(
        compare(known, &[0], &[row(1, "a"), row(1, "a"), row(2, "c")]),
        Err("rows 1 to 2, which tie: none is `1|b` (known row 2)".to_owned())
    );
    assert!(compare(known, &[0], &[row(2, "c"), row(1, "a"), row(1, "b")]).is_err());
}

#[test]
fn every_text_is_recognised_whatever_its_dress() {
    for number in 1..=22 {
        let text = queries::query(number).unwrap();
        assert_eq!(known_query(text), Some(number));
        let upper: String = text
            .split('\'')
            .enumerate()
            .map(|(i, part)| if i % 2 == 0 { part.to_uppercase() } else { format!("'{part}'") })
            .collect();
        assert_eq!(known_query(&upper), Some(number), "{upper}");
        let crowded = text.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join(" /* - */ ");
        assert_eq!(known_query(crowded.trim_end_matches(';')), Some(number));
    }
}

#[test]
fn other_texts_are_not_recognised() {
    let q5 = queries::query(5).unwrap();
    for text in [
        "",
        "SELECT 1",
        "/*",
        "'",
        &q5.replace("'ASIA'", "'asia'"),
        &q5.replace("1994", "1995"),
        &format!("{q5} SELECT 1"),
    ] {
        assert_eq!(known_query(text), None, "{text}");
    }
}

#[test]
fn rows_are_written_as_a_record_keeps_them() {
    let rows = [
        vec![Value::Real(123_141_078.228_3), Value::Real(0.1 + 0.2), Value::Real(5.0), Value::Real(-1e300)],
        vec![Value::Null, Value::Integer(-7), Value::Text("a b".into()), Value::Blob(vec![0, 255])],
    ];
    assert_eq!(format_rows(&rows), "123141078.2283|0.3|5.0|-1e300\nNULL|-7|a b|x'00ff'");
    assert_eq!(format_rows(&[]), "");
}

proptest! {
    #[test]
    fn a_number_agrees_exactly_when_it_rounds_to_the_known_one(hundredths in -10_000_000_000i64..10_000_000_000, offset in -20_000i64..20_000) {
        let known = format!("{}{}.{:02}", if hundredths < 0 { "-" } else { "" }, hundredths.abs() / 100, hundredths.abs() % 100);
        // In millionths: half a hundredth is 5000.
        let value = (hundredths * 10_000 + offset) as f64 / 1e6;
        prop_assume!(offset.abs() != 5000);
        prop_assert_eq!(agrees(&known, &Value::Real(value)), offset.abs() < 5000, "{} {}", known, value);
    }

    #[test]
    fn a_count_must_be_equal(known in any::<i32>(), value in any::<i32>()) {
        let text = known.to_string();
        prop_assert_eq!(agrees(&text, &Value::Integer(value.into())), known == value);
        prop_assert_eq!(agrees(&text, &Value::Real(f64::from(known) + 0.01)), false);
    }

    #[test]
    fn any_text_is_looked_up_without_a_panic(sql in "\\PC{0,60}|[-/*'\"`; a-z\n]{0,40}") {
        prop_assert!(known_query(&sql).is_none());
    }

    #[test]
    fn swapping_two_rows_of_a_fully_ordered_answer_is_wrong(a in 0usize..20, b in 0usize..20) {
        let mut rows = as_rows(9);
        rows.swap(a, b);
        prop_assert_eq!(check(9, Some(&sf1()), &rows).unwrap().is_right(), a == b);
    }
}
