//! The rows of the application's two tables, in the order in which they are drawn.

use std::fmt::Write;

use super::lcg::{Lcg, SEED_DATA};
use super::size::AppSize;

/// 2025-01-01T00:00:00Z, in seconds since 1970.
pub const TIME_BASE_S: i64 = 1_735_689_600;
/// A year, in seconds: users are created within it.
pub const YEAR_S: u32 = 31_536_000;
/// Thirty days, in seconds: a user was last seen, and ordered, within so much of being created.
pub const MONTH_S: u32 = 2_592_000;
/// Plans of a user.
pub const PLANS: [&str; 4] = ["free", "starter", "pro", "enterprise"];
/// Countries of a user.
pub const COUNTRIES: [&str; 10] = ["US", "GB", "FR", "DE", "JP", "BR", "IN", "CA", "AU", "NG"];
/// States of an order.
pub const STATUSES: [&str; 5] = ["pending", "paid", "refunded", "failed", "disputed"];
/// Currency of every order.
pub const CURRENCY: &str = "USD";
/// Least amount of an order, and how many amounts there are from it on, in cents.
pub const AMOUNT_CENTS: (i64, u32) = (100, 50_000);

/// A row of `users`; email and name follow from the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// From 1.
    pub id: i64,
    /// One of [`PLANS`].
    pub plan: &'static str,
    /// One of [`COUNTRIES`].
    pub country: &'static str,
    /// In seconds since 1970.
    pub created_at: i64,
    /// In seconds since 1970.
    pub last_seen_at: i64,
}

impl User {
    /// Writes the email address of a user over `into`.
    pub fn email(id: i64, into: &mut String) {
        into.clear();
        // Writing to a String cannot fail.
        let _ = write!(into, "user{id}@example.com");
    }

    /// Writes the name of a user over `into`.
    pub fn name(id: i64, into: &mut String) {
        into.clear();
        let _ = write!(into, "User Number {id}");
    }
}

/// A row of `orders`, but for its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// From 1, running on over all users.
    pub id: i64,
    /// Its user.
    pub user_id: i64,
    /// One of [`STATUSES`].
    pub status: &'static str,
    /// In cents.
    pub amount_cents: i64,
    /// In seconds since 1970.
    pub created_at: i64,
}

/// What is drawn next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A user.
    User(User),
    /// An order; its metadata is in [`Rows::metadata`].
    Order(Order),
}

/// All rows: each user followed by that user's orders.
#[derive(Debug, Clone)]
pub struct Rows {
    lcg: Lcg,
    size: AppSize,
    user: User,
    orders_left: u32,
    order_id: i64,
    metadata: String,
}

impl Rows {
    /// The rows of a data set.
    pub fn new(size: AppSize) -> Rows {
        let user = User { id: 0, plan: PLANS[0], country: COUNTRIES[0], created_at: 0, last_seen_at: 0 };
        Rows { lcg: Lcg::new(SEED_DATA), size, user, orders_left: 0, order_id: 0, metadata: String::new() }
    }

    /// The metadata of the order that was drawn last: compact JSON.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    fn user(&mut self) -> User {
        let created_at = TIME_BASE_S + i64::from(self.lcg.pick(YEAR_S));
        let plan = one_of(&PLANS, &mut self.lcg);
        let country = one_of(&COUNTRIES, &mut self.lcg);
        let last_seen_at = created_at + i64::from(self.lcg.pick(MONTH_S));
        User { id: self.user.id + 1, plan, country, created_at, last_seen_at }
    }

    fn order(&mut self) -> Order {
        let lcg = &mut self.lcg;
        let id = self.order_id + 1;
        let status = one_of(&STATUSES, lcg);
        let amount_cents = AMOUNT_CENTS.0 + i64::from(lcg.pick(AMOUNT_CENTS.1));
        let created_at = self.user.created_at + i64::from(lcg.pick(MONTH_S));
        // The keys in this order, and the draws with them.
        let source = if lcg.value() < 0.5 { "web" } else { "mobile" };
        let campaign = lcg.pick(400);
        let ip = (lcg.pick(255), lcg.pick(255));
        let retries = lcg.pick(3);
        self.metadata.clear();
        let _ = write!(
            self.metadata,
            "{{\"source\":\"{source}\",\"campaign\":\"cmp_{campaign}\",\"ip\":\"{}.{}.12.9\",\
             \"ua\":\"Mozilla/5.0 (compatible; benchmark/1.0)\",\"ref\":\"order-{id}\",\"retries\":{retries}}}",
            ip.0, ip.1
        );
        Order { id, user_id: self.user.id, status, amount_cents, created_at }
    }
}

impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.orders_left > 0 {
            self.orders_left -= 1;
            let order = self.order();
            self.order_id = order.id;
            return Some(Row::Order(order));
        }
        if self.user.id >= i64::from(self.size.users()) {
            return None;
        }
        self.user = self.user();
        self.orders_left = self.size.orders_per_user();
        Some(Row::User(self.user))
    }
}

/// One of a list, by the next value.
pub fn one_of<const N: usize>(list: &[&'static str; N], lcg: &mut Lcg) -> &'static str {
    // N is a handful, and a pick is below it.
    list[lcg.pick(N as u32) as usize]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rows(users: u32, orders_per_user: u32) -> Vec<(Row, String)> {
        let mut rows = Rows::new(AppSize::new(users, orders_per_user).unwrap());
        let mut all = Vec::new();
        while let Some(row) = rows.next() {
            all.push((row, rows.metadata().to_owned()));
        }
        all
    }

    #[test]
    fn each_user_is_followed_by_its_orders_and_ids_run_on() {
        let all = rows(3, 2);
        let shape: Vec<(char, i64)> = all
            .iter()
            .map(|(row, _)| match row {
                Row::User(user) => ('u', user.id),
                Row::Order(order) => ('o', order.id),
            })
            .collect();
        let expected = [('u', 1), ('o', 1), ('o', 2), ('u', 2), ('o', 3), ('o', 4), ('u', 3), ('o', 5), ('o', 6)];
        assert_eq!(shape, expected);
    }

    #[test]
    fn the_draws_come_in_the_published_order() {
        let mut lcg = Lcg::new(SEED_DATA);
        let all = rows(1, 1);
        let Row::User(user) = all[0].0 else { unreachable!() };
        assert_eq!(user.created_at, TIME_BASE_S + i64::from(lcg.pick(YEAR_S)));
        assert_eq!(user.plan, PLANS[lcg.pick(4) as usize]);
        assert_eq!(user.country, COUNTRIES[lcg.pick(10) as usize]);
        assert_eq!(user.last_seen_at, user.created_at + i64::from(lcg.pick(MONTH_S)));
        let Row::Order(order) = all[1].0 else { unreachable!() };
        assert_eq!(order.status, STATUSES[lcg.pick(5) as usize]);
        assert_eq!(order.amount_cents, i64::from(lcg.pick(50_000)) + 100);
        assert_eq!(order.created_at, user.created_at + i64::from(lcg.pick(MONTH_S)));
        let metadata: serde_json::Value = serde_json::from_str(&all[1].1).unwrap();
        assert_eq!(metadata["source"], if lcg.value() < 0.5 { "web" } else { "mobile" });
        assert_eq!(metadata["campaign"], format!("cmp_{}", lcg.pick(400)));
        assert_eq!(metadata["ip"], format!("{}.{}.12.9", lcg.pick(255), lcg.pick(255)));
        assert_eq!(metadata["ref"], "order-1");
        assert_eq!(metadata["retries"], lcg.pick(3));
    }

    #[test]
    fn metadata_is_compact_json_of_the_published_length() {
        for (_, metadata) in rows(200, 3).iter().filter(|(row, _)| matches!(row, Row::Order(_))) {
            assert!((120..=180).contains(&metadata.len()), "{} bytes: {metadata}", metadata.len());
            let again: serde_json::Value = serde_json::from_str(metadata).unwrap();
            assert_eq!(again.as_object().unwrap().len(), 6);
            assert!(!metadata.contains(": ") && !metadata.contains(", "));
        }
    }
}
