//! The generator's side: rows from `tpchgen` into batches, and the exact tally that the database is checked against.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, SyncSender};

use tpchgen::dates::{MIN_GENERATE_DATE, TOTAL_DATE_RANGE, TPCHDate};
use tpchgen::generators::{
    CustomerGenerator, LineItem, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use super::batch::{Batch, RowWriter};
use super::scale::Scale;
use super::tables::Table;

/// Rows of a full batch: some 200 KiB of cells, which stays in the second-level cache.
pub const BATCH_ROWS: usize = 512;

/// What the generated rows come to, in integers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows of each table, by name.
    pub rows: BTreeMap<&'static str, u64>,
    /// Answer of Q6 in ten-thousandths: hundredths of the price times hundredths of the discount.
    pub q6_ten_thousandths: i128,
}

impl Tally {
    /// Takes a row of LINEITEM into account for Q6: shipped in 1994, discount 0.05 to 0.07, quantity below 24.
    fn add_q6(&mut self, item: &LineItem<'_>) {
        let discount = item.l_discount.into_inner();
        if item.l_quantity < 24 && (5..=7).contains(&discount) && item.l_shipdate.to_ymd().0 == 94 {
            self.q6_ten_thousandths += i128::from(item.l_extendedprice.into_inner()) * i128::from(discount);
        }
    }
}

/// The other side is gone: it has its own reason, which is the one to report.
#[derive(Debug)]
struct Disconnected;

/// Generates all tables in the order of loading, sends them to `full`, and takes emptied batches from `empty`.
/// Ends early where the receiver is gone.
pub fn generate(scale: Scale, full: SyncSender<Batch>, empty: Receiver<Batch>) -> Tally {
    let mut sender = Sender { full, empty, tally: Tally::default() };
    for table in Table::ALL {
        if generate_table(table, scale.get(), &mut sender).is_err() {
            break;
        }
    }
    sender.tally
}

fn generate_table(table: Table, scale: f64, sender: &mut Sender) -> Result<(), Disconnected> {
    match table {
        Table::Region => sender.send_all(table, RegionGenerator::new(scale, 1, 1).iter(), |r, row| {
            row.integer(r.r_regionkey).text(r.r_name).copied(r.r_comment);
        }),
        Table::Nation => sender.send_all(table, NationGenerator::new(scale, 1, 1).iter(), |n, row| {
            row.integer(n.n_nationkey).text(n.n_name).integer(n.n_regionkey).copied(n.n_comment);
        }),
        Table::Part => sender.send_all(table, PartGenerator::new(scale, 1, 1).iter(), |p, row| {
            row.integer(p.p_partkey).formatted(&p.p_name).formatted(p.p_mfgr).formatted(p.p_brand);
            row.text(p.p_type).integer(p.p_size.into()).text(p.p_container);
            row.hundredths(p.p_retailprice.into_inner()).copied(p.p_comment);
        }),
        Table::Supplier => sender.send_all(table, SupplierGenerator::new(scale, 1, 1).iter(), |s, row| {
            row.integer(s.s_suppkey).formatted(s.s_name).formatted(&s.s_address).integer(s.s_nationkey);
            row.formatted(&s.s_phone).hundredths(s.s_acctbal.into_inner()).copied(&s.s_comment);
        }),
        Table::Partsupp => sender.send_all(table, PartSuppGenerator::new(scale, 1, 1).iter(), |ps, row| {
            row.integer(ps.ps_partkey).integer(ps.ps_suppkey).integer(ps.ps_availqty.into());
            row.hundredths(ps.ps_supplycost.into_inner()).copied(ps.ps_comment);
        }),
        Table::Customer => sender.send_all(table, CustomerGenerator::new(scale, 1, 1).iter(), |c, row| {
            row.integer(c.c_custkey).formatted(c.c_name).formatted(&c.c_address).integer(c.c_nationkey);
            row.formatted(&c.c_phone).hundredths(c.c_acctbal.into_inner()).text(c.c_mktsegment).copied(c.c_comment);
        }),
        Table::Orders => sender.send_all(table, OrderGenerator::new(scale, 1, 1).iter(), |o, row| {
            row.integer(o.o_orderkey).integer(o.o_custkey).text(o.o_orderstatus.as_str());
            row.hundredths(o.o_totalprice.into_inner()).text(date(o.o_orderdate)).text(o.o_orderpriority);
            row.formatted(o.o_clerk).integer(o.o_shippriority.into()).copied(o.o_comment);
        }),
        Table::Lineitem => {
            let mut tally = Tally::default();
            let sent = sender.send_all(table, LineItemGenerator::new(scale, 1, 1).iter(), |l, row| {
                tally.add_q6(l);
                row.integer(l.l_orderkey).integer(l.l_partkey).integer(l.l_suppkey).integer(l.l_linenumber.into());
                row.integer(l.l_quantity).hundredths(l.l_extendedprice.into_inner());
                row.hundredths(l.l_discount.into_inner()).hundredths(l.l_tax.into_inner());
                row.text(l.l_returnflag).text(l.l_linestatus).text(date(l.l_shipdate)).text(date(l.l_commitdate));
                row.text(date(l.l_receiptdate)).text(l.l_shipinstruct).text(l.l_shipmode).copied(l.l_comment);
            });
            sender.tally.q6_ten_thousandths = tally.q6_ten_thousandths;
            sent
        }
    }
}

/// Every date that the generator knows, as `YYYY-MM-DD`: a row borrows its dates instead of formatting them.
static DATES: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..TOTAL_DATE_RANGE).map(|day| TPCHDate::new(MIN_GENERATE_DATE + day).to_string()).collect());

fn date(date: TPCHDate) -> &'static str {
    usize::try_from(date.into_inner()).ok().and_then(|day| DATES.get(day)).map_or("", String::as_str)
}

/// Fills batches and sends them off.
struct Sender {
    full: SyncSender<Batch>,
    empty: Receiver<Batch>,
    tally: Tally,
}

impl Sender {
    fn send_all<T>(
        &mut self,
        table: Table,
        rows: impl Iterator<Item = T>,
        mut fill: impl FnMut(&T, &mut RowWriter<'_>),
    ) -> Result<(), Disconnected> {
        let mut count = 0;
        let mut batch = self.empty_batch(table);
        for item in rows {
            batch.push_row(|row| fill(&item, row));
            count += 1;
            if batch.rows() == BATCH_ROWS {
                self.full.send(batch).map_err(|_| Disconnected)?;
                batch = self.empty_batch(table);
            }
        }
        self.full.send(batch).map_err(|_| Disconnected)?;
        self.tally.rows.insert(table.name(), count);
        Ok(())
    }

    /// An emptied batch where one has come back, else a new one: the bounded channel bounds their number.
    fn empty_batch(&self, table: Table) -> Batch {
        let mut batch = self.empty.try_recv().unwrap_or_default();
        batch.reset(table);
        batch
    }
}
