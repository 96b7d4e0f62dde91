//! Cost of an operation before it is sent, and overhead that a session adds. `cargo bench -p
//! blockstone-workload`.

use std::hint::black_box;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockstone_base::units::Nanos;
use blockstone_servers::{TargetSpec, registry};
use blockstone_workload::{Every, Hotspot, Parameters, Schedule, Think, start};

const STEPS: u32 = 20_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    let plain = Parameters { rows_per_schema: 1 << 20, update_pct: 25, ..Parameters::default() };
    let all = Parameters {
        scan_pct: 1,
        hotspot: Some(Hotspot { first: 2048, rows: 1024, every: Every(3) }),
        hot_schema_every: Some(Every(7)),
        think: Some(Think { min: Nanos(1), max: Nanos(1000), every: Every(5) }),
        ..plain.clone()
    };
    for (name, parameters) in [("plain", &plain), ("everything", &all)] {
        let mut schedule = Schedule::new(parameters, 0);
        let started = Instant::now();
        for _ in 0..STEPS {
            black_box(schedule.step());
        }
        let ns = started.elapsed().as_secs_f64() * 1e9 / f64::from(STEPS);
        writeln!(out, "schedule, {name:11} {ns:5.1} ns an operation")?;
    }
    let go_on = &mut |_| ControlFlow::Continue(());
    let target = (registry::find("null")?.open)(&TargetSpec::default(), go_on)?;
    let parameters = Parameters { loops: Some(5_000_000), ..plain };
    let started = Instant::now();
    let running = start(&Arc::clone(&target), &parameters, &mut || false)?;
    running.wait(Duration::from_mins(1));
    let ns = started.elapsed().as_secs_f64() * 1e9 / 5e6;
    writeln!(out, "session on nothing     {ns:5.1} ns an operation, timed and counted")?;
    Ok(())
}
