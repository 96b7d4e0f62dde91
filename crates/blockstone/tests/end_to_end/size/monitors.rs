//! One load, observed by `blockstone watch`, iostat, sar and collectl at the same time, and sized
//! from each.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use blockstone_testkit::{ScratchDir, blockstone_binary, require, run};
use serde_json::Value;

use super::{Turn, document};

const SECONDS: u32 = 15;
const READS: f64 = 420.0;
const WRITES: f64 = 180.0;
const BLOCK_BYTES: f64 = 8192.0;
const RATES: [&str; 4] = ["reads_per_s", "writes_per_s", "read_bytes_per_s", "write_bytes_per_s"];

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn load(dir: &Path) -> Child {
    let mut fio = Command::new("fio");
    fio.args(["--name=load", "--size=64m", "--rw=randrw", "--rwmixread=70", "--bs=8k"]);
    fio.args(["--direct=1", "--ioengine=libaio", "--iodepth=4", "--time_based"]);
    fio.args([format!("--rate_iops={READS},{WRITES}"), format!("--runtime={}", SECONDS + 6)]);
    start(fio.arg("--directory").arg(dir))
}

/// Returns the lower quartile of a rate: other programs use the disk at times.
fn low(document: &Value, rate: &str) -> f64 {
    let sources = document["tables"]["sources"].as_array().unwrap();
    let mut rates: Vec<f64> = sources.iter().map(|it| it[rate].as_f64().unwrap()).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 4]
}

/// Returns the median ratio of two rates.
fn median_ratio(document: &Value, rate: &str, each: &str) -> f64 {
    let sources = document["tables"]["sources"].as_array().unwrap();
    let ratio = |it: &Value| it[rate].as_f64().unwrap() / it[each].as_f64().unwrap();
    let mut ratios: Vec<f64> = sources.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// Returns the median of reads and writes together.
fn median_of_all(document: &Value) -> f64 {
    let sources = document["tables"]["sources"].as_array().unwrap();
    let all = |it: &Value| RATES[..2].iter().map(|rate| it[rate].as_f64().unwrap()).sum();
    let mut rates: Vec<f64> = sources.iter().map(all).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn close(found: f64, expected: f64, share: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < share, "{what}: {found}, not {expected}");
}

#[test]
fn all_monitors_of_a_load_lead_to_the_same_need() {
    require!(Root, Fio, Iostat, Collectl);
    let _turn = Turn::alone();
    let scratch = ScratchDir::on_disk().unwrap();
    let place = |name: &str| scratch.path().join(name);
    let mut load = load(scratch.path());
    // Wait until its file exists and the rates are steady.
    sleep(Duration::from_secs(3));
    let samples = (SECONDS + 1).to_string();
    let iostat = |format: &str, to: &str| {
        let file = std::fs::File::create(place(to)).unwrap();
        let mut command = Command::new("iostat");
        command.args(format.split(' ')).args(["-x", "-t", "1", &samples]);
        command.env("S_TIME_FORMAT", "ISO").stdin(Stdio::null()).stdout(file).spawn().unwrap()
    };
    let monitors = [
        start(
            Command::new(blockstone_binary())
                .args(["watch", "--for", &format!("{SECONDS}s"), "--record"])
                .arg(place("own")),
        ),
        iostat("-o JSON", "iostat.json"),
        iostat("-k", "iostat.txt"),
        start(
            Command::new("/usr/lib/sysstat/sadc")
                .args(["-S", "DISK", "1", &samples])
                .arg(place("sar")),
        ),
        start(
            Command::new("collectl")
                .args(["-sDcm", "-i1", &format!("-c{SECONDS}"), "-f"])
                .arg(place("collectl")),
        ),
    ];
    for mut monitor in monitors {
        assert!(monitor.wait().unwrap().success(), "{monitor:?}");
    }
    load.kill().unwrap();
    load.wait().unwrap();
    let sar = run(Command::new("sadf").arg("-j").arg(place("sar")).args(["--", "-A"]));
    std::fs::write(place("sar.json"), sar.stdout).unwrap();
    let files = std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
    let collectl = files
        .into_iter()
        .find(|file| file.file_name().unwrap().to_string_lossy().starts_with("collectl-"));
    let size = |path: &Path| document(&[path.to_str().unwrap()]);
    let own = size(&place("own"));
    println!("{RATES:?}, of the quiet seconds, and the need at p50");
    for (name, path) in [
        ("blockstone watch", place("own")),
        ("iostat -o JSON", place("iostat.json")),
        ("iostat", place("iostat.txt")),
        ("sar", place("sar.json")),
        ("collectl", collectl.unwrap()),
    ] {
        let found = size(&path);
        let need = |of: &Value| of["tables"]["need"][0]["p50"]["value"].as_f64().unwrap();
        let rates = RATES.map(|rate| low(&found, rate));
        println!("| {name} | {rates:.2?} | {:.1} |", need(&found));
        // Other programs use the disk as well.
        assert!(rates[0] > 0.95 * READS && rates[1] > 0.95 * WRITES, "{name}: {rates:?}");
        // All requests of the load are 8 KiB.
        close(median_ratio(&found, "read_bytes_per_s", "reads_per_s"), BLOCK_BYTES, 0.015, name);
        for (rate, own) in rates.into_iter().zip(RATES.map(|rate| low(&own, rate))) {
            close(rate, own, 0.1, name);
        }
        // Other programs may use the disk in a second that only some monitors saw whole, so that
        // the needs of two monitors differ.
        close(need(&found), median_of_all(&found), 0.01, name);
        assert_eq!(
            found["tables"]["sources"].as_array().unwrap().len(),
            SECONDS as usize,
            "{name}"
        );
    }
}
