//! Figures and tables of a subset. All media are made from these declarations.

use blockstone_base::rows;
use blockstone_base::table::{
    Measure, Missing, Value, bytes, count, happened, ratio, share, text, time, total,
};
use blockstone_servers::subset::manifest::{KeyEntry, TableEntry};
use blockstone_subset::null::Adding;

use super::Ran;

const SECOND_NS: f64 = 1e9;

rows! {
    /// Single figures of a subset.
    pub(super) struct Summary {
        /// Address of the source, without password.
        source: String = text("source"),
        /// Product and version of the source.
        product: String = text("product"),
        /// Address of the database into which the subset was loaded.
        destination: Value = text("destination"),
        /// Directory of the subset, if it was kept.
        directory: Value = text("directory"),
        /// Percentage of the rows that were to be chosen.
        percent: f64 = count("percent"),
        /// Seed of the choice.
        seed: u64 = count("seed"),
        /// `taken`, `planned` or `naive`.
        mode: &'static str = text("mode"),
        /// All steps together.
        time_ns: f64 = time("time"),
        /// Bytes of the files with rows; with --dry-run, what they are expected to take, or as
        /// stored in the source by the share of rows.
        bytes: Option<u64> = total("bytes", Measure::Bytes),
        /// With --dry-run: how long writing the files is expected to take after the keys are read.
        expected_time_ns: Value = time("expected"),
        /// Rows of the subset.
        rows: u64 = total("rows", Measure::Count),
    }
}

rows! {
    /// Tables of the subset.
    pub(super) struct TableRow {
        /// With its schema.
        table: String = text("table").answer(),
        /// Rows of the source.
        source_rows: u64 = count("source rows"),
        /// Rows of the subset.
        rows: u64 = count("rows").answer(),
        /// Share of the rows of the source.
        share: Value = share("share").answer(),
        /// Bytes as stored in the source, by the share of rows; without indexes.
        bytes: Option<u64> = bytes("bytes"),
        /// Rows divided by rows that were chosen.
        growth: Value = ratio("growth"),
    }
}

rows! {
    /// Why rows are in the subset; each row has one reason.
    pub(super) struct ReasonRow {
        /// With its schema.
        table: String = text("table").answer(),
        /// `chosen`, or the key by which a row of the subset references these.
        reason: String = text("why").answer(),
        /// Rows with this reason.
        rows: u64 = count("rows").answer(),
    }
}

rows! {
    /// Foreign keys of the subset.
    pub(super) struct KeyRow {
        /// The foreign key.
        key: String = text("key").answer(),
        /// Rows of the subset that reference another.
        rows: u64 = count("rows"),
        /// Rows whose referenced row is not in the subset: counted in the destination; before a
        /// load 0 where every referenced row was found in the source.
        orphans: Option<u64> = count("orphans").answer(),
        /// Whose rows reference.
        table: String = text("table"),
        /// Table and columns that are referenced.
        references: String = text("references"),
    }
}

rows! {
    /// Foreign keys of tables that were each sampled by itself.
    pub(super) struct KeyAloneRow {
        /// The foreign key.
        key: String = text("key").answer(),
        /// Rows of the sample that reference another.
        rows: u64 = count("rows"),
        /// Rows whose referenced row is not in the sample.
        orphans: Option<u64> = count("orphans").answer(),
        /// Share of orphans, ± its standard error: rows of one parent are orphans together.
        share: String = text("share").answer(),
        /// Share of orphans that is expected.
        expected_share: f64 = share("expected"),
        /// Standard error of the share of orphans.
        standard_error_share: Value = share("standard error"),
        /// Whose rows reference.
        table: String = text("table"),
        /// Table and columns that are referenced.
        references: String = text("references"),
    }
}

rows! {
    /// Keys that add rows, if most rows of the source are taken because of keys.
    pub(super) struct AddingRow {
        /// The foreign key.
        key: String = text("key").answer(),
        /// Rows that are taken because of it.
        rows: u64 = count("rows").answer(),
        /// Rows that would not be taken if it were set to NULL with --null.
        saved_rows: Option<u64> = count("saved").answer(),
        /// `exact`, `at most`, or why there is no figure.
        figure: String = text("figure").answer(),
        /// Whose rows reference.
        table: String = text("table"),
    }
}

rows! {
    /// Steps in the order of time.
    pub(super) struct StepRow {
        /// Its name.
        step: &'static str = text("step"),
        /// How long it took.
        time_ns: f64 = time("time"),
    }
}

impl Summary {
    pub fn of(ran: &Ran) -> Self {
        let destination = ran.loaded.as_ref().map(|loaded| loaded.destination.as_str());
        Self {
            source: ran.manifest.source.clone(),
            product: ran.manifest.product.clone(),
            destination: happened(destination),
            directory: happened(ran.dir.as_ref().map(|dir| dir.display().to_string())),
            percent: ran.manifest.percent,
            seed: ran.manifest.seed,
            mode: match (&ran.naive, ran.dry) {
                (Some(_), _) => "naive",
                (None, true) => "planned",
                (None, false) => "taken",
            },
            time_ns: (ran.seconds() * SECOND_NS).round(),
            bytes: ran.bytes(),
            expected_time_ns: match ran.expected {
                Some(expected) => (expected.seconds * SECOND_NS).round().into(),
                None if ran.dry => Missing::Unknown.into(),
                None => Value::default(),
            },
            rows: ran.rows(),
        }
    }
}

impl TableRow {
    pub fn of(table: &TableEntry) -> Self {
        let part = (table.source_rows > 0).then(|| table.rows as f64 / table.source_rows as f64);
        let growth = (table.seeds > 0).then(|| table.rows as f64 / table.seeds as f64);
        Self {
            table: name(table),
            source_rows: table.source_rows,
            rows: table.rows,
            share: happened(part),
            bytes: table.bytes,
            growth: happened(growth),
        }
    }
}

/// The reason of rows that no key needs.
pub(super) const CHOSEN: &str = "chosen";

impl ReasonRow {
    pub fn of(table: &TableEntry) -> impl Iterator<Item = Self> {
        let row = |reason: &str, rows| Self { table: name(table), reason: reason.into(), rows };
        let chosen = (table.seeds > 0).then(|| row(CHOSEN, table.seeds));
        chosen.into_iter().chain(table.needed.iter().map(move |(key, rows)| row(key, *rows)))
    }
}

impl KeyRow {
    pub fn of(ran: &Ran, at: usize, key: &KeyEntry) -> Self {
        let (table, references) = ends(ran, key);
        let (rows, orphans) = (key.rows, ran.orphans(at));
        Self { key: key.name.clone(), rows, orphans, table, references }
    }
}

impl KeyAloneRow {
    /// None if the sample says nothing of this key.
    pub fn of(ran: &Ran, at: usize, key: &KeyEntry) -> Option<Self> {
        let naive = ran.naive.as_ref()?.keys.get(at)?;
        let (table, references) = ends(ran, key);
        let orphans = ran.orphans(at);
        let share = orphans.filter(|_| key.rows > 0).map(|it| it as f64 / key.rows as f64);
        Some(Self {
            key: key.name.clone(),
            rows: key.rows,
            orphans,
            share: share.map_or_else(String::new, |share| points(share, naive.standard_error)),
            expected_share: naive.expected_share,
            standard_error_share: happened(naive.standard_error),
            table,
            references,
        })
    }
}

impl AddingRow {
    pub fn of(ran: &Ran, adding: &Adding) -> Option<Self> {
        let key = ran.manifest.keys.get(adding.key)?;
        Some(Self {
            key: key.name.clone(),
            rows: adding.rows,
            saved_rows: super::adding::rows(&adding.saved),
            figure: super::adding::figure(&adding.saved),
            table: name(ran.manifest.tables.get(key.table)?),
        })
    }
}

/// The table whose rows reference, and what they reference.
fn ends(ran: &Ran, key: &KeyEntry) -> (String, String) {
    let tables = &ran.manifest.tables;
    let parent = format!("{} ({})", name(&tables[key.references]), key.referenced.join(", "));
    (name(&tables[key.table]), parent)
}

fn name(table: &TableEntry) -> String {
    format!("{}.{}", table.schema, table.name)
}

/// Formats a share in percent: `90.02 ± 0.30 %`.
fn points(share: f64, standard_error: Option<f64>) -> String {
    let error = standard_error.map_or_else(String::new, |it| format!(" ± {:.2}", it * 100.0));
    format!("{:.2}{error} %", share * 100.0)
}
