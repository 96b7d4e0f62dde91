//! `blockstone reduce`: how far an array would shrink files, and what prevents it.

mod args;
mod earlier;
mod report;
mod rows;
mod rules;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use blockstone_base::rule::{judge, listed};
use blockstone_base::table::Rows as _;
use blockstone_base::units::{Bytes, counted, thousands};
use blockstone_reduce::findings::Findings;
use blockstone_reduce::generate::{self, Expected, Kind, Shape};
use blockstone_reduce::model::{BUILT_IN, Model};
use blockstone_reduce::plan::{COMPRESSED_CONTENTS, Compress, Plan};
use blockstone_report::render::json::schema::Document;
use blockstone_scan::{Look, Outcome, ScanError, Settings, Surveying};
use blockstone_sys::{output, path};
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::input;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::verb::{Context, JsonVersion, Verb};
use args::{CompressWhat, ReduceArgs};
use rows::Summary;
use rules::ScanCase;

pub const VERB: Verb = Verb {
    name: "reduce",
    about: "Measure how far an array would deduplicate and compress files",
    options: ReduceArgs::augment_args,
    common: &["model", "rate", "save", "resume", "merge"],
    run: |options, context| run(&ReduceArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(rules::ALL).collect(),
    writes: true,
    documents: &[Document::of_tables(
        ("reduce", 2),
        "A scan of files",
        Summary::COLUMNS,
        &[report::TABLES],
    )
    .with_names(&[report::SHOWN])],
    ..Verb::PLAIN
};

fn run(args: &ReduceArgs, context: &Context) -> Result<Exit> {
    let printer = context.printer;
    if let Some(kind) = &args.generate {
        return generate(kind, args, printer);
    }
    let model = model(&args.model)?;
    let mut bar = Progress::start(printer)?;
    let outcome = outcome(args, &model, &mut bar);
    bar.finish();
    let outcome = match outcome {
        Err(error) if matches!(error.downcast_ref(), Some(ScanError::Ended)) => {
            printer.note("interrupted while the files were looked at: nothing was counted");
            return Ok(bar.exit());
        }
        outcome => outcome?,
    };
    let plan = outcome.counter.plan();
    let counted = plan.grids()[plan.primary()].block_bytes;
    if counted != model.block_bytes {
        let (counted, wanted) = (Bytes(counted.into()), Bytes(model.block_bytes.into()));
        bail!(Failure::new(
            format!(
                "use model {}: the scan has details for blocks of {counted}, not of {wanted}",
                model.name
            ),
            "use the model of the scan, or scan again"
        ));
    }
    if let Some(codec) = model.codec
        && !plan.codecs.contains(&codec)
    {
        bail!(Failure::new(
            format!("use model {}: the scan did not use the compressor {codec}", model.name),
            format!("scan with --codec {codec}, or use a model with a compressor of the scan")
        ));
    }
    let mut findings = Findings::new(&outcome.counter, &outcome.notes(), &model);
    let notes = outcome.notes();
    let case = ScanCase { findings: &findings, files: &notes, chunks: plan.chunks };
    findings.verdicts = judge(rules::ALL, &case);
    let scanned = &outcome.scanned;
    let mut report = report::report(&findings, scanned, bar.signal());
    if matches!(context.global.json, Some(JsonVersion::Of(1))) {
        earlier::restore(&mut report, &findings, scanned);
    }
    let exit = finish(&report, context)?;
    if let Some(error) = outcome.unsaved {
        return Err(error.into());
    }
    if let (Exit::Interrupted, Some(dir)) = (exit, args.save.as_ref().or(args.resume.as_ref())) {
        printer
            .note(&format!("saved; continue with: blockstone reduce --resume {}", dir.display()));
    }
    Ok(exit)
}

fn counting(bar: &mut Progress) -> impl FnMut(blockstone_scan::Progress<'_>) -> bool {
    |progress| {
        let (done, all) = (progress.done_bytes, progress.all_bytes);
        let text = format!("{} of {}  {}", Bytes(done), Bytes(all), progress.file);
        bar.step(done as f64 / all.max(1) as f64, &text)
    }
}

fn looking(bar: &mut Progress) -> impl FnMut(Surveying) -> bool {
    |Surveying { found, looked_at }| {
        let text = format!("{looked_at} of {found} files looked at");
        bar.step(looked_at as f64 / found.max(1) as f64, &text)
    }
}

fn outcome(args: &ReduceArgs, model: &Model, bar: &mut Progress) -> Result<Outcome> {
    if args.merge {
        return Ok(blockstone_scan::merge(&args.paths)?);
    }
    let mut settings = settings(args)?;
    if let Some(dir) = &args.resume {
        settings.save = Some(dir.clone());
        return Ok(blockstone_scan::resume(dir, &settings, &mut counting(bar))?);
    }
    let plan = plan(args, model, settings.threads)?;
    if let Some(dir) = &args.save {
        refuse_filled(dir)?;
    }
    let look = if args.save.is_some() { Look::All } else { Look::Large };
    let mut survey = blockstone_scan::survey(&args.paths, look, settings.rate, &mut looking(bar))?;
    if args.free_space {
        let mut watch = |done| bar.step(done, "free space");
        survey.free = blockstone_scan::free_space(&args.paths, settings.rate, &mut watch)?;
    }
    if survey.files.is_empty() {
        let hint = match survey.skipped.first() {
            Some(skipped) => format!("{}: {}", skipped.path, skipped.why),
            None => "the directories hold no files".to_owned(),
        };
        let paths: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
        return Err(ScanError::Empty { what: paths.join(", "), hint }.into());
    }
    if let Some(dir) = &args.save {
        output::directory(dir).map_err(|error| {
            let hint = "name a directory that can be created";
            anyhow::anyhow!(Failure::new(format!("save in {}: {error}", dir.display()), hint))
        })?;
    }
    Ok(blockstone_scan::scan(&survey, plan, &settings, &mut counting(bar))?)
}

fn plan(args: &ReduceArgs, model: &Model, threads: usize) -> Result<Plan> {
    let offsets: Vec<u64> = args.offset.iter().map(|offset| offset.get()).collect();
    let mut plan = Plan::new(&args.block_size, &offsets, Bytes(model.block_bytes.into()))?;
    // The codec of the model comes first: only it sees the blocks of every grid.
    plan.codecs = model.codec.into_iter().collect();
    for &codec in &args.codec {
        if !plan.codecs.contains(&codec) {
            plan.codecs.push(codec);
        }
    }
    plan.compress = match args.compress {
        CompressWhat::Sample => Compress::Sample(COMPRESSED_CONTENTS),
        CompressWhat::Every => Compress::Every,
        CompressWhat::Not => Compress::Not,
    };
    plan.deduplicates = model.deduplicates;
    plan.chunks = !args.no_shifts;
    plan.memory_bytes = blockstone_scan::table_bytes(args.memory, threads, &plan)?;
    Ok(plan)
}

fn settings(args: &ReduceArgs) -> Result<Settings> {
    let mut settings = Settings {
        direct: !args.buffered,
        rate: args.rate.map(|rate| rate.0),
        save: args.save.clone(),
        save_every: Duration::from_nanos(args.save_every.0),
        masks: !args.no_headers,
        ..Settings::default()
    };
    if let Some(threads) = args.threads {
        settings.threads = threads.into();
    }
    if settings.rate == Some(0) {
        bail!(Failure::new(
            "read at --rate 0: it must be greater than 0",
            "for example --rate 200M"
        ));
    }
    Ok(settings)
}

/// Refuses a directory that is not empty: a scan stored there would be replaced.
fn refuse_filled(dir: &Path) -> Result<()> {
    if path::names(dir).is_ok_and(|names| !names.is_empty()) {
        bail!(Failure::new(
            format!("save in {}: the directory is not empty", dir.display()),
            "name another directory, or continue its scan with --resume"
        ));
    }
    Ok(())
}

/// A larger file is not a model.
const MODEL_BYTES: Bytes = Bytes::mib(1);

fn model(name: &str) -> Result<Model> {
    if BUILT_IN.iter().any(|(known, _)| *known == name) {
        return Ok(Model::built_in(name)?);
    }
    match input::text(Path::new(name), MODEL_BYTES) {
        Ok(text) => Ok(Model::parse(name, &text)?),
        Err(_) if !name.contains(['/', '.']) => Ok(Model::built_in(name)?),
        Err(error) => {
            let hint = "name a TOML file, or a built-in one";
            bail!(input::failure(&format!("read model {name}"), &error, hint))
        }
    }
}

fn generate(name: &str, args: &ReduceArgs, printer: Printer) -> Result<Exit> {
    let kind = generate::find(name).context("find the kind of data set")?;
    let shape = shape(args, kind)?;
    if args.dry_run {
        let Some(expected) = generate::expected(kind, &shape) else {
            bail!(Failure::new(
                format!("expect ratios of {name}: they have no formula"),
                "create the files and scan them"
            ));
        };
        printer.answer(&format!("{}\n{}\n", counts(name, &shape, &expected), ratios(&expected)))?;
        return Ok(Exit::Done);
    }
    let [dir] = args.paths.as_slice() else {
        bail!(Failure::new(
            format!("generate {name}: one directory is needed"),
            "name one that does not exist yet"
        ));
    };
    let mut bar = Progress::start(printer)?;
    let mut watch = |done: f64| bar.step(done, name);
    let made = blockstone_scan::generate(dir, kind, &shape, &mut watch)?;
    bar.finish();
    if bar.exit() == Exit::Done {
        let all = Bytes(made);
        printer.note(&format!(
            "{name}: {}, {all}, in {}",
            counted(args.files.into(), "file"),
            dir.display()
        ));
        if let Some(expected) = generate::expected(kind, &shape) {
            printer.note(&ratios(&expected));
        }
    }
    Ok(bar.exit())
}

/// States the numbers behind the expected ratios.
fn counts(name: &str, shape: &Shape, expected: &Expected) -> String {
    let has_heads = expected.distinct.plain == shape.distinct_by_head() && shape.head_blocks > 0;
    let own = thousands(shape.head_blocks as i64);
    let heads = if has_heads { format!(", {own} of each file its own") } else { String::new() };
    let block = Bytes(shape.block_bytes as u64);
    let (files, size) = (counted(shape.files.into(), "file"), Bytes(shape.file_bytes()));
    let [all, distinct] =
        [expected.blocks, expected.distinct.plain].map(|blocks| thousands(blocks as i64));
    format!("{name}: {files} of {size}\n{all} blocks of {block}, {distinct} different{heads}")
}

/// States the ratios that a scan has to find.
fn ratios(expected: &Expected) -> String {
    let (ratio, masked) = (expected.ratio(), expected.ratio_masked());
    let dedup = format!(
        "expected ratio of 8K blocks: {ratio:.2}:1, with header fields masked {masked:.2}:1"
    );
    let Some(compression) = expected.compression_in_quarters() else { return dedup };
    let bytes = expected.blocks as f64 * BLOCK_BYTES as f64;
    let both = ratio * compression;
    let [all, stored] = [bytes, bytes / both].map(|bytes| Bytes(bytes as u64));
    format!(
        "{dedup}\nwith --model xtremio: dedup {ratio:.2}:1 × compression {compression:.2}:1 = \
         reduction {both:.1}:1;\n{all} in → {stored} stored"
    )
}

const BLOCK_BYTES: u64 = 8192;

/// Files of 8K blocks. Kinds that have a head get one of the length requested, otherwise the same
/// share as in the files of 32 GiB that they resemble.
fn shape(args: &ReduceArgs, kind: &Kind) -> Result<Shape> {
    let blocks_per_file = args.size.0 / BLOCK_BYTES;
    if blocks_per_file == 0 || !args.size.0.is_multiple_of(BLOCK_BYTES) {
        bail!(Failure::new(
            format!("generate files of {}: the size must be a multiple of 8K", args.size),
            "for example --size 64M"
        ));
    }
    let in_proportion = || {
        let head = blocks_per_file as f64 * HEAD_BLOCKS_OF_32_GIB / BLOCKS_OF_32_GIB;
        (head.round() as u64).max(1)
    };
    if let Some(head) = args.head {
        if !generate::has_head(kind) {
            bail!(Failure::new(
                format!(
                    "use --head: files of {} have no blocks of their own at the beginning",
                    kind.name
                ),
                "oracle-like and oracle-loaded have"
            ));
        }
        if !(1..=blocks_per_file).contains(&head) {
            bail!(Failure::new(
                format!(
                    "use --head {head}: a file of {} has {blocks_per_file} blocks of 8K",
                    args.size
                ),
                "at least one, and at most those; --size makes files larger"
            ));
        }
    }
    Ok(Shape {
        files: args.files,
        blocks_per_file,
        block_bytes: BLOCK_BYTES as usize,
        head_blocks: args.head.unwrap_or_else(in_proportion),
        seed: args.seed,
    })
}

/// As many as give the ratio that an array reported for 121 of them; see
/// [`generate::Expected`].
const HEAD_BLOCKS_OF_32_GIB: f64 = 16_750.0;
const BLOCKS_OF_32_GIB: f64 = 4_194_304.0;
