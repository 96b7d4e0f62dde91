//! Databases and other stores: the load by which storage is measured for each, and the limits
//! that were published for it, with their sources. The data are in `data/stores.toml`. This crate
//! measures nothing and decides no limit.
//!
//! ```
//! let etcd = blockstone_stores::find("etcd").unwrap();
//! assert_eq!(etcd.limits[0].expect, "store[wal].p99<10ms");
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::sync::LazyLock;

use blockstone_base::load::{Access, Op, SyncMethod};
use blockstone_base::named;
use blockstone_base::units::Bytes;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::{Deserialize, Deserializer};

const DATA: &str = include_str!("../data/stores.toml");

/// A database or another program that keeps data on storage.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    pub name: String,
    /// Other names by which people ask for it.
    pub aliases: Vec<String>,
    pub title: String,
    /// The load, in words.
    pub about: String,
    /// Remark on its limits.
    pub note: String,
    pub load: Load,
    pub limits: Vec<Limit>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Options of a run of the miniature instance.
    Instance(Vec<String>),
    /// Loads that are measured one by one, in addition to a calibration; often none.
    Streams(Vec<Stream>),
}

/// One load of a store.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    pub name: String,
    #[serde(deserialize_with = "op")]
    pub op: Op,
    #[serde(deserialize_with = "size")]
    pub block: Bytes,
    /// How commits are made durable. They go through the page cache, everything else past it.
    #[serde(default, deserialize_with = "sync")]
    pub sync: Option<SyncMethod>,
    /// Whether the flush alone is timed, without the write before it.
    #[serde(default)]
    pub flush_alone: bool,
    /// Space that the file has before it is written to; without it, the file grows.
    #[serde(default, deserialize_with = "some_size")]
    pub reserved: Option<Bytes>,
    /// Operations in flight.
    #[serde(default = "one")]
    pub depth: u32,
    /// Whether reads and writes are at random places; otherwise, they are in order.
    #[serde(default)]
    pub random: bool,
}

/// A limit on a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// As `--expect` takes it.
    pub expect: String,
    /// Whether the limit is stated for each processor of the machine.
    pub each_cpu: bool,
    pub kind: Kind,
    /// The one who states it, and for what.
    pub whose: String,
    pub source: Source,
}

named! {
    /// Standing of a limit.
    Kind {
        Published = "published",
        RuleOfThumb = "rule of thumb",
    }
}

/// A page from which a limit was taken.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    id: String,
    pub page: String,
    /// The date that it bears.
    pub dated: String,
    /// Day on which it was read.
    pub read: String,
}

/// All stores, in the order of the data.
pub static ALL: LazyLock<Vec<Store>> =
    LazyLock::new(|| parse(DATA).expect("the data of the stores are checked by a test"));

pub fn find(name: &str) -> Option<&'static Store> {
    ALL.iter().find(|store| store.name == name || store.aliases.iter().any(|alias| alias == name))
}

/// Parses the name of a store on a command line.
pub fn named() -> impl TypedValueParser<Value = String> {
    let known = ALL.iter().map(|store| {
        PossibleValue::new(store.name.as_str()).aliases(store.aliases.iter().map(String::as_str))
    });
    PossibleValuesParser::new(known)
}

impl Stream {
    pub fn access(&self) -> Access {
        match self.op {
            Op::Commit => Access::Append,
            _ if self.random => Access::Random,
            _ => Access::Sequential,
        }
    }
}

impl Limit {
    /// Returns its standing, who states it, and the date of the page.
    pub fn origin(&self) -> String {
        format!("{}: {}, {}", self.kind.name(), self.whose, self.source.dated)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    source: Vec<Source>,
    store: Vec<StoreEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreEntry {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    title: String,
    about: String,
    note: String,
    run: Option<Vec<String>>,
    #[serde(default, rename = "stream")]
    streams: Vec<Stream>,
    #[serde(default, rename = "limit")]
    limits: Vec<LimitEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitEntry {
    expect: String,
    #[serde(default)]
    each_cpu: bool,
    kind: String,
    whose: String,
    source: String,
}

fn parse(text: &str) -> Result<Vec<Store>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let limit = |entry: LimitEntry| {
        let source = file.source.iter().find(|source| source.id == entry.source);
        let kind = Kind::ALL.iter().find(|kind| kind.name() == entry.kind);
        let (source, kind) =
            source.zip(kind).ok_or_else(|| format!("{}: source or kind", entry.expect))?;
        let LimitEntry { expect, each_cpu, whose, .. } = entry;
        Ok(Limit { expect, each_cpu, kind: *kind, whose, source: source.clone() })
    };
    let store = |entry: StoreEntry| {
        let StoreEntry { name, aliases, title, about, note, run, streams, limits } = entry;
        let load = match run {
            Some(options) if streams.is_empty() => Load::Instance(options),
            Some(_) => return Err(format!("{name}: both `run` and streams")),
            None => Load::Streams(streams),
        };
        let limits = limits.into_iter().map(limit).collect::<Result<_, String>>()?;
        Ok(Store { name, aliases, title, about, note, load, limits })
    };
    file.store.into_iter().map(store).collect()
}

const fn one() -> u32 {
    1
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn some_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    size(deserializer).map(Some)
}

fn op<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Op, D::Error> {
    by_name(deserializer, Op::ALL, Op::name)
}

fn sync<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SyncMethod>, D::Error> {
    by_name(deserializer, SyncMethod::ALL, SyncMethod::name).map(Some)
}

fn by_name<'de, D: Deserializer<'de>, T: Copy>(
    deserializer: D,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    let found = all.iter().find(|known| name(**known) == text);
    found.copied().ok_or_else(|| serde::de::Error::custom(format!("unknown: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_are_sound_and_every_limit_has_a_page_with_dates() {
        let stores = parse(DATA).unwrap();
        let mut names: Vec<&str> = stores.iter().map(|store| store.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), stores.len(), "each name once");
        for store in &stores {
            assert!(!store.note.is_empty() && !store.about.is_empty(), "{}", store.name);
            // `--for` also takes durations, which begin with a digit.
            assert!(store.name.starts_with(|first: char| first.is_ascii_lowercase()));
            for limit in &store.limits {
                assert_eq!(limit.source.read.len(), "2026-11-29".len(), "{limit:?}");
                assert!(!limit.source.dated.is_empty() && !limit.whose.is_empty(), "{limit:?}");
            }
            if let Load::Streams(streams) = &store.load {
                let commits = |stream: &Stream| stream.op == Op::Commit;
                assert!(streams.iter().all(|it| it.sync.is_some() == commits(it)), "{streams:?}");
            }
        }
    }

    #[test]
    fn a_limit_without_its_source_is_refused() {
        let error = parse(&DATA.replacen("id = \"apigee\"", "id = \"other\"", 1)).unwrap_err();
        assert!(error.contains("hardware_read_iops>=1000"), "{error}");
    }
}
