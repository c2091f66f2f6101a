//! The eight tables of TPC-H, in the order in which they are loaded.

/// The schema, as `tpch/schema.sql` has it.
pub const SCHEMA_SQL: &str = include_str!("../../tpch/schema.sql");

/// A table of TPC-H.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Five regions.
    Region,
    /// Twenty-five nations.
    Nation,
    /// 200 000 x SF parts.
    Part,
    /// 10 000 x SF suppliers.
    Supplier,
    /// Four suppliers a part.
    Partsupp,
    /// 150 000 x SF customers.
    Customer,
    /// 1 500 000 x SF orders.
    Orders,
    /// One to seven items an order.
    Lineitem,
}

impl Table {
    /// All tables, in the order of loading: referenced before referencing, and the order of the schema.
    pub const ALL: [Table; 8] = [
        Table::Region,
        Table::Nation,
        Table::Part,
        Table::Supplier,
        Table::Partsupp,
        Table::Customer,
        Table::Orders,
        Table::Lineitem,
    ];

    /// The table's name in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Table::Region => "REGION",
            Table::Nation => "NATION",
            Table::Part => "PART",
            Table::Supplier => "SUPPLIER",
            Table::Partsupp => "PARTSUPP",
            Table::Customer => "CUSTOMER",
            Table::Orders => "ORDERS",
            Table::Lineitem => "LINEITEM",
        }
    }

    /// Number of columns.
    pub fn columns(self) -> usize {
        match self {
            Table::Region => 3,
            Table::Nation => 4,
            Table::Part => 9,
            Table::Supplier => 7,
            Table::Partsupp => 5,
            Table::Customer => 8,
            Table::Orders => 9,
            Table::Lineitem => 16,
        }
    }
}

/// Digest of the schema's text (FNV-1a, 64 bits, hexadecimal): two files whose digests differ were made from
/// different schemas. It guards against mistakes, not against malice.
pub fn schema_digest() -> String {
    format!("fnv1a64:{:016x}", fnv1a_64(SCHEMA_SQL.as_bytes()))
}

/// The hash of Fowler, Noll and Vo, variant 1a, 64 bits.
fn fnv1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_fnv1a() {
        // Test vectors of draft-eastlake-fnv.
        assert_eq!(fnv1a_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a_64(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn tables_match_the_schema() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(SCHEMA_SQL).unwrap();
        let mut statement =
            connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid").unwrap();
        let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(names, Table::ALL.map(Table::name));
        for table in Table::ALL {
            let columns: isize = connection
                .query_row("SELECT count(*) FROM pragma_table_info(?1)", [table.name()], |row| row.get(0))
                .unwrap();
            assert_eq!(columns, table.columns() as isize, "{}", table.name());
        }
    }
}
