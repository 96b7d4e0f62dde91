//! The report of a subset.

use blockstone_base::rule::judge;
use blockstone_base::table::Rows as _;
use blockstone_base::units::{Bytes, format_ns, thousands, three_digits};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Headline, Report, Section, Tone, percent};
use blockstone_servers::subset::manifest::KeyEntry;

use super::rows::{AddingRow, KeyAloneRow, KeyRow, ReasonRow, StepRow, Summary, TableRow};
use super::rules::{self, SubsetFindings, SubsetKey};
use super::{Ran, adding, earlier};

const SCREEN_ROWS: usize = 40;

pub const TABLES: &[Tables] = &[&[
    ("tables", TableRow::COLUMNS),
    ("why", ReasonRow::COLUMNS),
    ("keys", KeyRow::COLUMNS),
    ("keys_alone", KeyAloneRow::COLUMNS),
    ("null", AddingRow::COLUMNS),
    ("steps", StepRow::COLUMNS),
]];

impl Ran {
    pub(super) fn seconds(&self) -> f64 {
        self.steps.iter().map(|(_, seconds)| seconds).sum()
    }

    pub(super) fn rows(&self) -> u64 {
        self.manifest.rows()
    }

    pub(super) fn bytes(&self) -> Option<u64> {
        if !self.dry {
            return Some(self.manifest.files.iter().map(|file| file.bytes).sum());
        }
        if let Some(expected) = self.expected {
            return Some(expected.bytes);
        }
        self.manifest.tables.iter().map(|table| table.bytes).sum()
    }

    /// Returns the orphans of the key at this position of the manifest.
    pub(super) fn orphans(&self, at: usize) -> Option<u64> {
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
        version: 2,
        headline: Headline {
            subject: format!("{}{}", ran.manifest.source, loaded.or(dir).unwrap_or_default()),
            text: headline(ran),
            tone: if ran.naive.is_some() { Tone::Warning } else { Tone::Plain },
            ..Headline::default()
        },
        identity: vec![ran.manifest.product.clone()],
        warnings: adding::warning(ran).into_iter().chain(ran.masks.warning()).collect(),
        sections: sections(ran),
        notes: notes(ran),
        scalars: Some(Summary::table("subset", "Subset", [Summary::of(ran)])),
        earlier: Some(earlier::keys),
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
    notes.extend(ran.masks.note());
    notes.extend(ran.loaded.iter().flat_map(|loaded| loaded.notes.iter().cloned()));
    notes
}

fn sections(ran: &Ran) -> Vec<Section> {
    let manifest = &ran.manifest;
    let tables = manifest.tables.iter().map(TableRow::of);
    let tables = TableRow::table("tables", "Rows taken", tables).on_screen(SCREEN_ROWS);
    let reasons = manifest.tables.iter().flat_map(ReasonRow::of);
    let reasons = ReasonRow::table("why", "Why rows were taken", reasons).on_screen(SCREEN_ROWS);
    let keys = || manifest.keys.iter().enumerate();
    let mut keys = if ran.naive.is_some() {
        let keys = keys().filter_map(|(at, key)| KeyAloneRow::of(ran, at, key));
        KeyAloneRow::table("keys_alone", "Foreign keys", keys)
    } else {
        let keys = keys().map(|(at, key)| KeyRow::of(ran, at, key));
        KeyRow::table("keys", "Foreign keys", keys)
    };
    keys = keys.on_screen(SCREEN_ROWS);
    if ran.loaded.is_some() {
        keys.notes.push("Orphans were counted in the destination, before its commit.".to_owned());
    }
    let steps = ran.steps.iter();
    let steps = steps.map(|&(step, s)| StepRow { step, time_ns: (s * 1e9).round() });
    let steps = StepRow::table("steps", "Time", steps);
    let adding = ran.adding.iter().filter_map(|adding| AddingRow::of(ran, adding));
    let adding = AddingRow::table("null", "Keys that add rows, and --null", adding);
    let adding = (!ran.adding.is_empty()).then(|| adding.on_screen(SCREEN_ROWS));
    let sections = [
        Some(Section::of("tables", tables)),
        Some(Section::of("why", reasons)),
        adding.map(|adding| Section::of("null", adding)),
        Some(Section::of("keys", keys)),
        Some(Section::of("steps", steps)),
    ];
    sections.into_iter().flatten().collect()
}
