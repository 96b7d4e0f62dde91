//! `blockstone subset`: a sample of a database whose foreign keys hold.

mod adding;
mod args;
mod earlier;
mod mask;
mod oracle;
mod report;
mod rows;
mod rules;
mod unfinished;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use blockstone_base::rule::listed;
use blockstone_base::table::Rows as _;
use blockstone_base::units::{Bytes, thousands};
use blockstone_report::render::json::schema::Document;
use blockstone_servers::subset::engine::Engine;
use blockstone_servers::subset::manifest::{self, KeyEntry, Manifest, TableEntry};
use blockstone_servers::subset::mariadb::MariadbSource;
use blockstone_servers::subset::postgres::PostgresSource;
use blockstone_servers::subset::source::{Expected, Loaded, SubsetSource, named};
use blockstone_servers::subset::{self as server};
use blockstone_subset::mask::Mask;
use blockstone_subset::null::Adding;
use blockstone_subset::{Catalogue, CatalogueError, Chosen, Plan, Sampled, Settings, Transform};
use blockstone_sys::held::HeldDir;
use blockstone_sys::path;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::input;
use crate::progress::Progress;
use crate::verb::{Context, Verb};
use args::{LoadArgs, SubsetArgs, SubsetVerb};
use mask::Masks;
use unfinished::Unfinished;

pub const VERB: Verb = Verb {
    name: "subset",
    about: "Sample a database, with all rows that its foreign keys need",
    options: SubsetArgs::augment_args,
    common: &["from", "into", "percent", "whole", "condition", "masks", "dry_run", "query", "rows"],
    run: |options, context| run(&SubsetArgs::from_arg_matches(options)?, context),
    reports: true,
    rules: || listed(rules::ALL).collect(),
    writes: true,
    documents: &[Document::of_tables(
        ("subset", 2),
        "A subset of a database",
        rows::Summary::COLUMNS,
        report::TABLES,
    )],
    ..Verb::PLAIN
};

/// Result of the verb.
#[derive(Default)]
struct Ran {
    manifest: Manifest,
    /// The sample if each table was sampled independently.
    naive: Option<Sampled>,
    loaded: Option<Loaded>,
    /// Directory of the subset; `None` if it was not kept.
    dir: Option<PathBuf>,
    dry: bool,
    /// Expected cost of writing the rows, if none were written.
    expected: Option<Expected>,
    /// Number of readers of the rows; `None` if no rows were read.
    readers: Option<usize>,
    steps: Vec<(&'static str, f64)>,
    masks: Masks,
    /// Keys that add rows, if they take most rows of the source.
    adding: Vec<Adding>,
}

fn run(args: &SubsetArgs, context: &Context) -> Result<Exit> {
    if let Some(SubsetVerb::Oracle(args)) = &args.verb {
        return oracle::run(args, context);
    }
    let mut bar = Progress::start(context.printer)?;
    let ran = match (&args.verb, &args.from) {
        (Some(SubsetVerb::Load(args)), _) => load(args, &mut bar),
        (None, Some(from)) => take(args, from, &mut bar),
        (Some(SubsetVerb::Oracle(_)), _) | (None, None) => {
            bail!(Failure::new("subset: no source is named", "--from postgres://user@host/db"))
        }
    };
    bar.finish();
    match ran {
        Ok(ran) => finish(&report::report(&ran), context),
        Err(_) if bar.signal().is_some() => {
            context.printer.note("interrupted: nothing was written or loaded");
            Ok(Exit::Interrupted)
        }
        Err(error) => Err(error),
    }
}

/// Shows the progress of the current step.
fn tell(bar: &mut Progress) -> impl FnMut(&str, u64, Option<u64>) -> bool {
    move |text, rows, of| {
        let count = |rows: u64| thousands(i64::try_from(rows).unwrap_or(i64::MAX));
        let words = match of {
            _ if rows == 0 => text.to_owned(),
            Some(of) => format!("{text}  {} of {} rows", count(rows), count(of)),
            None => format!("{text}  {} rows", count(rows)),
        };
        bar.part(of.map(|of| rows as f64 / of.max(1) as f64), &words)
    }
}

fn load(args: &LoadArgs, bar: &mut Progress) -> Result<Ran> {
    args.password.read_for([args.into.as_str()])?;
    let dir = HeldDir::hold(&args.dir).map_err(|error| {
        let hint = "name a directory that `blockstone subset --from … DIR` wrote";
        let file = args.dir.join(manifest::FILE);
        anyhow::anyhow!(Failure::new(format!("read {}: {error}", file.display()), hint))
    })?;
    let manifest = Manifest::read(&dir)?;
    let loaded = server::load(&dir, &manifest, &args.into, &mut tell(bar))?;
    let (dir, steps) = (Some(args.dir.clone()), steps_of(&loaded));
    Ok(Ran { manifest, loaded: Some(loaded), dir, steps, ..Ran::default() })
}

fn steps_of(loaded: &Loaded) -> Vec<(&'static str, f64)> {
    loaded.steps.iter().map(|(step, seconds)| (step.words(), *seconds)).collect()
}

fn take(args: &SubsetArgs, from: &str, bar: &mut Progress) -> Result<Ran> {
    if !args.dry_run && !args.naive && args.dir.is_none() && args.into.is_none() {
        bail!(Failure::new(
            "subset: neither a directory nor a destination is named",
            "blockstone subset --from … DIR, or --into postgres://user@host/db, or --dry-run"
        ));
    }
    if let Some(dir) = &args.dir {
        refuse_used(dir)?;
    }
    args.password.read_for([from].into_iter().chain(args.into.as_deref()))?;
    let mut told = tell(bar);
    let engine = Engine::of(from)?;
    let began = Instant::now();
    let (mut ran, place) = match engine {
        Engine::Postgres => {
            let source = PostgresSource::open(from, &mut told)?;
            read(args, engine, source, began)?
        }
        Engine::Mariadb => {
            let source = MariadbSource::open(from, &mut told)?;
            read(args, engine, source, began)?
        }
    };
    let Some(place) = place else { return Ok(ran) };
    if let Some(into) = &args.into {
        let loaded = server::load(place.dir(), &ran.manifest, into, &mut told)?;
        ran.steps.extend(steps_of(&loaded));
        ran.loaded = Some(loaded);
    }
    if let Some(dir) = &args.dir {
        place.finish(dir)?;
    }
    Ok(ran)
}

/// Reads what was requested; rows, if any were read, are in the unfinished directory.
fn read<S: SubsetSource>(
    args: &SubsetArgs,
    engine: Engine,
    mut source: S,
    mut began: Instant,
) -> Result<(Ran, Option<Unfinished>)> {
    let mut lap = move || std::mem::replace(&mut began, Instant::now()).elapsed().as_secs_f64();
    let settings = settings(args, &mut source)?;
    source.prove()?;
    let mut steps = vec![("tables and keys read", lap())];
    let mut manifest = Manifest::new(engine, source.name().to_owned(), source.product());
    (manifest.percent, manifest.seed) = (settings.percent, settings.seed);
    let ran = |manifest, steps| Ran { manifest, steps, dry: true, ..Ran::default() };
    if args.naive {
        let sampled = blockstone_subset::sample(&mut source, &settings)?;
        steps.push(("keys of all rows read", lap()));
        describe(&mut manifest, source.catalogue(), &sampled_plan(&sampled), &source);
        return Ok((Ran { naive: Some(sampled), ..ran(manifest, steps) }, None));
    }
    let mask = args.mask.read(source.catalogue())?;
    let masks = Masks::of(source.catalogue(), mask.as_ref());
    manifest.masks = mask.as_ref().map(|_| Mask::METHOD.to_owned());
    if !args.dry_run {
        source.start_dump()?;
    }
    let plan = blockstone_subset::close(&mut source, &settings)?;
    let seconds = lap();
    steps.push(("keys of all rows read", seconds));
    describe(&mut manifest, source.catalogue(), &plan, &source);
    manifest.notes.extend(nulled(source.catalogue(), &settings));
    let time = args.dry_run.then(|| Duration::from_secs_f64(seconds));
    let adding = adding::find(&mut source, &settings, &plan, time)?;
    if args.dry_run {
        let expected = source.expect(&plan, args.readers.into())?;
        return Ok((Ran { expected, masks, adding, ..ran(manifest, steps) }, None));
    }
    let place = Unfinished::beside(args.dir.as_deref())?;
    source.dump_schema(place.dir())?;
    steps.push(("schema written", lap()));
    manifest.sequences = source.sequences()?;
    let transform = mask.as_ref().map(|mask| mask as &dyn Transform);
    let exported = source.export(&plan, place.dir(), args.readers.into(), transform)?;
    (manifest.files, manifest.large_objects) = (exported.files, exported.large_objects);
    // The snapshot is no longer needed.
    drop(source);
    server::write_script(place.dir(), &manifest)?;
    manifest::write_file(place.dir(), manifest::FILE, &manifest.text()?)?;
    steps.push(("rows written", lap()));
    let (dir, readers) = (args.dir.clone(), Some(exported.readers));
    let ran = Ran { masks, adding, dir, readers, dry: false, ..ran(manifest, steps) };
    Ok((ran, Some(place)))
}

/// A larger file is not a list of keys.
const KEYS_BYTES: Bytes = Bytes::mib(1);

/// Returns the settings, with the tables that the user named resolved.
fn settings(args: &SubsetArgs, source: &mut impl SubsetSource) -> Result<Settings> {
    let choice = &args.choice;
    if let Some(path) = &choice.keys {
        let text = input::text(path, KEYS_BYTES);
        let hint = "name a file of keys in TOML";
        let text = text.map_err(|error| {
            let read = format!("read the keys in {}", path.display());
            anyhow::anyhow!(input::failure(&read, &error, hint))
        })?;
        source.add_keys(&text, &path.display().to_string())?;
    }
    source.catalogue().check()?;
    let mut chosen = vec![Chosen::Share; source.catalogue().tables.len()];
    for name in &choice.whole {
        chosen[source.catalogue().find(name, "subset with --whole")?] = Chosen::All;
    }
    for given in &choice.condition {
        let Some((name, condition)) = given.split_once('=') else {
            bail!(Failure::new(
                format!("subset with --where {given}: it has no `=`"),
                "--where 'TABLE=CONDITION'"
            ));
        };
        let table = source.catalogue().find(name.trim(), "subset with --where")?;
        source.set_condition(table, condition);
        chosen[table] = Chosen::Matching;
    }
    let nulled = null(&choice.null, source)?;
    Ok(Settings {
        percent: choice.percent,
        seed: choice.seed,
        chosen,
        cap: choice.cap,
        stratified: choice.stratify,
        nulled,
        memory: Some(choice.memory.get()),
    })
}

/// Has keys that the user named written as NULL; returns their positions.
fn null(names: &[String], source: &mut impl SubsetSource) -> Result<Vec<usize>> {
    const WHAT: &str = "subset with --null";
    let keys = names.iter().map(|name| source.catalogue().find_key(name, WHAT));
    let mut keys: Vec<usize> = keys.collect::<Result<_, _>>()?;
    keys.sort_unstable();
    keys.dedup();
    for &at in &keys {
        let catalogue = source.catalogue();
        let key = &catalogue.keys[at];
        let columns = catalogue.null_columns(at, &keys);
        let columns = columns.map_err(|why| CatalogueError::NotNull {
            what: WHAT.to_owned(),
            name: key.name.clone(),
            table: catalogue.tables[key.table].name.clone(),
            why,
        })?;
        source.set_null(key.table, &columns);
    }
    Ok(keys)
}

/// Returns a note on the keys that are written as NULL.
fn nulled(catalogue: &Catalogue, settings: &Settings) -> Option<String> {
    let name = |&at: &usize| {
        let key = &catalogue.keys[at];
        format!("{} of {}", key.name, catalogue.tables[key.table].name)
    };
    named("Keys that are NULL in all rows", &settings.nulled.iter().map(name).collect::<Vec<_>>())
}

/// Converts a sample of independent tables to a plan.
fn sampled_plan(sampled: &Sampled) -> Plan {
    let table = |table: &blockstone_subset::NaiveTable| blockstone_subset::TablePlan {
        source_rows: table.source_rows,
        seeds: table.rows,
        ..blockstone_subset::TablePlan::default()
    };
    let key = |key: &blockstone_subset::NaiveKey| blockstone_subset::KeyPlan {
        references: key.references,
        missing: 0,
    };
    Plan {
        tables: sampled.tables.iter().map(table).collect(),
        keys: sampled.keys.iter().map(key).collect(),
    }
}

/// Adds the tables and keys to the manifest, with their figures from the plan.
fn describe(
    manifest: &mut Manifest,
    catalogue: &Catalogue,
    plan: &Plan,
    source: &impl SubsetSource,
) {
    manifest.notes = source.notes();
    for (at, (table, planned)) in catalogue.tables.iter().zip(&plan.tables).enumerate() {
        let rows = planned.rows().max(planned.seeds);
        let share = rows as f64 / planned.source_rows.max(1) as f64;
        let (schema, name, partitioned) = source.names(at);
        let needed = planned.needed.iter();
        manifest.tables.push(TableEntry {
            schema: schema.to_owned(),
            name: name.to_owned(),
            partitioned,
            source_rows: planned.source_rows,
            rows,
            seeds: planned.seeds,
            needed: needed.map(|&(key, rows)| (catalogue.keys[key].name.clone(), rows)).collect(),
            bytes: table.bytes.map(|bytes| (bytes as f64 * share) as u64),
        });
    }
    for (key, planned) in catalogue.keys.iter().zip(&plan.keys) {
        let names = |table: usize, columns: &[usize]| {
            let name = |&at: &usize| catalogue.tables[table].columns[at].name.clone();
            columns.iter().map(name).collect()
        };
        manifest.keys.push(KeyEntry {
            name: key.name.clone(),
            table: key.table,
            columns: names(key.table, &key.columns),
            references: key.references,
            referenced: names(key.references, &key.referenced),
            rows: planned.references,
            closed: planned.missing == 0,
            when: key.when.as_ref().map(|when| {
                (catalogue.tables[key.table].columns[when.column].name.clone(), when.is.clone())
            }),
            valid: planned.missing == 0,
        });
    }
}

/// Refuses a directory that is not empty: a subset is not mixed with other files.
fn refuse_used(dir: &Path) -> Result<()> {
    match path::names(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            bail!(Failure::new(format!("write {}: {error}", dir.display()), "name a new directory"))
        }
        Ok(names) if names.is_empty() => Ok(()),
        Ok(_) => bail!(Failure::new(
            format!("write {}: it is not empty", dir.display()),
            "name a new directory"
        )),
    }
}
