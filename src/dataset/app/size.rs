//! How large an application's data set is.

use std::fmt;
use std::str::FromStr;

/// Most users: more make a file of more than 100 GB.
const USERS_MAX: u32 = 50_000_000;
/// Most orders of a user.
const ORDERS_PER_USER_MAX: u32 = 1000;
/// Most orders altogether: ids and counts stay far from any limit.
const ORDERS_MAX: u64 = 400_000_000;

/// Users, and orders of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppSize {
    users: u32,
    orders_per_user: u32,
}

/// The published sizes, by name.
const NAMED: [(&str, AppSize); 3] = [
    ("small", AppSize { users: 100_000, orders_per_user: 4 }),
    ("medium", AppSize { users: 400_000, orders_per_user: 5 }),
    ("large", AppSize { users: 1_000_000, orders_per_user: 6 }),
];

/// Why a size is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppSizeError {
    /// No size has this name.
    #[error("unknown scale '{0}'; known: small, medium, large; or give --users and --orders-per-user")]
    Unknown(String),
    /// Too few or too many.
    #[error(
        "{users} users of {orders_per_user} orders each are out of range: 1 to {USERS_MAX} users, 0 to \
         {ORDERS_PER_USER_MAX} orders of each, at most {ORDERS_MAX} orders"
    )]
    OutOfRange {
        /// Users asked for.
        users: u32,
        /// Orders of each.
        orders_per_user: u32,
    },
}

impl AppSize {
    /// Checks a size.
    ///
    /// # Errors
    ///
    /// Where it is out of range.
    pub fn new(users: u32, orders_per_user: u32) -> Result<AppSize, AppSizeError> {
        let orders = u64::from(users) * u64::from(orders_per_user);
        match (1..=USERS_MAX).contains(&users) && orders_per_user <= ORDERS_PER_USER_MAX && orders <= ORDERS_MAX {
            true => Ok(AppSize { users, orders_per_user }),
            false => Err(AppSizeError::OutOfRange { users, orders_per_user }),
        }
    }

    /// Users.
    pub fn users(self) -> u32 {
        self.users
    }

    /// Orders of each user.
    pub fn orders_per_user(self) -> u32 {
        self.orders_per_user
    }

    /// Orders altogether.
    pub fn orders(self) -> u64 {
        u64::from(self.users) * u64::from(self.orders_per_user)
    }

    /// Rows of both tables.
    pub fn rows(self) -> u64 {
        u64::from(self.users) + self.orders()
    }

    /// Bytes that the finished file needs at most, measured and rounded up.
    pub fn bytes(self) -> u64 {
        u64::from(self.users) * 220 + self.orders() * 300 + (1 << 20)
    }
}

impl FromStr for AppSize {
    type Err = AppSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = NAMED.iter().find(|(name, _)| *name == text);
        found.map(|(_, size)| *size).ok_or_else(|| AppSizeError::Unknown(text.to_owned()))
    }
}

/// Its name, or its numbers: `small`, `1000x3`.
impl fmt::Display for AppSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMED.iter().find(|(_, size)| size == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}x{}", self.users, self.orders_per_user),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sizes_have_names() {
        for (name, users, orders) in
            [("small", 100_000, 400_000), ("medium", 400_000, 2_000_000), ("large", 1_000_000, 6_000_000)]
        {
            let size: AppSize = name.parse().unwrap();
            assert_eq!((size.users(), size.orders(), size.to_string()), (users, orders, name.to_owned()));
        }
        assert_eq!(AppSize::new(1000, 3).unwrap().to_string(), "1000x3");
        assert!("smal".parse::<AppSize>().unwrap_err().to_string().contains("known: small, medium, large"));
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for (users, orders) in [(0, 4), (50_000_001, 1), (1, 1001), (50_000_000, 9)] {
            assert!(AppSize::new(users, orders).is_err(), "{users} {orders}");
        }
        assert!(AppSize::new(1, 0).is_ok());
    }
}
