//! The report of a subset.

use blockstone_base::row;
use blockstone_base::rule::judge;
use blockstone_base::table::{
    Heading, Row, Table, bytes, count, happened, ratio, share, text, time,
};
use blockstone_base::units::{Bytes, format_ns, thousands, three_digits};
use blockstone_base::verdict::Verdict;
use blockstone_report::render::json;
use blockstone_report::{Headline, Report, Section, Tone, percent};
use blockstone_target::subset::manifest::{KeyEntry, TableEntry};
use schemars::JsonSchema;
use serde::Serialize;

use super::Ran;
use super::rules::{self, SubsetFindings, SubsetKey};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where the document has its tables for people.
pub const VIEWS: &str = "views";
const SCREEN_ROWS: usize = 40;

const TABLES_OF_SUBSET: &[Heading] = &[
    text("table", "table", "With its schema."),
    count("source_rows", "source rows", "Rows of the source."),
    count("rows", "rows", "Rows of the subset."),
    share("share", "share", "Of the rows of the source."),
    bytes("bytes", "bytes", "As stored in the source, by the share of rows; without indexes."),
    ratio("growth", "growth", "Rows divided by rows that were chosen."),
];

const WHY: &[Heading] = &[
    text("table", "table", "With its schema."),
    text("reason", "why", "Chosen, or referenced by a row of the subset with this key."),
    count("rows", "rows", "Rows with this reason; each row has one."),
];

const KEYS: &[Heading] = &[
    text("key", "key", "The foreign key."),
    count("rows", "rows", "Rows of the subset that reference another."),
    count("orphans", "orphans", "Those of them whose row is not in the subset."),
    text("table", "table", "Whose rows reference."),
    text("references", "references", "Table and columns that are referenced."),
];

const KEYS_ALONE: &[Heading] = &[
    text("key", "key", "The foreign key."),
    count("rows", "rows", "Rows of the sample that reference another."),
    count("orphans", "orphans", "Those of them whose row is not in the sample."),
    text(
        "share",
        "share",
        "Of orphans, ± its standard error: rows of one parent are orphans together.",
    ),
    share("expected_share", "expected", "Share of orphans that is expected."),
    text("table", "table", "Whose rows reference."),
    text("references", "references", "Table and columns that are referenced."),
];

const STEPS: &[Heading] =
    &[text("step", "step", "In the order of time."), time("time_ns", "time", "Of this step.")];

pub const TABLES: &[(&str, &[Heading])] = &[
    ("tables", TABLES_OF_SUBSET),
    ("why", WHY),
    ("keys", KEYS),
    ("keys_alone", KEYS_ALONE),
    ("steps", STEPS),
];

/// Keys of the JSON document.
#[derive(Serialize, JsonSchema)]
pub struct SubsetDocument<'a> {
    tool_version: &'static str,
    /// Address without password.
    source: &'a str,
    product: &'a str,
    destination: Option<&'a str>,
    /// Where the subset lies; null where it was not kept.
    directory: Option<String>,
    percent: f64,
    seed: u64,
    /// `taken`, `planned` or `naive`.
    mode: &'static str,
    tables: Vec<TableKeys>,
    keys: Vec<KeyKeys<'a>>,
    /// All steps together.
    seconds: f64,
    /// Of the files with rows: with --dry-run what they are expected to take. Where that is not
    /// known, as stored in the source by the share of rows.
    bytes: Option<u64>,
    /// With --dry-run: how long writing the files is expected to take after the keys are read.
    expected_seconds: Option<f64>,
    rows: u64,
    steps: Vec<StepKeys>,
    verdicts: &'a [Verdict],
}

#[derive(Serialize, JsonSchema)]
struct TableKeys {
    table: String,
    source_rows: u64,
    rows: u64,
    /// Rows by reason.
    why: Vec<WhyKeys>,
    bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct WhyKeys {
    /// The key by which a row of the subset references these; null for rows that were chosen.
    key: Option<String>,
    rows: u64,
}

#[derive(Serialize, JsonSchema)]
struct KeyKeys<'a> {
    name: &'a str,
    table: String,
    references: String,
    /// Counted in the destination; before a load 0 where every referenced row was found in the
    /// source, and null otherwise.
    orphans: Option<u64>,
    /// Rows that reference another.
    rows: u64,
    /// With --naive: the share of orphans that is expected, and its standard error.
    expected_orphan_share: Option<f64>,
    orphan_share_standard_error: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct StepKeys {
    step: &'static str,
    seconds: f64,
}

fn name(table: &TableEntry) -> String {
    format!("{}.{}", table.schema, table.name)
}

impl Ran {
    fn seconds(&self) -> f64 {
        self.steps.iter().map(|(_, seconds)| seconds).sum()
    }

    fn rows(&self) -> u64 {
        self.manifest.rows()
    }

    fn bytes(&self) -> Option<u64> {
        if !self.dry {
            return Some(self.manifest.files.iter().map(|file| file.bytes).sum());
        }
        if let Some(expected) = self.expected {
            return Some(expected.bytes);
        }
        self.manifest.tables.iter().map(|table| table.bytes).sum()
    }

    /// Of the key at this position of the manifest.
    fn orphans(&self, at: usize) -> Option<u64> {
        if let Some(naive) = &self.naive {
            return naive.keys.get(at).map(|key| key.orphans);
        }
        match &self.loaded {
            Some(loaded) => loaded.keys.get(at).map(|key| key.orphans),
            None => self.manifest.keys.get(at).filter(|key| key.closed).map(|_| 0),
        }
    }
}

pub fn report(ran: &Ran) -> Report {
    let key = |(at, key): (usize, &KeyEntry)| SubsetKey {
        name: key.name.clone(),
        orphans: ran.orphans(at),
    };
    let verdicts = judge(
        rules::ALL,
        &SubsetFindings {
            keys: ran.manifest.keys.iter().enumerate().map(key).collect(),
            naive: ran.naive.is_some(),
        },
    );
    let loaded = ran.loaded.as_ref().map(|loaded| format!(" → {}", loaded.destination));
    let dir = ran.dir.as_ref().filter(|_| loaded.is_none());
    let dir = dir.map(|dir| format!(" → {}", dir.display()));
    Report {
        verb: "subset".into(),
        version: 1,
        tool_version: VERSION.to_owned(),
        headline: Headline {
            subject: format!("{}{}", ran.manifest.source, loaded.or(dir).unwrap_or_default()),
            text: headline(ran),
            tone: if ran.naive.is_some() { Tone::Warning } else { Tone::Plain },
            ..Headline::default()
        },
        identity: vec![ran.manifest.product.clone()],
        sections: sections(ran),
        notes: notes(ran),
        document: json::keys(document(ran, &verdicts)),
        tables_key: Some(VIEWS),
        verdicts,
        ..Report::default()
    }
}

fn headline(ran: &Ran) -> String {
    let source: u64 = ran.manifest.tables.iter().map(|table| table.source_rows).sum();
    let share = percent(ran.rows() as f64 / source.max(1) as f64);
    let rows =
        format!("{} of {} rows ({share})", thousands(ran.rows() as i64), thousands(source as i64));
    let seconds = format_ns(ran.seconds() * 1e9);
    let keys: Vec<Option<u64>> = (0..ran.manifest.keys.len()).map(|at| ran.orphans(at)).collect();
    let orphans: Option<u64> = keys.iter().copied().sum();
    let orphans = match (orphans, &ran.loaded) {
        (None, _) => "not all referenced rows are in the source".to_owned(),
        (Some(orphans), Some(_)) => {
            format!("{} orphans counted over {} keys", thousands(orphans as i64), keys.len())
        }
        (Some(orphans), None) => {
            format!("{} orphans over {} keys", thousands(orphans as i64), keys.len())
        }
    };
    let bytes = ran.bytes().map(|bytes| Bytes(bytes).to_string());
    let parts = [Some(rows), bytes, Some(orphans), Some(seconds)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn notes(ran: &Ran) -> Vec<String> {
    let mut notes = Vec::new();
    if ran.naive.is_some() {
        notes.push(format!(
            "Each table sampled by itself, {} % of its rows: nothing was written.",
            three_digits(ran.manifest.percent)
        ));
    } else if ran.dry {
        let expected = ran.expected.map(|expected| {
            let (bytes, time) = (Bytes(expected.bytes), format_ns(expected.seconds * 1e9));
            format!(
                " Reading and writing the rows would take about {time} more and {bytes}, by a few \
                 rows of each table."
            )
        });
        notes.push(format!(
            "Nothing was written. Bytes of tables are those of the source by the share of rows.{}",
            expected.unwrap_or_default()
        ));
    }
    if ran.naive.is_none() {
        notes.extend(ran.manifest.notes.iter().cloned());
    }
    if ran.readers == Some(1) {
        notes.push("Rows were read by one connection.".to_owned());
    }
    notes.extend(ran.masks.notes());
    notes.extend(ran.loaded.iter().flat_map(|loaded| loaded.notes.iter().cloned()));
    notes
}

fn sections(ran: &Ran) -> Vec<Section> {
    let tables = ran.manifest.tables.iter().map(table);
    let tables =
        Table::new("tables", "Rows taken", TABLES_OF_SUBSET).on_screen(SCREEN_ROWS).with(tables);
    let reasons = Table::new("why", "Why rows were taken", WHY)
        .on_screen(SCREEN_ROWS)
        .with(ran.manifest.tables.iter().flat_map(why));
    let keys = ran.manifest.keys.iter().enumerate().map(|(at, key)| key_row(ran, at, key));
    let (name, headings) =
        if ran.naive.is_some() { ("keys_alone", KEYS_ALONE) } else { ("keys", KEYS) };
    let mut keys = Table::new(name, "Foreign keys", headings).on_screen(SCREEN_ROWS).with(keys);
    if ran.loaded.is_some() {
        keys.notes.push("Orphans were counted in the destination, before its commit.".to_owned());
    }
    let steps = ran.steps.iter().map(|&(step, seconds)| row![step, seconds * 1e9]);
    let steps = Table::new("steps", "Time", STEPS).with(steps);
    vec![
        Section::of("tables", tables),
        Section::of("why", reasons),
        Section::of("keys", keys),
        Section::of("steps", steps),
    ]
}

fn table(table: &TableEntry) -> Row {
    let part = (table.source_rows > 0).then(|| table.rows as f64 / table.source_rows as f64);
    let growth = (table.seeds > 0).then(|| table.rows as f64 / table.seeds as f64);
    row![name(table), table.source_rows, table.rows, happened(part), table.bytes, happened(growth)]
}

fn why(table: &TableEntry) -> Vec<Row> {
    let chosen = (table.seeds > 0).then(|| row![name(table), "chosen", table.seeds]);
    let needed = table.needed.iter().map(|(key, rows)| row![name(table), key.clone(), *rows]);
    chosen.into_iter().chain(needed).collect()
}

fn key_row(ran: &Ran, at: usize, key: &KeyEntry) -> Row {
    let tables = &ran.manifest.tables;
    let orphans = ran.orphans(at);
    let naive = ran.naive.as_ref().and_then(|naive| naive.keys.get(at));
    let share = orphans.filter(|_| key.rows > 0).map(|it| it as f64 / key.rows as f64);
    let child = name(&tables[key.table]);
    let parent = format!("{} ({})", name(&tables[key.references]), key.referenced.join(", "));
    let Some(naive) = naive else {
        return row![key.name.clone(), key.rows, orphans, child, parent];
    };
    row![
        key.name.clone(),
        key.rows,
        orphans,
        share.map_or_else(String::new, |share| points(share, naive.standard_error)),
        naive.expected_share,
        child,
        parent
    ]
}

/// As in `90.02 ± 0.30 %`.
fn points(share: f64, standard_error: Option<f64>) -> String {
    let error = standard_error.map_or_else(String::new, |it| format!(" ± {:.2}", it * 100.0));
    format!("{:.2}{error} %", share * 100.0)
}

fn document<'a>(ran: &'a Ran, verdicts: &'a [Verdict]) -> SubsetDocument<'a> {
    let tables = &ran.manifest.tables;
    let why = |table: &TableEntry| {
        let chosen = WhyKeys { key: None, rows: table.seeds };
        let needed = table.needed.iter();
        let needed = needed.map(|(key, rows)| WhyKeys { key: Some(key.clone()), rows: *rows });
        std::iter::once(chosen).chain(needed).collect()
    };
    let key = |(at, key): (usize, &'a KeyEntry)| {
        let naive = ran.naive.as_ref().and_then(|naive| naive.keys.get(at));
        KeyKeys {
            name: &key.name,
            table: name(&tables[key.table]),
            references: name(&tables[key.references]),
            orphans: ran.orphans(at),
            rows: key.rows,
            expected_orphan_share: naive.map(|naive| naive.expected_share),
            orphan_share_standard_error: naive.and_then(|naive| naive.standard_error),
        }
    };
    SubsetDocument {
        tool_version: VERSION,
        source: &ran.manifest.source,
        product: &ran.manifest.product,
        destination: ran.loaded.as_ref().map(|loaded| loaded.destination.as_str()),
        directory: ran.dir.as_ref().map(|dir| dir.display().to_string()),
        percent: ran.manifest.percent,
        seed: ran.manifest.seed,
        mode: match (&ran.naive, ran.dry) {
            (Some(_), _) => "naive",
            (None, true) => "planned",
            (None, false) => "taken",
        },
        tables: tables
            .iter()
            .map(|table| TableKeys {
                table: name(table),
                source_rows: table.source_rows,
                rows: table.rows,
                why: why(table),
                bytes: table.bytes,
            })
            .collect(),
        keys: ran.manifest.keys.iter().enumerate().map(key).collect(),
        seconds: ran.seconds(),
        bytes: ran.bytes(),
        expected_seconds: ran.expected.map(|expected| expected.seconds),
        rows: ran.rows(),
        steps: ran.steps.iter().map(|&(step, seconds)| StepKeys { step, seconds }).collect(),
        verdicts,
    }
}
