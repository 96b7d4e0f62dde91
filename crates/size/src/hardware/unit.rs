//! Units of hardware and their limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HardwareError;
use super::disk::{BLOCK_BYTES, Disk};

/// Limits of one unit, in decimal units. A limit that is not stated is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    pub name: String,
    #[serde(default)]
    pub about: String,
    /// Source of its figures.
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub dated: String,
    /// Whether it can be had today, so that a report lists it beside any unit that is asked for.
    #[serde(default)]
    pub current: bool,
    /// The smaller unit that it is made of; `count` is their number.
    pub of: Option<String>,
    pub count: Option<u64>,
    /// I/Os per second, reads and writes together.
    pub iops: Option<f64>,
    pub read_iops: Option<f64>,
    pub write_iops: Option<f64>,
    /// Whether reads and writes share the device: it does `read_iops`, or `write_iops`, or a mix of
    /// parts of each.
    pub shared: Option<bool>,
    pub mbps: Option<f64>,
    pub read_mbps: Option<f64>,
    pub write_mbps: Option<f64>,
    /// Throughput of the link between host and storage.
    pub link_mbps: Option<f64>,
    pub redo_mbps: Option<f64>,
    pub commits_per_s: Option<f64>,
    pub gb: Option<f64>,
    pub cores: Option<f64>,
    pub vcpus: Option<f64>,
    pub sockets: Option<f64>,
    pub memory_gb: Option<f64>,
    pub sessions: Option<f64>,
    pub usd: Option<f64>,
    pub usd_per_month: Option<f64>,
    /// Price per GB, as an alternative to `usd`.
    pub usd_per_gb: Option<f64>,
    /// Years in which the price of a GB halves.
    pub halves_years: Option<f64>,
    /// Mean time between failures according to the data sheet, in hours.
    pub mtbf_h: Option<f64>,
    /// Processor time of its driver on the host per I/O, in microseconds.
    pub host_us_per_io: Option<f64>,
    /// The mechanics of a disk: revolutions per minute, mean seek over the whole stroke, seek to
    /// the next track, transfer rate of the medium. Without `iops`, the IOPS are derived from
    /// these.
    pub rpm: Option<f64>,
    pub seek_ms: Option<f64>,
    pub seek_track_ms: Option<f64>,
    pub media_mbps: Option<f64>,
    /// The used share of the stroke, above 0 to 1: seeks are shorter, and `gb` is less.
    pub stroke: Option<f64>,
    /// The class of flash device in crate `flash` that it behaves like: mlc, slc, tlc, qlc.
    pub flash: Option<String>,
    /// Endurance by the data sheet: bytes that may be written in its life, in TB.
    pub endurance_tb: Option<f64>,
}

/// Keys whose values are texts, even if they look like numbers.
const WORDS: [&str; 5] = ["name", "about", "source", "dated", "flash"];

impl Unit {
    /// Parses `180iops,600gb` or `rpm=15000,usd=350`: keys of a catalogue, given inline. `None` if
    /// `text` has neither form and may be the name of a unit.
    pub fn stated(text: &str) -> Option<Result<Self, HardwareError>> {
        let mut keys = toml::Table::new();
        for part in text.split(',') {
            let (key, value) = if let Some(pair) = part.split_once('=') {
                pair
            } else {
                let at = part.find(|c: char| c.is_ascii_alphabetic())?;
                let (number, key) = part.split_at(at);
                number.trim().parse::<f64>().ok()?;
                (key, number)
            };
            let (key, value) = (key.trim(), value.trim());
            let key = key.to_ascii_lowercase();
            let value = if WORDS.contains(&key.as_str()) { value.into() } else { value_of(value) };
            keys.insert(key, value);
        }
        keys.entry("name").or_insert_with(|| "disk".into());
        let wrong = |why: String, hint| HardwareError::Unit { unit: text.to_owned(), why, hint };
        let hint = "keys of the catalogue, for example 180iops,600gb or rpm=15000,usd=350";
        let unit = keys.try_into::<Self>().map_err(|error| {
            wrong(error.message().lines().next().unwrap_or_default().to_owned(), hint)
        });
        Some(unit.and_then(|unit| {
            if unit.of.is_some() || unit.count.is_some() {
                return Err(wrong(
                    "it is made of another one".to_owned(),
                    "state it in a catalogue",
                ));
            }
            unit.check().map_err(|(why, hint)| wrong(why, hint))?;
            Ok(unit.derived())
        }))
    }

    /// Checks the unit on its own. Returns the fault, and a hint.
    pub(super) fn check(&self) -> Result<(), (String, &'static str)> {
        let named = |what: &str| format!("unit {:?} {what}", self.name);
        for (key, value) in self.limits() {
            if value.is_some_and(|value| !(value > 0.0 && value.is_finite())) {
                let what = named(&format!("has {key} = {}", value.unwrap_or_default()));
                return Err((what, "above zero; leave out what is not known"));
            }
        }
        if self.of.is_some() != self.count.is_some() {
            return Err((named("has only one of `of` and `count`"), "state both or none"));
        }
        if self.usd.is_some() && self.usd_per_gb.is_some() {
            return Err((named("has both `usd` and `usd_per_gb`"), "state one of them"));
        }
        let known = |name: &str| blockstone_flash::preset::Preset::named(name).is_some();
        if self.flash.as_deref().is_some_and(|name| !known(name)) {
            return Err((named("has an unknown `flash`"), "mlc, slc, tlc or qlc"));
        }
        let mechanics = [self.rpm, self.seek_ms, self.seek_track_ms, self.media_mbps];
        let stated = mechanics.iter().flatten().count();
        if stated != 0 && stated != mechanics.len() {
            let hint = "state rpm, seek_ms, seek_track_ms and media_mbps, or none";
            return Err((named("has a part of the mechanics of a disk"), hint));
        }
        if self.stroke.is_some() && (stated == 0 || self.iops.is_some() || self.stroke > Some(1.0))
        {
            let hint = "at most 1, of a disk with rpm, seek_ms, seek_track_ms, media_mbps, no iops";
            return Err((named("has a `stroke` that changes nothing"), hint));
        }
        Ok(())
    }

    /// Adds the limits that follow from its own keys.
    pub(super) fn derived(mut self) -> Self {
        self.usd = self.usd.or_else(|| Some(self.usd_per_gb? * self.gb?));
        if let Some(disk) = self.mechanics() {
            let stroke = self.stroke.unwrap_or(1.0);
            self.iops = self.iops.or_else(|| disk.iops(BLOCK_BYTES, stroke).ok());
            self.gb = self.gb.map(|gb| gb * stroke);
        }
        self
    }

    /// Returns the mechanics of a disk; `None` if they are not stated.
    pub fn mechanics(&self) -> Option<Disk> {
        Some(Disk {
            rpm: self.rpm?,
            seek_s: self.seek_ms? / 1e3,
            seek_track_s: self.seek_track_ms? / 1e3,
            mbps: self.media_mbps?,
        })
    }

    /// Returns its limits by their names in the file.
    pub fn limits(&self) -> [(&'static str, Option<f64>); 28] {
        [
            ("iops", self.iops),
            ("read_iops", self.read_iops),
            ("write_iops", self.write_iops),
            ("mbps", self.mbps),
            ("read_mbps", self.read_mbps),
            ("write_mbps", self.write_mbps),
            ("link_mbps", self.link_mbps),
            ("redo_mbps", self.redo_mbps),
            ("commits_per_s", self.commits_per_s),
            ("gb", self.gb),
            ("cores", self.cores),
            ("vcpus", self.vcpus),
            ("sockets", self.sockets),
            ("memory_gb", self.memory_gb),
            ("sessions", self.sessions),
            ("usd", self.usd),
            ("usd_per_month", self.usd_per_month),
            ("usd_per_gb", self.usd_per_gb),
            ("halves_years", self.halves_years),
            ("mtbf_h", self.mtbf_h),
            ("host_us_per_io", self.host_us_per_io),
            ("rpm", self.rpm),
            ("seek_ms", self.seek_ms),
            ("seek_track_ms", self.seek_track_ms),
            ("media_mbps", self.media_mbps),
            ("stroke", self.stroke),
            ("endurance_tb", self.endurance_tb),
            ("count", self.count.map(|count| count as f64)),
        ]
    }

    /// Takes limits that it does not state from the unit that it is made of.
    pub(super) fn made_of(mut self, inner: &Self) -> Self {
        let count = self.count.unwrap_or(1) as f64;
        let fill = |own: &mut Option<f64>, inner: Option<f64>| {
            *own = own.or_else(|| inner.map(|limit| limit * count));
        };
        fill(&mut self.iops, inner.iops);
        fill(&mut self.read_iops, inner.read_iops);
        fill(&mut self.write_iops, inner.write_iops);
        fill(&mut self.mbps, inner.mbps);
        fill(&mut self.read_mbps, inner.read_mbps);
        fill(&mut self.write_mbps, inner.write_mbps);
        fill(&mut self.link_mbps, inner.link_mbps);
        fill(&mut self.redo_mbps, inner.redo_mbps);
        fill(&mut self.commits_per_s, inner.commits_per_s);
        fill(&mut self.gb, inner.gb);
        fill(&mut self.cores, inner.cores);
        fill(&mut self.vcpus, inner.vcpus);
        fill(&mut self.sockets, inner.sockets);
        fill(&mut self.memory_gb, inner.memory_gb);
        fill(&mut self.sessions, inner.sessions);
        self.usd = self.usd.or_else(|| Some(self.usd_per_gb? * self.gb?));
        fill(&mut self.usd, inner.usd);
        fill(&mut self.usd_per_month, inner.usd_per_month);
        fill(&mut self.endurance_tb, inner.endurance_tb);
        self.halves_years = self.halves_years.or(inner.halves_years);
        self.host_us_per_io = self.host_us_per_io.or(inner.host_us_per_io);
        self.shared = self.shared.or(inner.shared);
        self.flash = self.flash.or_else(|| inner.flash.clone());
        self
    }
}

/// Parses a number, a percentage as a share, a boolean, or a text.
fn value_of(text: &str) -> toml::Value {
    let share = text.strip_suffix('%').and_then(|it| it.trim_end().parse::<f64>().ok());
    match (share, text.parse::<f64>(), text.parse::<bool>()) {
        (Some(percent), ..) => (percent / 100.0).into(),
        (_, Ok(number), _) => number.into(),
        (_, _, Ok(flag)) => flag.into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::hint::Hint as _;

    use super::*;

    #[test]
    fn a_unit_in_words_has_the_keys_of_a_catalogue() {
        let unit = |text: &str| Unit::stated(text).unwrap().unwrap();
        let disk = unit("180iops, 600gb");
        assert_eq!((disk.iops, disk.gb, disk.mbps), (Some(180.0), Some(600.0), None));
        let flash = unit("read_iops=2800,write_iops=27,shared=true,gb=32,usd_per_gb=8,dated=2007");
        assert_eq!(
            (flash.usd, flash.shared, flash.dated.as_str()),
            (Some(256.0), Some(true), "2007")
        );
        let mechanics = "rpm=15000,seek_ms=3.5,seek_track_ms=0.2,media_mbps=160,gb=600";
        assert!((179.0..181.0).contains(&unit(mechanics).iops.unwrap()));
        let short = unit(&format!("{mechanics},stroke=25%"));
        assert!(short.iops.unwrap() > 230.0 && short.gb == Some(150.0), "{short:?}");
        assert!(Unit::stated("disk-15k").is_none() && Unit::stated("180").is_none());
    }

    #[test]
    fn a_unit_that_cannot_be_is_refused() {
        for (text, why) in [
            ("-1iops", "iops = -1"),
            ("1furlongs", "unknown field `furlongs`"),
            ("iops=many", "invalid type"),
            ("rpm=15000", "part of the mechanics"),
            ("iops=100,stroke=0.5", "changes nothing"),
            ("gb=1,usd=2,usd_per_gb=2", "both"),
            ("of=disk-15k,iops=1", "made of another"),
            ("flash=core,iops=1", "unknown `flash`"),
            ("=", "unknown field"),
        ] {
            let error = Unit::stated(text).unwrap().unwrap_err().told();
            assert!(error.contains(why) && error.contains("\nhint: "), "{text}: {error}");
        }
    }
}
