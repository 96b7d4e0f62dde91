//! `blockstone demo`: an honest figure of a directory, then three ways to get another number from
//! the same storage, and the rules that notice. Each is a short calibration, whose recording shows
//! all of its evidence.

mod args;
mod found;
mod report;
mod rows;

use std::path::Path;

use anyhow::{Result, bail};
use blockstone_base::identity::{DeviceKind, StorageTarget};
use blockstone_base::table::Rows as _;
use blockstone_base::units::Nanos;
use blockstone_calibrate::{CalibrateError, HeldFile, Options, Settings, Subject, prepare};
use blockstone_measure::claim::ClaimError;
use blockstone_measure::{Live, Observer};
use blockstone_record::Recording;
use blockstone_record::manifest::End;
use blockstone_report::render::json::schema::Document;
use blockstone_sys::cgroup::ReadCap;
use clap::{Args, FromArgMatches};

use super::calibrate;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::{finish, keep};
use crate::progress::Progress;
use crate::recordings;
use crate::verb::{Context, Verb};
use args::DemoArgs;
use found::{Found, Way, tenth};
use rows::Summary;

pub const VERB: Verb = Verb {
    name: "demo",
    about: "Show within a minute why a number cannot be believed",
    options: DemoArgs::augment_args,
    run: |options, context| run(&DemoArgs::from_arg_matches(options)?, context),
    reports: true,
    finds_runs: true,
    writes: true,
    documents: &[Document::of_tables(
        ("demo", 2),
        "An honest figure of the storage, and others that are not",
        Summary::COLUMNS,
        &[report::TABLES],
    )],
    ..Verb::PLAIN
};

fn run(args: &DemoArgs, context: &Context) -> Result<Exit> {
    let progress = Progress::start(context.printer)?;
    let mut demo = Demo { context, progress, found: Vec::new(), spent: Nanos(0) };
    let measured = demo.measure(&args.dir);
    demo.progress.finish();
    measured?;
    finish(&report::report(&args.dir, &demo.found), context)
}

struct Demo<'a> {
    context: &'a Context,
    progress: Progress,
    found: Vec<Found>,
    /// Time taken by the ways before this one.
    spent: Nanos,
}

impl Demo<'_> {
    /// Measures one way after the other, until one ends early.
    fn measure(&mut self, dir: &Path) -> Result<()> {
        let subject = Subject::Path(dir.to_owned());
        let Some(honest) = self.take(Way::Honest, subject, &["--brief"])? else {
            return Ok(());
        };
        self.take(Way::Sparse, Subject::Held(honest.hole()?), &["--brief"])?;
        honest.cache()?;
        self.take(Way::PageCache, Subject::Held(honest.clone()), &["--brief", "--buffered"])?;
        let Some(first) = self.found.first() else { return Ok(()) };
        let reads_per_s = tenth(first.iops.map_or(0.0, |iops| iops.value));
        // Held until the end of the measurement.
        let cap = whole_disk(&first.manifest.target)
            .ok_or_else(|| "no block device lies beneath it".to_owned())
            .and_then(|device| ReadCap::enter(device, reads_per_s));
        let rate = format!("--rate={reads_per_s}");
        let given_rate = ["--brief", &rate, "--arrivals=fixed"];
        let (way, options): (_, &[&str]) = match &cap {
            // A plateau is one over three doublings of concurrency, in windows of many bursts.
            Ok(_) => (Way::Cap { reads_per_s }, &["--quick"]),
            Err(why) => (Way::GivenRate { reads_per_s, why: why.clone() }, &given_rate),
        };
        self.take(way, Subject::Held(honest), options)?;
        Ok(())
    }

    /// Measures and judges one way, unless an earlier one ended early. Returns the file that it
    /// created, if it ran to its end.
    fn take(&mut self, way: Way, subject: Subject, options: &[&str]) -> Result<Option<HeldFile>> {
        if self.found.last().is_some_and(|last| last.manifest.end != End::Complete) {
            return Ok(None);
        }
        let words = [options, &["--read-only"]].concat();
        let runs_dir = &self.context.global.runs_dir;
        let settings = Settings {
            options: Options::parse(&words)?,
            seed: recordings::draw_seed(),
            argv: recordings::command_line(),
            recording: recordings::new_dir(VERB.name, None, runs_dir, &[])?,
            subjects: vec![subject],
        };
        let prepared = prepare(&settings).map_err(refused)?;
        if !prepared.creates_file() && way == Way::Honest {
            bail!(not_a_directory(settings.subjects[0].path()));
        }
        let mut part = Part {
            progress: &mut self.progress,
            way: way.name(),
            before: self.spent,
            after: (Way::COUNT - 1).saturating_sub(self.found.len()) as u64,
            elapsed: Nanos(0),
        };
        let (dir, file) = prepared.run_and_hold(&mut part)?;
        self.spent = Nanos(self.spent.get() + part.elapsed.get());
        let recording = Recording::open(&dir)?;
        let findings = blockstone_judge::find(&recording)?;
        keep(&calibrate::report::report(&recording, &findings)?, &dir)?;
        let end = recording.manifest.end.clone();
        self.found.push(Found::new(way, recording.manifest, findings));
        Ok(file.filter(|_| end == End::Complete))
    }
}

/// Returns the number of the topmost device that can be capped: a partition cannot.
fn whole_disk(target: &StorageTarget) -> Option<&str> {
    let mut whole = target.devices.iter().filter(|device| device.kind != DeviceKind::Partition);
    whole.next().map(|device| device.number.as_str())
}

fn not_a_directory(path: &Path) -> Failure {
    Failure::new(
        format!("create files in {}: it is not a directory", path.display()),
        format!("blockstone calibrate {} measures a file or a device", path.display()),
    )
}

/// Replaces the error whose hint names an option of `calibrate`.
fn refused(error: CalibrateError) -> anyhow::Error {
    match error {
        CalibrateError::Claim(ClaimError::NoSpace { path, free, .. }) => Failure::new(
            format!("create files in {}: only {free} are free", path.display()),
            "32 MiB are needed: free some space, or name a directory of another file system",
        )
        .into(),
        error => error.into(),
    }
}

/// One way as a part of the whole: the others are expected to take as long.
struct Part<'a> {
    progress: &'a mut Progress,
    way: &'static str,
    before: Nanos,
    /// Number of ways that follow.
    after: u64,
    elapsed: Nanos,
}

impl Observer for Part<'_> {
    fn phase(&mut self, label: &str) {
        self.progress.phase(&format!("{}/{label}", self.way));
    }

    fn tick(&mut self, live: &Live<'_>) {
        self.elapsed = live.elapsed;
        let whole = live.elapsed.get() + live.left.get();
        self.progress.tick(&Live {
            label: &format!("{}/{}", self.way, live.label),
            elapsed: Nanos(self.before.get() + live.elapsed.get()),
            left: Nanos(live.left.get() + self.after * whole),
            is_estimate: true,
            ..*live
        });
    }

    fn note(&mut self, text: &str) {
        self.progress.note(text);
    }

    fn interrupted(&self) -> Option<&'static str> {
        self.progress.interrupted()
    }
}
