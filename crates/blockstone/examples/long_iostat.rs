//! Writes what `S_TIME_FORMAT=ISO iostat -xt 1` would print for an imaginary host over some hours.
//!
//! `long_iostat FILE HOURS DISKS`

use std::fs::File;
use std::io::{BufWriter, Write};

use blockstone_base::rng::Rng;

const HOUR_S: u64 = 3600;
const USAGE: &str = "usage: long_iostat FILE HOURS DISKS";
const PROCESSORS: &str = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle";
const DISKS: &str = "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     \
                     wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm \
                     d_await dareq-sz     f/s f_await  aqu-sz  %util";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [path, numbers @ ..] = &std::env::args().skip(1).collect::<Vec<String>>()[..] else {
        return Err(USAGE.into());
    };
    let numbers: Vec<u64> = numbers.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let [hours, disks] = numbers[..] else { return Err(USAGE.into()) };
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "Linux 6.18.44 (made-up) \t2026-11-01 \t_x86_64_\t(2 CPU)\n")?;
    let mut random = Rng::new(1, 0);
    for second in 0..=hours * HOUR_S {
        let (day, hour) = (1 + second / HOUR_S / 24, second / HOUR_S % 24);
        let (minute, second_of) = (second / 60 % 60, second % 60);
        writeln!(out, "2026-11-{day:02}T{hour:02}:{minute:02}:{second_of:02}+0000")?;
        writeln!(out, "{PROCESSORS}")?;
        let idle = random.unit() * 90.0;
        let (user, system) = ((100.0 - idle) * 0.75, (100.0 - idle) * 0.25);
        writeln!(out, "{user:15.2}    0.00{system:8.2}    0.00    0.00{idle:8.2}\n\n{DISKS}")?;
        // Intervals are slightly longer than a second, as `iostat` sleeps between them.
        let length_s = 1.0 + random.below(2) as f64 / 100.0;
        for disk in 0..disks {
            write!(out, "nvme{disk}n1")?;
            for _ in 0..3 {
                let requests = random.below(4000) as f64 / length_s;
                let (size, wait_ms) = (4.0 + random.unit() * 60.0, random.unit() * 9.0);
                let kib = requests * size;
                write!(out, "{requests:12.2} {kib:9.2}     0.00   0.00{wait_ms:8.2}{size:9.2}")?;
            }
            let flushes = random.below(90) as f64 / length_s;
            let (queue, busy) = (random.unit() * 32.0, random.unit() * 100.0);
            writeln!(out, "{flushes:8.2}    0.31{queue:8.2}{busy:7.2}")?;
        }
        writeln!(out, "\n")?;
    }
    out.flush()?;
    Ok(())
}
