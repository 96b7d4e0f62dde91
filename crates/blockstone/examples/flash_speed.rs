//! Measures how many flash pages per second the simulator of flash devices writes: one core, 64 GiB
//! of 4 KiB pages, 20 % over-provisioning, greedy, steady state. Prints one JSON document of
//! processor time, so that a busy machine matters less; `cargo xtask bench flash` runs it in
//! rounds.

#![allow(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::time::Instant;

use blockstone_base::rng::Rng;
use blockstone_flash::ftl::{Config, Ftl, Full, Mapping, Pace, Write};
use blockstone_flash::preset;
use blockstone_flash::simulate::{Engine, Plan, simulate};
use blockstone_sys::memory::advise_huge_pages;
use blockstone_sys::usage::thread_cpu_ns;
use serde_json::{Value, json};

const VISIBLE_BYTES: u64 = 64 << 30;
const PAGE_BYTES: u64 = 4096;
const OVER_PROVISIONING: f64 = 0.2;

fn main() -> anyhow::Result<()> {
    let which = std::env::args().nth(1).unwrap_or_default();
    let logical = (VISIBLE_BYTES / PAGE_BYTES) as u32;
    let blocks = (f64::from(logical) * (1.0 + OVER_PROVISIONING) / 128.0) as u32;
    let config = Config::plain(logical, 128, 1, blocks);
    let result = match which.as_str() {
        "exact" => untimed(Ftl::exact(config, &advise_huge_pages)?)?,
        "counts" => untimed(Ftl::counts(config, &[logical])?)?,
        "timed" => timed(Engine::Exact)?,
        "timed-counts" => timed(Engine::Counts)?,
        _ => anyhow::bail!("run {which:?}\nhint: exact, counts, timed or timed-counts"),
    };
    println!("{result}");
    Ok(())
}

/// Fills the device, brings it to steady state, and measures overwrites.
fn untimed<M: Mapping>(mut ftl: Ftl<M>) -> Result<Value, Full> {
    let logical = ftl.config().logical_pages;
    let mut rng = Rng::new(1, 0);
    let mut writes = [Write::default(); 1024];
    let mut page = 0;
    while page < logical {
        for (write, page) in writes.iter_mut().zip(page..) {
            write.page = page;
        }
        ftl.write_many(&writes[..writes.len().min((logical - page) as usize)])?;
        page += writes.len() as u32;
    }
    let mut overwrite = |ftl: &mut Ftl<M>, pages: u32| {
        for _ in 0..pages / writes.len() as u32 {
            for write in &mut writes {
                write.page = rng.below(u64::from(logical)) as u32;
            }
            ftl.write_many(&writes)?;
        }
        Ok(())
    };
    overwrite(&mut ftl, logical)?;
    let (before, cpu, began) = (*ftl.totals(), thread_cpu_ns(), Instant::now());
    overwrite(&mut ftl, logical)?;
    let (cpu_ns, wall_ns) = (thread_cpu_ns() - cpu, began.elapsed().as_nanos() as u64);
    let done = ftl.totals().since(&before);
    Ok(json!({
        "flash_pages": done.programs(),
        "cpu_ns": cpu_ns,
        "wall_ns": wall_ns,
        "wa": done.amplification(),
        "memory_bytes_per_gib": ftl.memory_bytes() / (VISIBLE_BYTES >> 30),
    }))
}

/// Measures the same with 64 dies, 32 requests in flight and every latency in a histogram.
fn timed(engine: Engine) -> anyhow::Result<Value> {
    let mut device = preset::ALL[0].device();
    device.visible_bytes = VISIBLE_BYTES;
    device.raw_bytes = (VISIBLE_BYTES as f64 * (1.0 + OVER_PROVISIONING)) as u64;
    device.pace = Pace::Atomic;
    let plan = Plan::new(device, "uniform".parse()?);
    let plan = Plan {
        scale: 1,
        engine,
        queue_depth: 32,
        drive_fills: 1.5,
        frames: (0, 0),
        points: 30,
        ..plan
    };
    let mut marks: Vec<(f64, u64, Instant)> = Vec::new();
    let outcome = simulate(&plan, &advise_huge_pages, &mut |done| {
        marks.push((done, thread_cpu_ns(), Instant::now()));
        true
    })?;
    // The second half is in steady state.
    let (from, to) = (marks[marks.len() / 2], marks[marks.len() - 1]);
    let pages = |part: f64| part * plan.drive_fills * (VISIBLE_BYTES / PAGE_BYTES) as f64;
    let wa = outcome.steady.wa.unwrap_or(1.0);
    Ok(json!({
        "flash_pages": (pages(to.0 - from.0) * wa) as u64,
        "cpu_ns": to.1 - from.1,
        "wall_ns": (to.2 - from.2).as_nanos() as u64,
        "wa": wa,
        "memory_bytes_per_gib": outcome.memory_bytes / (VISIBLE_BYTES >> 30),
    }))
}
