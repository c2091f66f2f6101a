//! The published statement stream of one worker: which statement comes next, and with which parameters.

use std::borrow::Cow;

use crate::dataset::app::AppSize;
use crate::dataset::app::lcg::Lcg;
use crate::dataset::app::rows::{AMOUNT_CENTS, CURRENCY, PLANS, STATUSES, TIME_BASE_S, YEAR_S, one_of};

/// The week that the dashboard looks at, in seconds.
const WEEK_S: i64 = 604_800;
/// Where that week begins, at most so many seconds after the time base.
const DASHBOARD_S: u32 = 28_000_000;
/// Metadata of every order that the load inserts.
const LIVE_METADATA: &str = "{\"source\":\"web\",\"campaign\":\"cmp_live\",\"ip\":\"10.0.0.1\",\
    \"ua\":\"Mozilla/5.0 (compatible; benchmark/1.0)\",\"ref\":\"live\",\"retries\":0}";

crate::page::config::axis! {
    /// The statements of the mix, in the order in which their weights are added up.
    Statement = "statement" {
        /// One user by its key.
        UserById = "user_by_id",
        /// One user by the unique index on the email address.
        UserByEmail = "user_by_email",
        /// The last 20 orders of a user.
        OrdersByUser = "orders_by_user",
        /// A page of 25 users of a plan, by keyset.
        UsersByPlanPage = "users_by_plan_page",
        /// Count and sum of one status over a week.
        RevenueDashboard = "revenue_dashboard",
        /// A new order.
        InsertOrder = "insert_order",
        /// A new status of an order.
        UpdateOrderStatus = "update_order_status",
    }
}

impl Statement {
    /// Its text, with `?` for each parameter in the order of [`Stream::next`].
    pub fn sql(self) -> &'static str {
        match self {
            Statement::UserById => "SELECT id, email, name, plan, country, created_at FROM users WHERE id = ?",
            Statement::UserByEmail => "SELECT id, email, name, plan FROM users WHERE email = ?",
            Statement::OrdersByUser => {
                "SELECT id, status, amount_cents, created_at FROM orders WHERE user_id = ? ORDER BY created_at DESC LIMIT 20"
            }
            Statement::UsersByPlanPage => {
                "SELECT id, email, created_at FROM users WHERE plan = ? AND created_at > ? ORDER BY created_at LIMIT 25"
            }
            Statement::RevenueDashboard => {
                "SELECT status, count(*), sum(amount_cents) FROM orders WHERE status = ? AND created_at BETWEEN ? AND ? \
                 GROUP BY status"
            }
            Statement::InsertOrder => {
                "INSERT INTO orders (user_id, status, amount_cents, currency, created_at, metadata) VALUES (?, ?, ?, ?, ?, ?)"
            }
            Statement::UpdateOrderStatus => "UPDATE orders SET status = ? WHERE id = ?",
        }
    }

    /// Its share of the mix, in percent.
    pub fn weight_percent(self) -> u32 {
        match self {
            Statement::UserById => 25,
            Statement::OrdersByUser => 20,
            Statement::UserByEmail | Statement::UsersByPlanPage => 15,
            Statement::RevenueDashboard | Statement::InsertOrder => 10,
            Statement::UpdateOrderStatus => 5,
        }
    }

    /// Whether it writes.
    pub fn writes(self) -> bool {
        matches!(self, Statement::InsertOrder | Statement::UpdateOrderStatus)
    }
}

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// An integer.
    Integer(i64),
    /// Text.
    Text(Cow<'static, str>),
}

impl From<&'static str> for Parameter {
    fn from(text: &'static str) -> Parameter {
        Parameter::Text(Cow::Borrowed(text))
    }
}

/// The statements of one worker, without end.
#[derive(Debug, Clone)]
pub struct Stream {
    lcg: Lcg,
    size: AppSize,
}

impl Stream {
    /// The stream of a worker, by its number from 0, over a data set that began with `size`.
    pub fn new(worker: u32, size: AppSize) -> Stream {
        Stream { lcg: Lcg::of_worker(worker), size }
    }

    /// The next statement; its parameters take the place of what `parameters` held.
    pub fn next(&mut self, parameters: &mut Vec<Parameter>) -> Statement {
        parameters.clear();
        let statement = self.choose();
        let lcg = &mut self.lcg;
        let users = self.size.users();
        let user = |lcg: &mut Lcg| i64::from(lcg.pick(users)) + 1;
        let time = |lcg: &mut Lcg, span_s: u32| TIME_BASE_S + i64::from(lcg.pick(span_s));
        match statement {
            Statement::UserById | Statement::OrdersByUser => parameters.push(Parameter::Integer(user(lcg))),
            Statement::UserByEmail => {
                let email = format!("user{}@example.com", user(lcg));
                parameters.push(Parameter::Text(Cow::Owned(email)));
            }
            Statement::UsersByPlanPage => {
                parameters.push(one_of(&PLANS, lcg).into());
                parameters.push(Parameter::Integer(time(lcg, YEAR_S)));
            }
            Statement::RevenueDashboard => {
                // The time is drawn before the status that stands before it.
                let from = time(lcg, DASHBOARD_S);
                parameters.push(one_of(&STATUSES, lcg).into());
                parameters.extend([from, from + WEEK_S].map(Parameter::Integer));
            }
            Statement::InsertOrder => {
                parameters.push(Parameter::Integer(user(lcg)));
                parameters.push(one_of(&STATUSES, lcg).into());
                parameters.push(Parameter::Integer(AMOUNT_CENTS.0 + i64::from(lcg.pick(AMOUNT_CENTS.1))));
                parameters.push(CURRENCY.into());
                parameters.push(Parameter::Integer(time(lcg, YEAR_S)));
                parameters.push(LIVE_METADATA.into());
            }
            Statement::UpdateOrderStatus => {
                parameters.push(one_of(&STATUSES, lcg).into());
                // At most 400 million: a size is checked. Without orders there is nothing to update, and id 1 is none.
                let orders = u32::try_from(self.size.orders()).unwrap_or(u32::MAX).max(1);
                parameters.push(Parameter::Integer(i64::from(lcg.pick(orders)) + 1));
            }
        }
        statement
    }

    fn choose(&mut self) -> Statement {
        let value = self.lcg.value() * 100.0;
        let mut bound = 0;
        let chosen = Statement::ALL.iter().find(|statement| {
            bound += statement.weight_percent();
            value <= f64::from(bound)
        });
        // The weights add up to 100, and the value is below that.
        chosen.copied().unwrap_or(Statement::UpdateOrderStatus)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use rusqlite::Connection;

    use super::*;
    use crate::dataset::{Progress, app};

    fn small() -> AppSize {
        AppSize::new(500, 4).unwrap()
    }

    #[test]
    fn the_weights_are_those_of_a_hundred() {
        assert_eq!(Statement::ALL.iter().map(|statement| statement.weight_percent()).sum::<u32>(), 100);
    }

    #[test]
    fn a_long_stream_has_the_published_mix_and_each_worker_its_own() {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        let (mut stream, mut parameters) = (Stream::new(0, small()), Vec::new());
        for _ in 0..100_000 {
            *counts.entry(stream.next(&mut parameters).as_str()).or_default() += 1;
        }
        for statement in Statement::ALL {
            let share = f64::from(counts[statement.as_str()]) / 1000.0;
            assert!((share - f64::from(statement.weight_percent())).abs() < 0.5, "{statement}: {share} %");
        }
        let first = |worker| {
            let (mut stream, mut parameters) = (Stream::new(worker, small()), Vec::new());
            (0..20).map(|_| (stream.next(&mut parameters), parameters.clone())).collect::<Vec<_>>()
        };
        assert_ne!(first(0), first(1));
        assert_eq!(first(3), first(3));
    }

    #[test]
    fn the_draws_come_in_the_published_order() {
        let (mut stream, mut parameters) = (Stream::new(2, small()), Vec::new());
        let mut lcg = Lcg::new(9001 + 2 * 7919);
        let skip = |lcg: &mut Lcg, picks: &[u32]| {
            for n in picks {
                lcg.pick(*n);
            }
        };
        let mut dashboards = 0;
        for _ in 0..2000 {
            let value = lcg.value();
            let statement = stream.next(&mut parameters);
            match statement {
                Statement::RevenueDashboard => {
                    assert!(value > 0.75 && value <= 0.85);
                    let from = TIME_BASE_S + i64::from(lcg.pick(28_000_000));
                    let status = STATUSES[lcg.pick(5) as usize];
                    let expected = [status.into(), Parameter::Integer(from), Parameter::Integer(from + 604_800)];
                    assert_eq!(parameters, expected);
                    dashboards += 1;
                }
                Statement::UserById | Statement::UserByEmail | Statement::OrdersByUser => {
                    lcg.pick(500);
                }
                Statement::UsersByPlanPage => {
                    skip(&mut lcg, &[4, 31_536_000]);
                }
                Statement::InsertOrder => {
                    skip(&mut lcg, &[500, 5, 50_000, 31_536_000]);
                    assert_eq!(parameters.len(), 6);
                }
                Statement::UpdateOrderStatus => {
                    skip(&mut lcg, &[5, 2000]);
                }
            }
        }
        assert!(dashboards > 100);
    }

    #[test]
    fn every_statement_runs_on_the_data_by_the_index_that_it_is_meant_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        app::ensure(small(), &path, Progress::Silent).unwrap();
        let connection = Connection::open(&path).unwrap();
        let plan_of = |statement: Statement| {
            let sql = format!("EXPLAIN QUERY PLAN {}", statement.sql());
            let mut explained = connection.prepare(&sql).unwrap();
            let mut rows = explained.raw_query();
            let mut plan = String::new();
            while let Some(row) = rows.next().unwrap() {
                plan.push_str(&row.get::<_, String>(3).unwrap());
            }
            plan
        };
        let plans = [
            (Statement::UserById, "USING INTEGER PRIMARY KEY"),
            (Statement::UserByEmail, "users_email"),
            (Statement::OrdersByUser, "orders_user_created"),
            (Statement::UsersByPlanPage, "users_plan_created"),
            (Statement::RevenueDashboard, "orders_status_created"),
            (Statement::UpdateOrderStatus, "USING INTEGER PRIMARY KEY"),
        ];
        for (statement, index) in plans {
            let plan = plan_of(statement);
            assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{statement}: {plan}");
        }
        let (mut stream, mut parameters) = (Stream::new(0, small()), Vec::new());
        let mut found: BTreeMap<&str, u32> = BTreeMap::new();
        for _ in 0..1000 {
            let statement = stream.next(&mut parameters);
            let mut prepared = connection.prepare_cached(statement.sql()).unwrap();
            for (index, parameter) in (1..).zip(&parameters) {
                match parameter {
                    Parameter::Integer(value) => prepared.raw_bind_parameter(index, value).unwrap(),
                    Parameter::Text(text) => prepared.raw_bind_parameter(index, text.as_ref()).unwrap(),
                }
            }
            if statement.writes() {
                assert_eq!(prepared.raw_execute().unwrap(), 1, "{statement}");
            } else if prepared.raw_query().next().unwrap().is_some() {
                *found.entry(statement.as_str()).or_default() += 1;
            }
        }
        assert_eq!(found.len(), 5, "each reading statement found rows: {found:?}");
    }
}
