use ioscope::engine::*;
use ioscope::page::config::*;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    // probe db engine backend direct submit window inflight pool cache gap
    let path = std::path::PathBuf::from(&a[1]);
    let kind: EngineKind = a[2].parse().unwrap();
    let backend: EngineBackend = a[3].parse().unwrap();
    let direct: Direct = a[4].parse().unwrap();
    let submit: Submit = a[5].parse().unwrap();
    let window: u32 = a[6].parse().unwrap();
    let in_flight: u32 = a[7].parse().unwrap();
    let pool: PoolKind = a[8].parse().unwrap();
    let cache = a[9].as_str();
    let gap: u32 = a.get(10).map_or(8, |g| g.parse().unwrap());
    let rb = match backend {
        EngineBackend::Pread => BackendKind::Pread,
        EngineBackend::UringSqpoll => BackendKind::UringSqpoll,
        _ => BackendKind::Uring,
    };
    let proof = if direct == Direct::Required { Some(ioscope::page::direct::prove(&path).unwrap()) } else { None };
    match cache {
        "cold" => {
            ioscope::measure::residency::make_cold(&path).unwrap();
        }
        "warm" => {
            ioscope::measure::residency::make_warm(&path).unwrap();
        }
        _ => {}
    }
    let spec = EngineSpec {
        kind,
        backend,
        reader: ReaderConfig { backend: rb, direct, submit, window, in_flight, gap, pool, ..Default::default() },
        direct_proof: proof,
        page_size: 4096,
        path,
    };
    let sql=std::env::var("SQL").unwrap_or("select sum(l_extendedprice * l_discount) as revenue from lineitem where l_shipdate >= '1994-01-01' and l_shipdate < '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24".into());
    let t = Instant::now();
    let mut e = open(&spec).unwrap();
    let mut rows = vec![];
    e.query(&sql, &mut |r| rows.push(format!("{r:?}"))).unwrap();
    let w = t.elapsed();
    let rep = e.close().unwrap();
    println!("{:.3} {}", w.as_secs_f64(), rows.join(";"));
    if std::env::var("V").is_ok() {
        println!("{rep:#?}");
    }
}
