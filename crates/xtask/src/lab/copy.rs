//! Checks that `copy` keeps its promises, compared with the programs used for copying today:
//! elapsed and processor time for one large file, from one slow disk to another, through gzip, and
//! the latency of database reads meanwhile.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use blockstone_base::rng;
use blockstone_base::units::Bytes;
use blockstone_sys::cached::{self, Look};
use blockstone_sys::process;
use blockstone_testkit::{Caps, DeviceSpec, FileSystem, LoopDevice, VolatileDevice};
use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process_group};

use super::Lab;
use super::measure::Product;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::line;

const FILE: Bytes = Bytes::gib(2);
const THROTTLED_FILE: Bytes = Bytes::mib(512);
const PIPED_FILE: Bytes = Bytes::mib(256);
/// Bytes per second of each throttled disk, in each direction.
const THROTTLED: u64 = 100_000_000;
const ROUNDS: usize = 5;
const ROUNDS_OF_RUNS: usize = 3;

const COLUMNS: &[Column] = &[
    column("seconds", "s", 2),
    column("cpu_s", "CPU\ns", 2),
    column("mb_per_s", "MB/s", 0),
    column("cached_mib", "cached after\nMiB", 0),
    column("read_p99_ms", "p99 of reads\nms", 2),
];

/// A way to copy `$FROM` to `$TO` in a shell; `$BLOCKSTONE` is this program.
struct Way {
    name: &'static str,
    /// Program without which this way is left out.
    needs: Option<&'static str>,
    script: &'static str,
}

const fn way(name: &'static str, script: &'static str) -> Way {
    Way { name, needs: None, script }
}

const OURS: &str = r#"exec "$BLOCKSTONE" copy --quiet "$FROM" "$TO""#;
/// Leaves a durable copy when it ends, as `copy` does.
const CP: &str = r#"cp "$FROM" "$TO" && sync "$TO""#;

const LARGE: &[Way] = &[
    way("copy", OURS),
    way("cp, then sync", CP),
    way("cp", r#"exec cp "$FROM" "$TO""#),
    way(
        "dd bs=8M, direct on both sides",
        r#"exec dd if="$FROM" of="$TO" bs=8M iflag=direct oflag=direct conv=fsync status=none"#,
    ),
    way("copy --verify", r#"exec "$BLOCKSTONE" copy --quiet --verify "$FROM" "$TO""#),
    Way {
        name: "rsync -W, then sync",
        needs: Some("rsync"),
        script: r#"rsync -W "$FROM" "$TO" && sync "$TO""#,
    },
    Way {
        name: "xcp, then sync",
        needs: Some("xcp"),
        script: r#"xcp "$FROM" "$TO" && sync "$TO""#,
    },
];

const THROUGH_GZIP: &[Way] = &[
    way("gzip -1, then sync", r#"gzip -1 -c "$FROM" > "$TO" && sync "$TO""#),
    way(
        "copy as reader of gzip -1",
        r#""$BLOCKSTONE" copy --quiet "$FROM" - | gzip -1 -c > "$TO" && sync "$TO""#,
    ),
    way(
        "copy as reader and writer of gzip -1",
        r#""$BLOCKSTONE" copy --quiet "$FROM" - | gzip -1 -c | "$BLOCKSTONE" copy --quiet - "$TO""#,
    ),
];

pub fn run(lab: &Lab) -> Result<Results> {
    let product = Product::build(lab)?;
    let at = |name: &str| product.scratch().join(name);
    let (mut points, mut goals) = (Vec::new(), Vec::new());

    let large = at("large");
    write(&product, &large, FILE)?;
    let of_large = compare(&product, LARGE, (&large, &at("copied")), Command::new)?;
    let ratio = |of: &[Measured], get: fn(&Measured) -> f64, to: usize| get(&of[0]) / get(&of[to]);
    goals.push(Goal::at_most(
        "time ÷ that of cp and sync",
        ratio(&of_large, |it| it.seconds, 1),
        1.0,
    ));
    goals.push(Goal::at_most(
        "processor time ÷ that of cp",
        ratio(&of_large, |it| it.cpu_s, 2),
        0.2,
    ));
    goals.push(Goal::at_most("cached of source and target, MiB", of_large[0].cached_mib, 0.0));
    points.extend(of_large.into_iter().map(|it| it.point("2 GiB: ", FILE)));

    let throttled = throttled(&product)?;
    let slower = ratio(&throttled, |it| it.seconds, 1);
    goals.push(Goal::at_most("time ÷ that of cp and sync, two throttled disks", slower, 0.8));
    points
        .extend(throttled.into_iter().map(|it| it.point("100 MB/s to 100 MB/s: ", THROTTLED_FILE)));

    let piped = at("piped");
    write(&product, &piped, PIPED_FILE)?;
    let piped = compare(&product, THROUGH_GZIP, (&piped, &at("piped.gz")), Command::new)?;
    points.extend(piped.into_iter().map(|it| it.point("", PIPED_FILE)));

    points.extend(beside_a_run(&product, &large, &at("beside"))?);
    Ok(Results { columns: COLUMNS, points, goals })
}

struct Measured {
    name: &'static str,
    seconds: f64,
    cpu_s: f64,
    cached_mib: f64,
}

impl Measured {
    fn point(self, of: &str, size: Bytes) -> Point {
        let mb_per_s = size.get() as f64 / 1e6 / self.seconds;
        let values = vec![self.seconds, self.cpu_s, mb_per_s, self.cached_mib, f64::NAN];
        Point { name: format!("{of}{}", self.name), values }
    }
}

/// Writes data that no storage can make smaller.
fn write(product: &Product<'_>, path: &Path, size: Bytes) -> Result<()> {
    product.begin(&format!("writing {size}"))?;
    let mut file = File::create_new(path).with_context(|| format!("create {}", path.display()))?;
    let mut bytes = vec![0; 8 << 20];
    for part in 0..size.get() / bytes.len() as u64 {
        rng::fill(part, &mut bytes);
        file.write_all(&bytes)?;
    }
    Ok(file.sync_all()?)
}

/// Runs all ways in turn, for several rounds, and returns the median of each.
fn compare(
    product: &Product<'_>,
    ways: &[Way],
    (from, to): (&Path, &Path),
    start: impl Fn(&'static str) -> Command,
) -> Result<Vec<Measured>> {
    let there = |way: &&Way| way.needs.is_none_or(is_there);
    let ways: Vec<&Way> = ways.iter().filter(there).collect();
    let mut rounds: Vec<Vec<Measured>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        for (way, rounds) in ways.iter().zip(&mut rounds) {
            product.begin(&format!("round {} of {ROUNDS}: {}", round + 1, way.name))?;
            rounds.push(once(product, way, (from, to), start("sh"))?);
            fs::remove_file(to)?;
        }
    }
    Ok(rounds.iter().map(|rounds| medians(rounds)).collect())
}

fn is_there(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&paths).any(|dir| dir.join(program).is_file());
    if !is_there {
        eprintln!("{program} is not installed: left out");
    }
    is_there
}

fn medians(rounds: &[Measured]) -> Measured {
    let median = |get: fn(&Measured) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(get).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Measured {
        name: rounds[0].name,
        seconds: median(|it| it.seconds),
        cpu_s: median(|it| it.cpu_s),
        cached_mib: median(|it| it.cached_mib),
    }
}

/// Copies once, with nothing of the source in the page cache.
fn once(
    product: &Product<'_>,
    way: &Way,
    (from, to): (&Path, &Path),
    mut shell: Command,
) -> Result<Measured> {
    fadvise(File::open(from)?, 0, None, Advice::DontNeed)?;
    let began = Instant::now();
    told(&mut shell, product, (from, to)).args(["-c", way.script]).stdout(Stdio::null());
    let child = shell.spawn();
    let ended = process::wait(child.context("start sh")?)?;
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("  {seconds:.2} s");
    ensure!(ended.status.success(), "{}: {}", line(&shell), ended.status);
    let cached_mib = (cached(from)? + cached(to)?) as f64 / f64::from(1 << 20);
    Ok(Measured { name: way.name, seconds, cpu_s: ended.cpu.cpu_ns() as f64 / 1e9, cached_mib })
}

/// Sets the environment variables that the scripts use.
fn told<'a>(
    shell: &'a mut Command,
    product: &Product<'_>,
    (from, to): (&Path, &Path),
) -> &'a mut Command {
    shell.env("BLOCKSTONE", product.binary()).env("FROM", from).env("TO", to)
}

fn cached(path: &Path) -> Result<u64> {
    let until = Instant::now() + Duration::from_secs(10);
    match cached::look(path, fs::metadata(path)?.len(), until)? {
        Look::Cached(found) => Ok(found.cached_bytes),
        other => bail!("the page cache of {}: {other:?}", path.display()),
    }
}

/// Copies from one slow disk to another. What the kernel writes back for cp is not charged to cp,
/// so the second disk is one that is slow for every process.
fn throttled(product: &Product<'_>) -> Result<Vec<Measured>> {
    let size = Bytes(2 * THROTTLED_FILE.get());
    let caps = Caps { read_bytes_per_s: Some(THROTTLED), ..Caps::default() };
    let first = LoopDevice::create(DeviceSpec { size, file_system: Some(FileSystem::Ext4), caps })?;
    let from = first.mount_point().context("mount it")?.join("large");
    write(product, &from, THROTTLED_FILE)?;
    let second = VolatileDevice::limited(size, THROTTLED)?;
    let device = second.device().context("turn it on")?;
    let mounted = product.scratch().join("second");
    fs::create_dir(&mounted)?;
    run_to_its_end(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(device))?;
    run_to_its_end(Command::new("mount").arg(device).arg(&mounted))?;
    let start = |program| first.command(program);
    let compared = compare(product, &LARGE[..2], (&from, &mounted.join("copied")), start);
    run_to_its_end(Command::new("umount").arg(&mounted))?;
    compared
}

fn run_to_its_end(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("start {}", line(command)))?;
    ensure!(status.success(), "`{}` failed with {status}", line(command));
    Ok(())
}

/// Measures the read latency of a run on the disk on which a file is copied over and over.
fn beside_a_run(product: &Product<'_>, from: &Path, data: &Path) -> Result<Vec<Point>> {
    const BESIDE: &[Way] = &[
        way("alone", "exec sleep 1000"),
        way(
            "beside copy --rate 50M",
            r#"while "$BLOCKSTONE" copy --quiet --rate 50M "$FROM" "$TO"; do rm "$TO"; done"#,
        ),
        way("beside copy", r#"while "$BLOCKSTONE" copy --quiet "$FROM" "$TO"; do rm "$TO"; done"#),
        way("beside cp", r#"while cp "$FROM" "$TO"; do rm "$TO"; done"#),
    ];
    fs::create_dir(data)?;
    let to = product.scratch().join("over-and-over");
    let mut rounds: Vec<Vec<f64>> = BESIDE.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS_OF_RUNS {
        for (way, rounds) in BESIDE.iter().zip(&mut rounds) {
            product.begin(&format!(
                "round {} of {ROUNDS_OF_RUNS}: a run {}",
                round + 1,
                way.name
            ))?;
            let mut shell = Command::new("sh");
            told(&mut shell, product, (from, &to)).args(["-c", way.script]).process_group(0);
            let quiet = shell.stdout(Stdio::null()).stderr(Stdio::null());
            let mut beside = quiet.spawn().context("start sh")?;
            let ran = read_p99_ms(product, data);
            kill_process_group(Pid::from_child(&beside), Signal::TERM)?;
            beside.wait()?;
            rounds.push(ran?);
            remove_all(&to)?;
        }
    }
    let point = |(way, mut rounds): (&Way, Vec<f64>)| {
        rounds.sort_by(f64::total_cmp);
        let values = [&[f64::NAN; 4][..], &[rounds[rounds.len() / 2]]].concat();
        Point { name: format!("a run {}", way.name), values }
    };
    Ok(BESIDE.iter().zip(rounds).map(point).collect())
}

fn read_p99_ms(product: &Product<'_>, data: &Path) -> Result<f64> {
    let mut run = Command::new(product.binary());
    run.args(["run", "--json", "--for", "8s", "--runs-dir"]).arg(product.runs_dir());
    let document = product.document(run.arg(data))?;
    Ok(document["figures"]["read_latency_ns_p99"]["value"].as_f64().unwrap_or(f64::NAN) / 1e6)
}

/// Removes whatever exists of a copy: the target, or the file that was to become it.
fn remove_all(target: &Path) -> Result<()> {
    let dir = target.parent().context("find its directory")?;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.to_string_lossy().contains("over-and-over") {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
