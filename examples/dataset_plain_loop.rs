//! The yardstick of `ioscope dataset`: the loop that anybody would write. One thread generates a row and
//! inserts it at once: one prepared statement a table, one transaction, the same pragmas, the same schema.
//!
//! `cargo run --release --example dataset_plain_loop -- SCALE FILE`
#![expect(clippy::unwrap_used, reason = "a yardstick, not a tool")]

use std::time::Instant;

use rusqlite::{Connection, params};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(scale), Some(file)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: dataset_plain_loop SCALE FILE");
        std::process::exit(2);
    };
    let scale: f64 = scale.parse().unwrap();
    let started = Instant::now();
    let mut connection = Connection::open(&file).unwrap();
    connection.execute_batch(ioscope::dataset::load::LOAD_PRAGMAS).unwrap();
    connection.execute_batch(include_str!("../tpch/schema.sql")).unwrap();
    let transaction = connection.transaction().unwrap();
    {
        let mut insert = transaction.prepare("INSERT INTO REGION VALUES (?,?,?)").unwrap();
        for r in RegionGenerator::new(scale, 1, 1).iter() {
            insert.execute(params![r.r_regionkey, r.r_name, r.r_comment]).unwrap();
        }
        let mut insert = transaction.prepare("INSERT INTO NATION VALUES (?,?,?,?)").unwrap();
        for n in NationGenerator::new(scale, 1, 1).iter() {
            insert.execute(params![n.n_nationkey, n.n_name, n.n_regionkey, n.n_comment]).unwrap();
        }
        let mut insert = transaction.prepare("INSERT INTO PART VALUES (?,?,?,?,?,?,?,?,?)").unwrap();
        for p in PartGenerator::new(scale, 1, 1).iter() {
            insert
                .execute(params![
                    p.p_partkey,
                    p.p_name.to_string(),
                    p.p_mfgr.to_string(),
                    p.p_brand.to_string(),
                    p.p_type,
                    p.p_size,
                    p.p_container,
                    p.p_retailprice.as_f64(),
                    p.p_comment
                ])
                .unwrap();
        }
        let mut insert = transaction.prepare("INSERT INTO SUPPLIER VALUES (?,?,?,?,?,?,?)").unwrap();
        for s in SupplierGenerator::new(scale, 1, 1).iter() {
            insert
                .execute(params![
                    s.s_suppkey,
                    s.s_name.to_string(),
                    s.s_address.to_string(),
                    s.s_nationkey,
                    s.s_phone.to_string(),
                    s.s_acctbal.as_f64(),
                    s.s_comment
                ])
                .unwrap();
        }
        let mut insert = transaction.prepare("INSERT INTO PARTSUPP VALUES (?,?,?,?,?)").unwrap();
        for ps in PartSuppGenerator::new(scale, 1, 1).iter() {
            insert
                .execute(params![
                    ps.ps_partkey,
                    ps.ps_suppkey,
                    ps.ps_availqty,
                    ps.ps_supplycost.as_f64(),
                    ps.ps_comment
                ])
                .unwrap();
        }
        let mut insert = transaction.prepare("INSERT INTO CUSTOMER VALUES (?,?,?,?,?,?,?,?)").unwrap();
        for c in CustomerGenerator::new(scale, 1, 1).iter() {
            insert
                .execute(params![
                    c.c_custkey,
                    c.c_name.to_string(),
                    c.c_address.to_string(),
                    c.c_nationkey,
                    c.c_phone.to_string(),
                    c.c_acctbal.as_f64(),
                    c.c_mktsegment,
                    c.c_comment
                ])
                .unwrap();
        }
        let mut insert = transaction.prepare("INSERT INTO ORDERS VALUES (?,?,?,?,?,?,?,?,?)").unwrap();
        for o in OrderGenerator::new(scale, 1, 1).iter() {
            insert
                .execute(params![
                    o.o_orderkey,
                    o.o_custkey,
                    o.o_orderstatus.as_str(),
                    o.o_totalprice.as_f64(),
                    o.o_orderdate.to_string(),
                    o.o_orderpriority,
                    o.o_clerk.to_string(),
                    o.o_shippriority,
                    o.o_comment
                ])
                .unwrap();
        }
        let mut insert = transaction.prepare("INSERT INTO LINEITEM VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)").unwrap();
        for l in LineItemGenerator::new(scale, 1, 1).iter() {
            insert
                .execute(params![
                    l.l_orderkey,
                    l.l_partkey,
                    l.l_suppkey,
                    l.l_linenumber,
                    l.l_quantity,
                    l.l_extendedprice.as_f64(),
                    l.l_discount.as_f64(),
                    l.l_tax.as_f64(),
                    l.l_returnflag,
                    l.l_linestatus,
                    l.l_shipdate.to_string(),
                    l.l_commitdate.to_string(),
                    l.l_receiptdate.to_string(),
                    l.l_shipinstruct,
                    l.l_shipmode,
                    l.l_comment
                ])
                .unwrap();
        }
    }
    transaction.commit().unwrap();
    drop(connection);
    println!("{:.3}", started.elapsed().as_secs_f64());
}
