//! Settings of other tools, and the words of command lines and models.

use std::str::FromStr;

use blockstone_base::{Bytes, Nanos};
use blockstone_figures::Condition;
use blockstone_flash::policy::Policy;
use blockstone_flash::workload::Workload;
use blockstone_reduce::compress::Codec;
use blockstone_workload::{HotspotWanted, Scale, Think, conf};

pub fn confs() -> Vec<Vec<u8>> {
    let slob = "# a comment\nUPDATE_PCT=25\nSCAN_PCT=10\nRUN_TIME=300\nWORK_LOOP=0\nSCALE=80M\n\
        SCAN_TABLE_SZ=1M\nWORK_UNIT=64   # rows\nREDO_STRESS=HEAVY\nTHREADS_PER_SCHEMA=4\n\
        DATABASE_STATISTICS_TYPE=awr\nSYSDBA_PASSWD=\"secret\"\nEXTERNAL_SCRIPT=''\n\
        DO_HOTSPOT=TRUE\nHOTSPOT_MB=8\nHOTSPOT_OFFSET_MB=16\nHOTSPOT_FREQUENCY=3\n\
        HOT_SCHEMA_FREQUENCY=5\nTHINK_TM_FREQUENCY=2\nTHINK_TM_MIN=.1\nTHINK_TM_MAX=.5\n\
        OBFUSCATE_COLUMNS=TRUE\nexport UPDATE_PCT RUN_TIME\n";
    let pgio = "UPDATE_PCT=10\nRUN_TIME=120\nNUM_SCHEMAS=4\nNUM_THREADS=2\nWORK_UNIT=255\n\
        UPDATE_WORK_UNIT=8\nSCALE=1G\nDBNAME=pgio\nCONNECT_STRING=\"pgio\"\n\
        CREATE_BASE_TABLE=TRUE\n";
    let hammerdb = "dbset db pg\ndbset bm TPROC-C\ndiset connection pg_host db1\n\
        diset tpcc pg_pass {secret}\ndiset tpcc pg_count_ware 10 ;# warehouses\n\
        diset tpcc pg_duration 5\nvuset vu 16\nvurun\n";
    let sysbench = "sysbench oltp_read_write --threads=16 --time=60 --mysql-password='a b' \\\n\
        --tables=8 --table-size=100000 run\n";
    [slob, pgio, hammerdb, sysbench].map(|text| text.as_bytes().to_vec()).into()
}

pub fn conf(input: &[u8]) -> bool {
    std::str::from_utf8(input).is_ok_and(|text| conf::read(text).is_ok())
}

pub fn words() -> Vec<Vec<u8>> {
    let words = [
        "8K",
        "1.5G",
        "4096",
        "20ms",
        "1.5s",
        "10000",
        "8M@16M/3",
        "100ms..500ms/2",
        "uniform",
        "zipf=0.99",
        "hot-cold=20/80",
        "greedy",
        "d=5",
        "lz4",
        "zstd:19",
        "event=Lock=x",
    ];
    words.map(|word| word.as_bytes().to_vec()).into()
}

/// Parses the input as every type that is read from a word.
pub fn word(input: &[u8]) -> bool {
    fn is<T: FromStr>(text: &str) -> bool {
        text.parse::<T>().is_ok()
    }
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let known = [
        is::<Bytes>(text),
        is::<Nanos>(text),
        is::<Scale>(text),
        is::<HotspotWanted>(text),
        is::<Think>(text),
        is::<Workload>(text),
        is::<Policy>(text),
        is::<Codec>(text),
        is::<Condition>(text),
    ];
    known.contains(&true)
}
