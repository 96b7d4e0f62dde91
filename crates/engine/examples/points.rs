//! One point: `points ENGINE PATH DEPTH SECONDS [write]` runs random 8 KiB I/O without content and
//! prints one JSON object. For `psync` DEPTH is the number of workers. IOPS, latency and CPU time
//! are those of a window that opens after 0.2 s; `completed_ops` counts the whole run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use blockstone_base::LatencyHistogram;
use blockstone_base::load::{Access, LoadSpec, Op, Pacing};
use blockstone_engine::{Load, Medium, start};
use blockstone_sys::clock::now_ns;
use blockstone_sys::file::{Access as OpenFor, BlockFile};
use blockstone_sys::usage;

type Failure = Box<dyn std::error::Error>;

#[allow(clippy::print_stdout, reason = "the figures are what an example is run for")]
fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engine, path, depth, seconds, rest @ ..] = arguments.as_slice() else {
        return Err("usage: points ENGINE PATH DEPTH SECONDS [write]".into());
    };
    let op = if rest.is_empty() { Op::Read } else { Op::Write };
    let depth: u32 = depth.parse()?;
    let (medium, span_bytes) = if engine == "null" {
        (Medium::Nothing, 1 << 30)
    } else {
        let file = BlockFile::open(Path::new(path), OpenFor::ReadWrite, true)?;
        let size_bytes = file.size_bytes()?;
        (Medium::File(Arc::new(file)), size_bytes)
    };
    let workers = if engine == "psync" { depth } else { 1 };
    let spec = LoadSpec {
        engine: engine.clone(),
        op,
        read_pct: None,
        access: Access::Random,
        block_bytes: 8192,
        workers,
        depth_per_worker: depth / workers,
        span_bytes,
        offset_bytes: 0,
        sync: None,
        flush_alone: false,
        direct: true,
        pacing: Pacing::Closed,
        seed: 1,
    };
    let running = start(Load::new(spec, medium))?;
    std::thread::sleep(Duration::from_millis(200));
    running.open_window();
    let (from_ns, before, cpu_before) = (now_ns(), running.totals(), usage::process());
    std::thread::sleep(Duration::from_secs_f64(seconds.parse()?));
    let (to_ns, after, cpu_after) = (now_ns(), running.totals(), usage::process());
    running.close_window();
    let outcome = running.stop(Duration::from_secs(5));
    let mut latency = LatencyHistogram::new();
    for second in outcome.histograms.iter().filter(|second| second.windowed) {
        latency.merge(&second.latency);
    }
    let operations = (after.completed_ops - before.completed_ops) as f64;
    println!(
        "{{\"engine\":\"{engine}\",\"depth\":{depth},\"iops\":{:.0},\"latency_ns_mean\":{:.0},\
         \"latency_ns_p50\":{},\"user_ns_per_op\":{:.1},\"system_ns_per_op\":{:.1},\
         \"completed_ops\":{}}}",
        operations / (to_ns - from_ns) as f64 * 1e9,
        latency.mean_ns(),
        latency.quantile_ns(0.5),
        (cpu_after.cpu_user_ns - cpu_before.cpu_user_ns) as f64 / operations,
        (cpu_after.cpu_system_ns - cpu_before.cpu_system_ns) as f64 / operations,
        outcome.totals.completed_ops,
    );
    match outcome.first_error {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
