//! `copy FILE -` and `copy - FILE`: large direct requests for programs that read or write a pipe.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use blockstone_base::text::{parent_dir, shown};
use blockstone_base::units::Bytes;
use blockstone_copy::CopyError;
use blockstone_copy::cost::{Meter, cached_bytes};
use blockstone_copy::device;
use blockstone_copy::file::pipe::{self, Piped};
use blockstone_copy::file::{Copied, onto_device};
use blockstone_copy::tree::{self, CopiedFile, Outcome, Steady};
use blockstone_measure::claim::Device;
use blockstone_record::manifest::End;
use blockstone_sys::file::BlockFile;
use blockstone_sys::held::open_file;
use blockstone_sys::path;

use super::args::CopyArgs;
use super::beside::Against;
use super::{Ran, options, report};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::progress::Progress;
use crate::verb::Context;

pub fn run(args: &CopyArgs, sources: &[PathBuf], target: &Path, context: &Context) -> Result<Exit> {
    refuse_options(args, "a pipe")?;
    if args.verify && target == Path::new("-") {
        bail!(Failure::new(
            "verify a copy to a pipe: the data cannot be read back",
            "omit --verify"
        ));
    }
    if args.force && target == Path::new("-") {
        bail!(Failure::new(
            "use --force with standard output: no file is replaced",
            "omit --force"
        ));
    }
    let pipe = Path::new("-");
    match sources {
        [source] if source == pipe && target == pipe => {
            bail!(Failure::new("copy - to -: both are pipes", "name a file as one of them"))
        }
        [source] if source == pipe => from_pipe(args, target, context),
        [source] if target == pipe => to_pipe(args, source, context),
        _ => bail!(Failure::new(
            "copy several sources with -: a pipe has one",
            "name one file and -"
        )),
    }
}

fn to_pipe(args: &CopyArgs, source: &Path, context: &Context) -> Result<Exit> {
    if context.global.json.is_some()
        || context.global.csv.is_some()
        || context.global.html.is_some()
    {
        bail!(Failure::new(
            format!("copy {} to standard output: the report would be in it", shown(source)),
            "omit --json, --csv and --html"
        ));
    }
    refuse_destroy(args)?;
    if device::is_device(source) {
        refuse_method(args)?;
    }
    let out = own(io::stdout()).context("open standard output")?;
    let (ran, piped) = through(args, (source, source), context, |watch| {
        pipe::read(source, &out, &options(args), watch)
    })?;
    if piped.is_some_and(|piped| piped.broken) {
        context.printer.note("the reader of the pipe ended before the file");
    }
    context.printer.note(&report::headline(&ran));
    Ok(if ran.outcome.interrupted { Exit::Interrupted } else { Exit::Done })
}

fn from_pipe(args: &CopyArgs, target: &Path, context: &Context) -> Result<Exit> {
    if device::is_device(target) {
        refuse_method(args)?;
        let number = claim(args, target)?;
        let input = own(io::stdin()).context("open standard input")?;
        let (ran, _) = through(args, (Path::new("-"), target), context, |watch| {
            let target = onto_device::Target { path: target, number };
            onto_device::write_pipe(&input, &target, &options(args), watch)
        })?;
        let from = [PathBuf::from("-")];
        return finish(&report::report(&ran, (&from, target), &Against::default()), context);
    }
    refuse_destroy(args)?;
    let (dir, name) = tree::pipe_target(target, args.force)?;
    let input = own(io::stdin()).context("open standard input")?;
    let (ran, _) = through(args, (Path::new("-"), target), context, |watch| {
        let carry = |_: &File, file: &File| pipe::share(file, target);
        pipe::write(&input, (&dir, &name), &options(args), &carry, watch)
    })?;
    finish(&report::report(&ran, (&[PathBuf::from("-")], target), &Against::default()), context)
}

/// Reads a device from beginning to end, as a pipe is read. The file is for this user only: the
/// device was not for all.
pub fn from_device(
    args: &CopyArgs,
    source: &Path,
    target: &Path,
    context: &Context,
) -> Result<Exit> {
    refuse_options(args, "a device")?;
    let (dir, name) = tree::pipe_target(target, args.force)?;
    let input = device::open(source)?;
    let (ran, _) = through(args, (source, target), context, |watch| {
        pipe::write(&input, (&dir, &name), &options(args), &|_, _| Ok(()), watch)
    })?;
    finish(&report::report(&ran, (&[source.to_owned()], target), &Against::default()), context)
}

/// Overwrites a device from its beginning.
pub fn to_device(
    args: &CopyArgs,
    sources: &[PathBuf],
    target: &Path,
    context: &Context,
) -> Result<Exit> {
    refuse_options(args, "a device")?;
    let [source] = sources else {
        bail!(Failure::new("copy several sources to a device", "name one file or device"));
    };
    if device::is_device(source) {
        refuse_method(args)?;
    }
    if path::look(source).is_ok_and(|found| found.is_dir()) {
        bail!(Failure::new(
            format!("copy {}: a directory to a device", shown(source)),
            "name a file or device"
        ));
    }
    let number = claim(args, target)?;
    let (ran, _) = through(args, (source, target), context, |watch| {
        let target = onto_device::Target { path: target, number };
        onto_device::write(source, &target, &options(args), watch)
    })?;
    finish(&report::report(&ran, (sources, target), &Against::default()), context)
}

/// Refuses a device that was named once only, is in use or is not empty. Returns its number.
fn claim(args: &CopyArgs, target: &Path) -> Result<u64> {
    let number = device::number(target)?;
    let destroy = args.destroy.as_deref() == Some(target);
    Device { path: target, destroy, instead: None }.claim(|_| Ok(false))?;
    Ok(number)
}

pub fn refuse_destroy(args: &CopyArgs) -> Result<()> {
    if let Some(other) = &args.destroy {
        bail!(Failure::new(
            format!("copy with --destroy {}: the target is not a block device", shown(other)),
            "omit --destroy"
        ));
    }
    Ok(())
}

fn refuse_options(args: &CopyArgs, with: &str) -> Result<()> {
    let given = [
        ("--resume", args.resume),
        ("--manifest", args.manifest.is_some()),
        ("--against", args.against.is_some()),
        ("--jobs", args.jobs.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        bail!(Failure::new(
            format!("use {option} with {with}: it applies to files only"),
            format!("omit {option}")
        ));
    }
    Ok(())
}

fn refuse_method(args: &CopyArgs) -> Result<()> {
    if args.method.is_some() {
        bail!(Failure::new(
            "use --method with a device alone: its requests are direct",
            "omit --method"
        ));
    }
    Ok(())
}

fn own(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

/// Runs `act` and shows its progress. An interrupted pipe leaves no target.
fn through(
    args: &CopyArgs,
    (source, target): (&Path, &Path),
    context: &Context,
    act: impl FnOnce(&dyn blockstone_copy::file::Watch) -> Result<Piped, CopyError>,
) -> Result<(Ran, Option<Piped>)> {
    let file = if source == Path::new("-") { target } else { source };
    // The owner of its directory may have redirected the target in the meantime.
    let open = || {
        if source == Path::new("-") {
            BlockFile::open_found(target).and_then(|it| it.plain()).map_err(io::Error::other)
        } else {
            open_file(source)
        }
    };
    let page_cache_before = cached_bytes([open()]);
    let all = device::size_bytes(source).unwrap_or(0);
    let mut bar = Progress::start(context.printer)?;
    let onto = if device::is_device(target) { target } else { parent_dir(target) };
    let meter = Meter::start([source], onto);
    let piped = {
        let watch = Steady::new(args.rate, |done: u64| {
            bar.step(
                done as f64 / all.max(done) as f64,
                &format!("{}  {}", Bytes(done), shown(file)),
            )
        });
        act(&watch)
    };
    let cost = meter.read();
    bar.finish();
    let piped = match piped {
        Ok(piped) => Some(piped),
        Err(CopyError::Interrupted) => None,
        Err(error) => return Err(error.into()),
    };
    let copied = |piped: &Piped| CopiedFile {
        source: source.to_owned(),
        target: target.to_owned(),
        copied: Copied {
            bytes: piped.bytes,
            data_bytes: piped.bytes,
            method: piped.method,
            why: piped.why.clone(),
            chunks: Vec::new(),
            resumed_bytes: 0,
            again_bytes: 0,
            verified: piped.verified.clone(),
        },
        seconds: Some(cost.seconds),
    };
    let outcome = Outcome {
        files: piped.iter().map(copied).collect(),
        interrupted: piped.is_none(),
        ..Outcome::default()
    };
    let ran = Ran {
        page_cache_before,
        page_cache_after: cached_bytes([open()]),
        end: End::by(bar.signal().filter(|_| piped.is_none())),
        outcome,
        cost,
    };
    Ok((ran, piped))
}
