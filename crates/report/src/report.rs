//! Content of a verb's answer, independent of how it looks: one [`Report`], which every renderer
//! takes. A verb makes one and has no renderer of its own.

use std::collections::BTreeMap;

use blockstone_base::stats::Estimate;
use blockstone_base::table::{Table, Text};
use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_record::manifest::{End, Figure};
use serde_json::{Map, Value as Json};

use crate::chart::Chart;
use crate::expectation::Purpose;
use crate::expected::{EXPECTATIONS, Expected};
use crate::picture::{Bars, Cells};
use crate::timeline::Timeline;

/// Makes of the keys of a JSON document those of the version before it.
pub type Earlier = fn(Map<String, Json>) -> Map<String, Json>;

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The verb, also the first part of the JSON schema's name: `run`, `flash-sim`.
    pub verb: Text,
    /// Version of the JSON document, within which keys are only added.
    pub version: u32,
    pub headline: Headline,
    /// Subject, place and time of the measurement, one line each, of parts joined by ` · `.
    pub identity: Vec<String>,
    /// Facts that the reader must know before any number: unfinished, imported, partial.
    pub warnings: Vec<String>,
    pub cards: Vec<Card>,
    /// The chapters, in reading order.
    pub sections: Vec<Section>,
    pub verdicts: Vec<Verdict>,
    /// Reasons for what could not be measured, and other remarks below everything else.
    pub notes: Vec<String>,
    /// End of the measurement, which decides the exit code.
    pub end: End,
    /// Whether less was measured than was asked for, so that the answer may not be relied upon.
    pub partial: bool,
    /// Something that was to be done could not be: a file was not copied.
    pub is_undone: bool,
    /// Whether a condition that was asked for does not hold: `--fail-if`, files that are equal.
    pub is_refuted: bool,
    /// Use for which the storage was measured, with limits of its own.
    pub purpose: Option<Purpose>,
    /// Limits that were expected, and the outcome of each.
    pub expectations: Vec<Expected>,
    /// The figures that a recording keeps in its manifest.
    pub summary: BTreeMap<String, Figure>,
    /// Place where the numbers are kept; empty if they are not.
    pub recording: String,
    /// Whether the page of this report is there too.
    pub has_page: bool,
    /// Version of Blockstone that measured; `None` if it is this one.
    pub tool_version: Option<String>,
    /// Keys of the JSON document besides single figures and tables: host, settings.
    pub document: Map<String, Json>,
    /// Single figures of the JSON document: a table of one row.
    pub scalars: Option<Table>,
    /// Names of tables that show people what other keys of the document say; one that ends in `*`
    /// stands for all that begin with it.
    pub shown_only: &'static [&'static str],
    /// Makes the document of the version before this one, for scripts that need it.
    pub earlier: Option<Earlier>,
    /// The keys of version 1 of a newer document, if nothing makes them of the newer ones.
    pub first: Map<String, Json>,
    /// The key in the JSON document under which the tables stand.
    pub tables_key: Option<&'static str>,
    /// When the recording began. If known, time axes on the page show the time of day.
    pub began: Option<Began>,
    /// Tables over time, for a page on which a window can be chosen.
    pub timeline: Option<Timeline>,
}

impl Report {
    /// Returns the version of Blockstone that measured.
    pub fn tool_version(&self) -> &str {
        self.tool_version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"))
    }
}

/// Returns whether a declared name, which may end in `*`, stands for the name of a table.
pub(crate) fn is_meant(known: &str, name: &str) -> bool {
    known.strip_suffix('*').map_or(name == known, |start| name.starts_with(start))
}

/// The start of a recording, and the time zone in which to show it.
#[derive(Clone, Copy, Debug)]
pub struct Began {
    /// Nanoseconds since 1970 UTC.
    pub unix_ns: i128,
    /// Seconds that local time is ahead of UTC.
    pub utc_offset_s: i32,
}

impl Began {
    /// Returns local time in nanoseconds since 1970.
    pub fn local_ns(self) -> f64 {
        (self.unix_ns + i128::from(self.utc_offset_s) * 1_000_000_000) as f64
    }

    /// Returns the name of the time zone: `UTC`, `UTC+01:00`.
    pub fn zone(self) -> String {
        let minutes = self.utc_offset_s.unsigned_abs() / 60;
        match self.utc_offset_s {
            0 => "UTC".to_owned(),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Headline {
    /// Subject of the report: a path, a host, a model.
    pub subject: String,
    /// The one to four figures that answer the question; condemned ones are struck through.
    pub figures: Vec<Card>,
    /// The answer in words if figures do not say it, or the reason why there is none.
    pub text: String,
    /// Whether the text answers the question, and stands before the figures.
    pub leads: bool,
    pub tone: Tone,
}

/// Severity of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    /// An answer with a reservation.
    Warning,
    Bad,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// Key in JSON documents, by which rules name what they concern.
    pub name: Text,
    /// Title for people: `Reads of the database`.
    pub title: Text,
    /// Figures of one group share a line on the terminal and a row on the page.
    pub group: Text,
    /// One word before the number on the terminal: `p99`, `mean`; may be empty.
    pub prefix: Text,
    pub estimate: Estimate,
    /// `ns`, `IOPS`, `MB/s`, `of DB time`.
    pub unit: Text,
    /// Words in place of the unit in a headline: `reads/s`; empty for the unit itself.
    pub words: Text,
    /// The load it was read from, its samples, or another remark.
    pub source: String,
    /// Ids of rules that condemn it.
    pub condemned_by: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Unique anchor on the page, in kebab case.
    pub id: Text,
    pub heading: Text,
    /// Advice on reading it; may be empty.
    pub about: Text,
    /// Media that show it.
    pub detail: Detail,
    pub blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Every medium, above the figures.
    Top,
    #[default]
    Screen,
    /// The page, and the terminal if everything is asked for.
    Page,
    /// The terminal: what the page shows with charts.
    Terminal,
    /// JSON and CSV: the full form of what other tables abbreviate for readers.
    Documents,
}

impl Detail {
    /// Returns whether the page has it.
    pub(crate) fn is_on_page(self) -> bool {
        !matches!(self, Self::Terminal | Self::Documents)
    }

    /// Returns whether the terminal has it; `all` if everything is asked for.
    pub(crate) fn is_on_terminal(self, all: bool) -> bool {
        match self {
            Self::Top | Self::Screen | Self::Terminal => true,
            Self::Page => all,
            Self::Documents => false,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Block {
    Table(Table),
    Chart(Chart),
    Bars(Bars),
    Cells(Cells),
    /// A paragraph that may be wrapped.
    Text(String),
}

impl Report {
    /// Returns whether no verdict condemns a number.
    pub fn trustworthy(&self) -> bool {
        !self.verdicts.iter().any(Verdict::condemns)
    }

    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.sections.iter().flat_map(Section::tables)
    }

    /// Returns the tables that people see somewhere; version 1 of a document had only these.
    pub(crate) fn tables_for_people(&self) -> impl Iterator<Item = &Table> {
        let shown = self.sections.iter().filter(|it| it.detail != Detail::Documents);
        shown.flat_map(Section::tables)
    }

    /// Returns the tables of the JSON document: all but those that repeat its other keys.
    pub(crate) fn tables_of_document(&self) -> impl Iterator<Item = &Table> {
        let scalars = self.scalars.as_ref().map(|table| &table.name);
        self.tables().filter(move |table| {
            let is_shown_only = |known: &&str| is_meant(known, &table.name);
            let is_repeated = scalars == Some(&table.name) || table.name == EXPECTATIONS;
            !is_repeated && !self.shown_only.iter().any(is_shown_only)
        })
    }

    /// Returns the title of a figure, or its name if no card has it.
    pub fn title<'a>(&'a self, name: &'a str) -> &'a str {
        let card = self.cards.iter().find(|card| card.name == *name);
        card.map(|card| &*card.title).filter(|title| !title.is_empty()).unwrap_or(name)
    }

    /// Returns the rules that warn about a figure without condemning it.
    pub fn warned_by(&self, figure: &str) -> impl Iterator<Item = &str> {
        let warns = |v: &&Verdict| v.outcome == Outcome::Fail && v.weight == Weight::Warns;
        let concerned = move |v: &&Verdict| v.concerns.iter().any(|name| name == figure);
        self.verdicts.iter().filter(warns).filter(concerned).map(|v| v.rule.as_str())
    }
}

impl Card {
    /// Creates a figure that is in no group yet and that nothing condemns.
    pub fn new(
        name: impl Into<Text>,
        title: impl Into<Text>,
        estimate: Estimate,
        unit: impl Into<Text>,
    ) -> Self {
        let (name, title, unit) = (name.into(), title.into(), unit.into());
        let [group, prefix, words] = [(); 3].map(|()| Text::default());
        let (source, condemned_by) = (String::new(), Vec::new());
        Self { name, title, group, prefix, estimate, unit, words, source, condemned_by }
    }

    /// Creates a figure without an interval: a model gives one number.
    pub fn exact(
        name: impl Into<Text>,
        title: impl Into<Text>,
        value: f64,
        unit: impl Into<Text>,
    ) -> Self {
        let estimate = Estimate { value, low: value, high: value, samples: 1, duration_ns: 0 };
        Self::new(name, title, estimate, unit)
    }

    #[must_use]
    pub fn source(self, source: impl Into<String>) -> Self {
        Self { source: source.into(), ..self }
    }
}

impl Section {
    pub fn new(id: impl Into<Text>, heading: impl Into<Text>) -> Self {
        Self { id: id.into(), heading: heading.into(), ..Self::default() }
    }

    /// Creates a section of the page.
    pub fn page(id: impl Into<Text>, heading: impl Into<Text>) -> Self {
        Self::new(id, heading).detail(Detail::Page)
    }

    /// Creates a section that only documents have.
    pub fn documents(tables: impl IntoIterator<Item = Table>) -> Self {
        Self::default().detail(Detail::Documents).with(tables)
    }

    /// Creates a section of one table, under its heading.
    pub fn of(id: impl Into<Text>, table: Table) -> Self {
        Self::new(id, table.title.clone()).with([table])
    }

    #[must_use]
    pub fn about(self, about: impl Into<Text>) -> Self {
        Self { about: about.into(), ..self }
    }

    /// Returns the same section, shown as `detail` says.
    #[must_use]
    pub fn detail(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        })
    }

    /// Returns the same section with these blocks; tables without rows are left out.
    #[must_use]
    pub fn with<B: Into<Block>>(mut self, blocks: impl IntoIterator<Item = B>) -> Self {
        let blocks = blocks.into_iter().map(Into::into);
        let says_something = |block: &Block| match block {
            Block::Table(table) => !table.rows.is_empty(),
            Block::Chart(chart) => !chart.layers.is_empty(),
            Block::Bars(bars) => !bars.bars.is_empty(),
            Block::Cells(cells) => !cells.rows.is_empty(),
            Block::Text(text) => !text.is_empty(),
        };
        self.blocks.extend(blocks.filter(says_something));
        self
    }
}

impl Block {
    /// Returns whether it shows the legend of these cells.
    pub(crate) fn explains(&self, cells: &Cells) -> bool {
        matches!(self, Self::Cells(it) if it.kinds == cells.kinds)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}

impl From<Bars> for Block {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}

impl From<Cells> for Block {
    fn from(cells: Cells) -> Self {
        Self::Cells(cells)
    }
}

impl From<String> for Block {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
