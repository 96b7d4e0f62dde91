//! Tables of counters of storage that filters rows.

use blockstone_offload::fit::{Measured, fit, most_returned};
use blockstone_offload::{Unit, counters};

/// Run `a` with two instances that swap places, and a run `b` of one instance.
const COUNTERS: &str = "run,time,instance,statistic,value,unit\n\
    a,0,1,physical read total bytes,10,GiB\n\
    a,0,1,cell physical IO bytes eligible for predicate offload,9,GiB\n\
    a,0,1,cell physical IO interconnect bytes,5,GiB\n\
    a,0,2,physical read total bytes,20,GiB\n\
    a,0,2,cell physical IO bytes eligible for predicate offload,19,GiB\n\
    a,0,2,cell physical IO interconnect bytes,15,GiB\n\
    a,10,1,physical read total bytes,120,GiB\n\
    a,10,1,cell physical IO bytes eligible for predicate offload,119,GiB\n\
    a,10,1,cell physical IO interconnect bytes,16,GiB\n\
    a,10,2,physical read total bytes,110,GiB\n\
    a,10,2,cell physical IO bytes eligible for predicate offload,109,GiB\n\
    a,10,2,cell physical IO interconnect bytes,6,GiB\n\
    b,before,1,physical read total bytes,0,GiB\n\
    b,before,1,cell physical IO bytes eligible for predicate offload,0,GiB\n\
    b,before,1,cell physical IO interconnect bytes,0,GiB\n\
    b,after,1,physical read total bytes,10,GiB\n\
    b,after,1,cell physical IO bytes eligible for predicate offload,9,GiB\n\
    b,after,1,cell physical IO interconnect bytes,10,GiB\n";
const PLAIN: &str = "time,instance,statistic,value\n\
    2026-11-02 10:00:00.5,1,physical read total bytes,0\n\
    2026-11-02 10:00:00.5,1,cell physical IO bytes eligible for predicate offload,0\n\
    2026-11-02 10:00:00.5,1,cell physical IO interconnect bytes,0\n\
    2026-11-02 10:01:00,1,physical read total bytes,1000\n\
    2026-11-02 10:01:00,1,cell physical IO bytes eligible for predicate offload,1000\n\
    2026-11-02 10:01:00,1,cell physical IO interconnect bytes,7\n";

pub fn tables() -> Vec<Vec<u8>> {
    vec![COUNTERS.into(), PLAIN.into()]
}

/// Reads the counters, and balances the machine that they belong to.
pub fn table(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Ok(read) = counters::read(text, Unit::Bytes) else { return false };
    for ledger in &read.ledgers {
        assert!(ledger.eligible_bytes.is_some() && ledger.wire_bytes.is_some());
        let _ = (ledger.copies(), ledger.writes_and_rest(), ledger.examined_bytes());
    }
    let runs: Vec<Measured> = read.ledgers.iter().map(Measured::from).collect();
    if let Ok((machine, fitted)) = fit(&runs, 6, Some(2), None) {
        let returned = most_returned(&fitted);
        for hosts in [1, 18] {
            let bound = machine.bound(f64::from(hosts), returned);
            assert!(bound.is_some_and(|it| it.bytes_per_s > 0.0), "{machine:?}");
            let _ = (machine.gains(hosts, returned), machine.crossing_returned(1.0));
        }
        let _ = machine.crossings(returned);
    }
    true
}
