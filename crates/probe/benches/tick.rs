//! What a tick costs: every probe sampled in a process of 64 threads. `cargo bench -p
//! blockstone-probe`.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use blockstone_probe::{Context, registry};
use blockstone_sys::survey;

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
    writeln!(std::io::stdout(), "tick     {:7.1} µs with {THREADS} threads", tick_ns as f64 / 1e3)?;
    end.wait();
    Ok(())
}
