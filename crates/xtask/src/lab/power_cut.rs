//! Checks that `check durability` finds what a power cut loses, through whole cycles: a machine
//! emulated by QEMU writes, the witness outside cuts its power, it boots, verifies and writes
//! again. The effect of a flush on each disk is known, because the disks are nbdkit's and QEMU's.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use blockstone_base::Bytes;
use blockstone_testkit::{Fault, Guest, GuestDisk, Power};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Lab;
use super::measure::Product;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::packages;

const CUTS: u64 = 5;
const SIZE: Bytes = Bytes::mib(64);
/// Time that the machine may take until it has written something.
const START: Duration = Duration::from_mins(3);

struct Setup {
    name: &'static str,
    disk: GuestDisk,
    cut: Power,
    methods: &'static str,
    /// Whether files of an ext4 file system are written instead of the disk itself: the kernel
    /// flushes a disk also after writes with FUA.
    mounted: bool,
    found: Found,
}

/// Required result.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    /// Nothing acknowledged is lost, and at least one of all cuts proves it: not each one does,
    /// because a flush of the other methods saves the control, unless the cut falls between the
    /// two.
    Durable,
    /// Each cut loses acknowledged writes.
    Lost,
    /// No cut proves anything.
    Nothing,
}

const BOTH: &str = "fsync,direct-dsync,direct-none";

const SETUPS: &[Setup] = &[
    Setup {
        name: "a disk that flushes",
        disk: GuestDisk::Honest,
        cut: Power::Cycle,
        methods: BOTH,
        mounted: false,
        found: Found::Durable,
    },
    Setup {
        name: "a disk that ignores flushes",
        disk: GuestDisk::IgnoresFlushes,
        cut: Power::Cycle,
        methods: BOTH,
        mounted: false,
        found: Found::Lost,
    },
    Setup {
        name: "a disk that loses a flush",
        disk: GuestDisk::Own(Fault::LosesFlush(100)),
        cut: Power::Cycle,
        methods: "fsync,direct-none",
        mounted: false,
        found: Found::Lost,
    },
    Setup {
        name: "a disk that tears pages",
        disk: GuestDisk::Own(Fault::TearsPage(50)),
        cut: Power::Cycle,
        methods: "fsync,direct-none",
        mounted: false,
        found: Found::Lost,
    },
    Setup {
        name: "a disk that ignores FUA",
        disk: GuestDisk::Own(Fault::IgnoresFua),
        cut: Power::Cycle,
        methods: "direct-dsync,direct-none",
        mounted: true,
        found: Found::Lost,
    },
    Setup {
        name: "a disk without a cache",
        disk: GuestDisk::Through,
        cut: Power::Cycle,
        methods: BOTH,
        mounted: false,
        found: Found::Nothing,
    },
    Setup {
        name: "a disk that keeps its power",
        disk: GuestDisk::Honest,
        cut: Power::Reset,
        methods: BOTH,
        mounted: false,
        found: Found::Nothing,
    },
];

const COLUMNS: &[Column] = &[
    column("cuts", "cuts\nverified", 0),
    column("conclusive", "that lost what\nwas not flushed", 0),
    column("with_loss", "and what\nwas", 0),
    column("acknowledged", "acknowledged\nwrites", 0),
    column("checked", "flushed blocks\nchecked", 0),
    column("lost", "of these\nlost", 0),
    column("torn", "of these\ntorn", 0),
    column("seconds_a_cut", "seconds\na cut", 1),
];

pub fn run(lab: &Lab) -> Result<Results> {
    packages::guest()?;
    let product = Product::build(lab)?;
    let cuts = lab.options.seeds.unwrap_or(CUTS);
    let (mut points, mut goals) = (Vec::new(), Vec::new());
    for setup in SETUPS {
        product.begin(setup.name)?;
        let measured = setup.cycle(&product, cuts)?;
        goals.extend(setup.goals(&measured, cuts as f64));
        points.push(measured.point(setup.name));
    }
    Ok(Results { columns: COLUMNS, points, goals })
}

#[derive(Default)]
struct Measured {
    conclusive: f64,
    with_loss: f64,
    inconclusive: f64,
    acknowledged: f64,
    /// Flushed blocks that were checked.
    checked: f64,
    lost: f64,
    torn: f64,
    /// Verifications that learned of the cache from the drive itself.
    declared: f64,
    seconds_a_cut: f64,
}

impl Measured {
    fn of(document: &Value, guest: &Guest, seconds: f64) -> Result<Self> {
        let row = &document["tables"]["durability-witnessed"][0];
        let number = |key: &str| {
            let value = row[key].as_f64();
            value.with_context(|| format!("find {key} in what was witnessed: {document:#}"))
        };
        let (conclusive, inconclusive) = (number("cuts")?, number("cuts_inconclusive")?);
        let mut measured = Self {
            conclusive,
            with_loss: number("cuts_with_loss")?,
            inconclusive,
            acknowledged: number("acknowledged")?,
            seconds_a_cut: seconds / (conclusive + inconclusive),
            ..Self::default()
        };
        let answers = guest.answers();
        for answer in serde_json::Deserializer::from_str(&answers).into_iter::<Value>() {
            let answer = answer.context("understand what the machine answered")?;
            eprintln!("    {}", answer["answer"].as_str().unwrap_or_default());
            let streams = answer["tables"]["durability-streams"].as_array();
            for stream in streams.context("find the writers")? {
                if stream["control"] == true {
                    continue;
                }
                measured.checked += stream["checked"].as_f64().unwrap_or_default();
                measured.lost += stream["lost"].as_f64().unwrap_or_default();
                measured.torn += stream["torn"].as_f64().unwrap_or_default();
            }
            let mut chain = answer["tables"]["durability-chain"].as_array().into_iter().flatten();
            let declares = chain.any(|layer| layer["drive_cache"] == "write back");
            measured.declared += f64::from(u8::from(declares));
        }
        Ok(measured)
    }

    fn cuts(&self) -> f64 {
        self.conclusive + self.inconclusive
    }

    fn point(&self, name: &str) -> Point {
        let values = vec![
            self.cuts(),
            self.conclusive,
            self.with_loss,
            self.acknowledged,
            self.checked,
            self.lost,
            self.torn,
            self.seconds_a_cut,
        ];
        Point { name: name.to_owned(), values }
    }
}

impl Setup {
    fn goals(&self, measured: &Measured, cuts: f64) -> Vec<Goal> {
        let what = |what: &str| format!("{}: {what}", self.name);
        let with_loss = if self.found == Found::Lost { cuts } else { 0.0 };
        let mut goals = vec![
            Goal::within(what("cuts verified"), measured.cuts(), cuts, cuts),
            Goal::within(what("cuts with loss"), measured.with_loss, with_loss, with_loss),
            Goal::within(what("caches declared by the drive"), measured.declared, cuts, cuts),
        ];
        match self.found {
            Found::Durable => {
                goals.push(Goal::at_least(what("conclusive"), measured.conclusive, 1.0));
            }
            Found::Nothing => {
                goals.push(Goal::at_most(what("conclusive"), measured.conclusive, 0.0));
            }
            Found::Lost => {}
        }
        goals
    }

    /// Has the witness cut the power this many times.
    fn cycle(&self, product: &Product<'_>, cuts: u64) -> Result<Measured> {
        let guest = Guest::create(SIZE, self.disk)?;
        if self.mounted {
            let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(guest.backing()).status();
            if !made.context("start mkfs.ext4")?.success() {
                bail!("mkfs.ext4 failed");
            }
        }
        let (log, said) = (product.scratch().join("log"), product.scratch().join("said"));
        let _ = fs::remove_file(&log);
        let mut witness = Command::new(product.binary());
        witness.args(["check", "durability", "--json", "--serve", "127.0.0.1:0", "--log"]);
        witness.arg(&log).args(["--cycles", &cuts.to_string(), "--cut"]);
        witness.arg(guest.power_command(self.cut)).stderr(File::create(&said)?);
        let began = Instant::now();
        let document = product.document_while(&mut witness, |child| {
            let started = self.start(product, &guest, &said).and_then(|()| {
                await_that(|| fs::metadata(&log).is_ok_and(|found| found.len() > 4096))
            });
            if started.is_err() {
                end(child)?;
            }
            started.with_context(|| format!("start a machine:\n{}", guest.console()))
        })?;
        let seconds = began.elapsed().as_secs_f64();
        // The machine reports what the last cut left, has no witness left to write for, and turns
        // itself off.
        await_that(|| !guest.runs())?;
        Measured::of(&document, &guest, seconds)
    }

    /// Boots the machine, with a job that verifies and writes.
    fn start(&self, product: &Product<'_>, guest: &Guest, said: &Path) -> Result<()> {
        await_that(|| port_in(said).is_some())?;
        let port = port_in(said).context("read the port of the witness")?;
        let methods = self.methods;
        let (mount, path, write) = if self.mounted {
            ("mount $DISK /mnt\n", "/mnt", "--patterns overwrite")
        } else {
            ("", "$DISK", "--destroy $DISK")
        };
        let check = format!("blockstone check durability --witness $HOST:{port} {path}");
        let job = format!(
            "{mount}{check} --verify --json >/answers\n{check} --methods {methods} {write}\n"
        );
        guest.install(&job, &[product.binary()])?;
        guest.power(Power::On)?;
        Ok(())
    }
}

/// A witness process, killed on drop.
#[derive(Debug)]
pub struct Witness {
    child: Child,
    pub port: String,
}

impl Witness {
    pub fn start(product: &Product<'_>, log: &Path) -> Result<Self> {
        let said = product.scratch().join("said");
        let mut command = Command::new(product.binary());
        command.args(["check", "durability", "--serve", "127.0.0.1:0", "--log"]).arg(log);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said)?);
        let mut witness = Self { child: command.spawn()?, port: String::new() };
        await_that(|| port_in(&said).is_some())?;
        witness.port = port_in(&said).context("read the port of the witness")?;
        Ok(witness)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // Both calls fail only if it has already ended on its own.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn port_in(said: &Path) -> Option<String> {
    let text = fs::read_to_string(said).ok()?;
    let (_, rest) = text.split_once("listens at 127.0.0.1:")?;
    Some(rest.split_once(',')?.0.to_owned())
}

fn end(child: &Child) -> Result<()> {
    kill_process(Pid::from_child(child), Signal::TERM).context("end the witness")
}

fn await_that(holds: impl Fn() -> bool) -> Result<()> {
    await_within(START, holds)
}

pub fn await_within(limit: Duration, holds: impl Fn() -> bool) -> Result<()> {
    let patience = Instant::now() + limit;
    while !holds() {
        if Instant::now() > patience {
            bail!("it did not happen within {} s", limit.as_secs());
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}
