//! `blockstone copy`: copies files, directories and pipes in large direct requests.

mod against;
mod args;
mod beside;
mod check;
mod earlier;
mod manifest;
mod pipes;
mod report;
mod rows;
mod rules;
mod words;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use blockstone_base::rule::listed;
use blockstone_base::table::Rows as _;
use blockstone_base::text::shown;
use blockstone_base::units::Bytes;
use blockstone_copy::cost::{Cost, Meter, cached_bytes};
use blockstone_copy::device;
use blockstone_copy::file::Options;
use blockstone_copy::tree::{self, Kind, Outcome, Plan, Settings, Step};
use blockstone_record::manifest::End;
use blockstone_report::render::json::schema::Document;
use blockstone_sys::held::HeldDir;
use blockstone_sys::memory;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::{Failure, with_hint_of};
use crate::finish::finish;
use crate::progress::Progress;
use crate::verb::{Context, Verb};
use args::{CopyArgs, Peer};
use beside::Against;
use rows::Summary;

pub const VERB: Verb = Verb {
    name: "copy",
    about: "Copy files without the page cache, verified and resumable",
    options: CopyArgs::augment_args,
    common: &["verify", "resume", "force", "manifest", "check", "destroy", "rate", "jobs"],
    run: |options, context| run(&CopyArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(rules::ALL).collect(),
    finds_runs: true,
    writes: true,
    documents: &[
        Document::of_tables(("copy", 2), "A copy of files", Summary::COLUMNS, report::TABLES),
        Document::of_tables(
            ("copy-check", 2),
            "Files compared with a manifest",
            check::Summary::COLUMNS,
            check::TABLES,
        ),
    ],
    ..Verb::PLAIN
};

const JOBS: u16 = 2;

/// A copy that completed or failed.
struct Ran {
    outcome: Outcome,
    cost: Cost,
    page_cache_before: Option<u64>,
    page_cache_after: Option<u64>,
    end: End,
}

fn run(args: &CopyArgs, context: &Context) -> Result<Exit> {
    check_options(args)?;
    if let Some(manifest) = &args.check {
        return check::run(args, manifest, context);
    }
    let Some((target, sources)) = args.paths.split_last().filter(|(_, it)| !it.is_empty()) else {
        bail!(Failure::new(
            format!("copy {}: no target is named", args.paths[0].display()),
            "blockstone copy SOURCE TARGET"
        ));
    };
    if target == Path::new("-") || sources.iter().any(|source| source == Path::new("-")) {
        return pipes::run(args, sources, target, context);
    }
    if device::is_device(target) {
        return pipes::to_device(args, sources, target, context);
    }
    pipes::refuse_destroy(args)?;
    if let [source] = sources
        && device::is_device(source)
    {
        return pipes::from_device(args, source, target, context);
    }
    if let Some(peer) = &args.against {
        return against::run((args, peer), sources, target, context);
    }
    let mut bar = Progress::start(context.printer)?;
    let plan = tree::plan(sources, target, &options(args))?;
    let mut list = args.manifest.as_deref().map(manifest::List::create).transpose()?;
    let only_file = matches!(&plan.entries[..], [_]);
    let settings = settings(args);
    if settings.file.in_flight < args.in_flight {
        let Settings { file, jobs, .. } = &settings;
        let (in_flight, request) = (file.in_flight, file.request);
        context.printer.note(&format!(
            "memory is short: {jobs} files at once, {in_flight} requests of {request} each"
        ));
    }
    let mut ran = copy(plan, &settings, sources, &mut bar);
    bar.finish();
    // There is nothing to report besides the error.
    if only_file && let Some(failure) = ran.outcome.failed.pop() {
        return Err(failure.error.into());
    }
    if let Some(list) = &mut list {
        list.write(&ran.outcome, target)?;
    }
    let exit = finish(&report::report(&ran, (sources, target), &Against::default()), context)?;
    complain(&ran, context);
    if exit == Exit::Interrupted {
        context.printer.note(&format!("continue with: {}", resuming()));
    }
    Ok(exit)
}

fn check_options(args: &CopyArgs) -> Result<()> {
    const PAGE_BYTES: u64 = 4096;
    let other = match args.against {
        Some(Peer::Request(size)) => Some(("--against", size)),
        _ => None,
    };
    for (option, size) in [("--request", args.request)].into_iter().chain(other) {
        let bytes = size.get();
        if bytes == 0 || !bytes.is_multiple_of(PAGE_BYTES) || bytes > 256 << 20 {
            bail!(Failure::new(
                format!("copy with {option} {size}: it must be a multiple of 4K, up to 256M"),
                format!("for example {option} 8M")
            ));
        }
    }
    if args.rate.is_some_and(|rate| rate.get() == 0) {
        bail!(Failure::new(
            "copy at --rate 0: it must be greater than 0",
            "for example --rate 100M"
        ));
    }
    Ok(())
}

fn options(args: &CopyArgs) -> Options {
    let request = tree::smooth_request(args.request, args.rate);
    let at_once = at_once(request, memory::left());
    Options {
        method: args.method.map(Into::into),
        request,
        in_flight: args.in_flight.min((at_once / jobs(args, at_once)).max(1)),
        hash: args.verify || args.manifest.is_some(),
        verify: args.verify,
        resume: args.resume,
        force: args.force,
    }
}

fn settings(args: &CopyArgs) -> Settings {
    let file = options(args);
    let jobs = jobs(args, at_once(file.request, memory::left()));
    Settings { file, jobs: jobs as usize, rate: args.rate }
}

/// Number of requests, of all files together, that half of the free memory has room for.
fn at_once(request: Bytes, left: Option<Bytes>) -> u32 {
    let requests = left.map(|left| left.get() / 2 / request.get().max(1));
    requests.and_then(|it| u32::try_from(it).ok()).unwrap_or(u32::MAX).max(1)
}

/// Number of files copied at the same time, as far as memory allows.
fn jobs(args: &CopyArgs, at_once: u32) -> u32 {
    u32::from(args.jobs.unwrap_or(JOBS)).min(at_once)
}

fn copy(plan: Plan, settings: &Settings, sources: &[PathBuf], bar: &mut Progress) -> Ran {
    let root = plan.root.within(Path::new(""));
    let files = plan.entries.iter().filter(|entry| matches!(entry.kind, Kind::File));
    let files = files.map(|it| (Arc::clone(&it.base), it.below().to_owned(), it.target.clone()));
    let files: Vec<(Arc<HeldDir>, PathBuf, PathBuf)> = files.collect();
    let cached = || {
        let root = root.as_ref().ok()?;
        let both = files.iter().flat_map(|(base, source, target)| {
            [base.read_within(source), root.read_within(target)]
        });
        cached_bytes(both)
    };
    let page_cache_before = cached();
    let meter = Meter::start(sources.iter().map(PathBuf::as_path), plan.root.path());
    let outcome = tree::copy(plan, settings, &mut |step| show(bar, step));
    let cost = meter.read();
    // A signal that came after the last byte interrupted nothing.
    let end = End::by(bar.signal().filter(|_| outcome.interrupted));
    Ran { outcome, cost, page_cache_before, page_cache_after: cached(), end }
}

fn show(bar: &mut Progress, step: Step<'_>) -> bool {
    let (done, all) = (step.done_bytes, step.all_bytes);
    let text = format!("{} of {}  {}", Bytes(done), Bytes(all), shown(step.file));
    bar.step(done as f64 / all.max(1) as f64, &text)
}

/// Reports each file that could not be copied.
fn complain(ran: &Ran, context: &Context) {
    for failure in &ran.outcome.failed {
        let error = with_hint_of(&failure.error, failure.error.to_string());
        context.printer.error(&error);
    }
}

/// Returns the command line that resumes this copy, quoted for a shell.
fn resuming() -> String {
    let mut words: Vec<String> = std::env::args_os().map(|word| quoted(&word)).collect();
    if let Some(program) = words.first_mut() {
        "blockstone".clone_into(program);
    }
    if !words.iter().any(|word| word == "--resume") {
        let verb = words.iter().position(|word| word == VERB.name).unwrap_or(0);
        words.insert(verb + 1, "--resume".to_owned());
    }
    words.join(" ")
}

/// Quotes a word for a shell, whatever bytes it contains.
fn quoted(word: &OsStr) -> String {
    let bytes = word.as_encoded_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(byte);
    match word.to_str() {
        Some(text) if !text.is_empty() && bytes.iter().all(plain) => text.to_owned(),
        Some(text) if !text.chars().any(char::is_control) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => {
            let escaped: Vec<String> = bytes.iter().map(|it| format!("\\x{it:02x}")).collect();
            format!("$'{}'", escaped.concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn where_memory_is_short_less_is_done_at_once() {
        let mib = |count| Some(Bytes::mib(count));
        for (left, requests) in
            [(mib(48), 3), (mib(1), 1), (mib(1 << 20), 65_536), (None, u32::MAX)]
        {
            assert_eq!(at_once(Bytes::mib(8), left), requests, "{left:?}");
        }
    }

    #[test]
    fn words_are_quoted_as_a_shell_reads_them() {
        for (word, text) in [
            (&b"/a/b-c.dbf"[..], "/a/b-c.dbf"),
            (b"", "''"),
            (b"two words", "'two words'"),
            (b"it's", "'it'\\''s'"),
            ("größe".as_bytes(), "'größe'"),
            (b"a\n\xff", "$'\\x61\\x0a\\xff'"),
        ] {
            assert_eq!(quoted(OsStr::from_bytes(word)), text);
        }
    }
}
