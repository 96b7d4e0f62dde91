//! Cost of a tick: every probe sampled in a process of 64 threads. `cargo bench -p
//! blockstone-probe`.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use blockstone_probe::page_cache::{self, WatchedFiles};
use blockstone_probe::{Cell, Context, Row, registry};
use blockstone_sys::file::{Access, BlockFile};
use blockstone_sys::survey;
use blockstone_testkit::ScratchDir;

const THREADS: usize = 64;
const SAMPLES: u32 = 2000;

fn main() -> std::io::Result<()> {
    let end = Arc::new(Barrier::new(THREADS + 1));
    for _ in 0..THREADS {
        let end = Arc::clone(&end);
        thread::spawn(move || end.wait());
    }
    let root = Path::new("/");
    let devices = survey::target(root, Path::new(".")).map_or(Vec::new(), |target| {
        target.devices.into_iter().map(|device| device.name).collect()
    });
    let context = Context::of_target(root, devices);
    let mut rows = Vec::new();
    let mut tick_ns = 0;
    for entry in registry::ALL {
        let mut probe = (entry.open)(&context);
        probe.sample(&mut rows);
        let start = Instant::now();
        for _ in 0..SAMPLES {
            rows.clear();
            probe.sample(&mut rows);
        }
        let ns = start.elapsed().as_nanos() / u128::from(SAMPLES);
        tick_ns += ns;
        writeln!(std::io::stdout(), "{:8} {:7.1} µs", entry.schema.probe, ns as f64 / 1e3)?;
    }
    tick_ns += page_cache(&mut rows)?;
    writeln!(std::io::stdout(), "tick     {:7.1} µs with {THREADS} threads", tick_ns as f64 / 1e3)?;
    end.wait();
    Ok(())
}

/// Measures the probe that counts in the kernel: its start, its sample, and the time its program
/// takes for each page or folio of any other file added to the page cache.
fn page_cache(rows: &mut Vec<Row>) -> std::io::Result<u128> {
    let scratch = ScratchDir::on_disk().map_err(std::io::Error::other)?;
    let [watched, other] = ["watched", "other"].map(|name| scratch.path().join(name));
    std::fs::write(&watched, [7; 8192])?;
    std::fs::write(&other, vec![7; 64 << 20])?;
    let start = Instant::now();
    let files = WatchedFiles::default();
    files.watch(&watched);
    let start_ms = start.elapsed().as_secs_f64() * 1e3;
    let mut probe = page_cache::open(&files);
    let start = Instant::now();
    for _ in 0..SAMPLES {
        rows.clear();
        probe.sample(rows);
    }
    let ns = start.elapsed().as_nanos() / u128::from(SAMPLES);
    let mut out = std::io::stdout();
    writeln!(out, "page_cache {:5.1} µs, start {start_ms:.1} ms", ns as f64 / 1e3)?;
    let file = BlockFile::open(&other, Access::ReadWrite, false).map_err(std::io::Error::other)?;
    file.fsync().map_err(std::io::Error::from_raw_os_error)?;
    file.drop_cached().map_err(std::io::Error::other)?;
    std::process::Command::new("cat").arg(&other).stdout(std::process::Stdio::null()).status()?;
    std::fs::read(&other)?;
    probe.sample(rows);
    if let Some([.., Cell::Value(runs), Cell::Value(own_ns)]) = rows.last().map(|row| &*row.cells) {
        let each_ns = *own_ns as f64 / (*runs).max(1) as f64;
        writeln!(out, "           {each_ns:5.0} ns for each of {runs} pages or folios of others")?;
    }
    Ok(ns)
}
