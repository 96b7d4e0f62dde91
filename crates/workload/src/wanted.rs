//! Requests of a user, on the command line or in a settings file: any subset of the parameters.
//! Layers are placed on top of each other, and the remaining gaps are filled with defaults.

use std::str::FromStr;

use blockstone_base::units::{Bytes, Nanos, positive};
use blockstone_servers::{RedoStress, one_of};
use clap::Args;

use crate::parameters::{Every, Hotspot, ParameterError, Parameters, Population, Scale, Think};

/// Declares a struct of optional requests.
macro_rules! wanted {
    ($(#[$about:meta])* pub struct $wanted:ident {
        $($(#[$field:meta])* pub $name:ident: $type:ty,)*
    }) => {
        $(#[$about])*
        pub struct $wanted {
            $($(#[$field])* pub $name: Option<$type>,)*
        }

        impl $wanted {
            /// Returns these requests, with those of `below` where one is missing.
            fn or(self, below: Self) -> Self {
                Self { $($name: self.$name.or(below.$name),)* }
            }

            /// Returns the names of the requests that are set.
            pub fn names(&self) -> impl Iterator<Item = &'static str> {
                let all = [$((stringify!($name), self.$name.is_some()),)*];
                all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name)
            }
        }
    };
}

wanted! {
/// Any part of the parameters; what is none was not asked for. These are the options of `run` too,
/// so the text on each is its help.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
#[command(next_help_heading = "Workload")]
pub struct Wanted {
    /// Number of schemas; each has its own table [default: 4; 1 with --profile bulk-write]
    #[arg(long, value_name = "N")]
    pub schemas: u32,
    /// Sessions per schema [default: 4; 1 with --profile bulk-write]
    #[arg(long, value_name = "N", conflicts_with = "sessions")]
    pub threads: u32,
    /// Sessions over all schemas; --threads is those of each
    #[arg(long, value_name = "N")]
    pub sessions: u32,
    /// Sessions that only select, each in its own schema
    #[arg(long, value_name = "N", conflicts_with_all = MIX)]
    pub readers: u32,
    /// Sessions that only update, each in its own schema
    #[arg(long, value_name = "N", conflicts_with_all = MIX)]
    pub writers: u32,
    /// Size of each schema [default: 256M, or less]
    ///
    /// A size or a number of blocks. The default is less with many schemas or little free space.
    #[arg(long = "scale", value_name = "SIZE")]
    pub rows_per_schema: Scale,
    /// Rows that a select visits; each row is in a block of its own [default: 64]
    #[arg(long, value_name = "ROWS")]
    pub work_unit: u32,
    /// Rows that an update changes [default: as --work-unit]
    #[arg(long, value_name = "ROWS")]
    pub update_work_unit: u32,
    /// Percentage of operations that update [default: 10]
    #[arg(long, value_name = "PCT")]
    pub update_pct: u32,
    /// Percentage of selects that scan a second table [default: 0]
    #[arg(long, value_name = "PCT")]
    pub scan_pct: u32,
    /// Size of that table, as a size or a number of blocks [default: 1M]; with --profile scan, of
    /// the table (of a real database, of all tables together) [default: 1G, less with little free
    /// space]
    #[arg(long = "scan-size", value_name = "SIZE")]
    pub scan_rows: Scale,
    /// Columns that an update changes: lite two, heavy all nineteen [default: lite]
    #[arg(long, value_parser = one_of(RedoStress::ALL, RedoStress::name))]
    pub redo_stress: RedoStress,
    /// Fraction of each row that is incompressible, 0 to 1 [default: 1]
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub obfuscate: f64,
    /// A hot range: 8M@16M/3 sends 1 of 3 operations to the 8 MiB at offset 16 MiB
    #[arg(long, value_name = "SIZE@OFFSET/N")]
    pub hotspot: HotspotWanted,
    /// Send 1 of N operations to the first schema
    #[arg(long = "hot-schema", value_name = "N")]
    pub hot_schema_every: u32,
    /// Pause after 1 of N operations, for example 100ms..500ms/10
    #[arg(long, value_name = "MIN..MAX/N", conflicts_with = "rate_per_s")]
    pub think: Think,
    /// Start this many operations per second over all sessions, even if the storage cannot keep up
    #[arg(long = "rate", value_name = "OPS", value_parser = positive)]
    pub rate_per_s: f64,
    /// Length of the measurement window [default: 30s]
    ///
    /// A warm-up of at most half this length comes before each window. With --noise there are two
    /// windows, 15s by default; with --profile scan there are many, 4s by default.
    #[arg(long = "for", aliases = ["run-time", "duration", "time"], value_name = "TIME")]
    #[arg(conflicts_with = "loops")]
    pub run_time_ns: Nanos,
    /// Stop after this many operations per session, or tables with --profile bulk-write, instead of
    /// --for
    #[arg(long, value_name = "N")]
    pub loops: u64,
    /// Seed of all random choices and of the data [default: random, stored in the manifest]
    #[arg(long)]
    pub seed: u64,
}
}

/// Parameters that --readers and --writers determine.
const MIX: [&str; 4] = ["schemas", "threads", "sessions", "update_pct"];

/// A hot range in its notation: `8M@16M/3` is 8 MiB from 16 MiB on, for one in three operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotspotWanted {
    pub size: Scale,
    pub offset: Scale,
    /// Number of operations of which one visits it.
    pub every: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Number of schemas, and sessions on each.
    pub population: (u32, u32),
    pub scale: Scale,
}

impl Wanted {
    /// Returns these requests, with those of `below` where one is missing. Anything in `below` that
    /// contradicts a request is dropped: a population and mix if sessions only read or only write,
    /// loops if there is a run time, pauses if there is a rate.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        let below = Self {
            loops: below.loops.filter(|_| self.run_time_ns.is_none()),
            run_time_ns: below.run_time_ns.filter(|_| self.loops.is_none()),
            think: below.think.filter(|_| self.rate_per_s.is_none()),
            rate_per_s: below.rate_per_s.filter(|_| self.think.is_none()),
            ..below
        };
        let below = if self.readers.is_some() || self.writers.is_some() {
            Self { schemas: None, threads: None, sessions: None, update_pct: None, ..below }
        } else if self.sessions.is_some() || self.threads.is_some() {
            Self { threads: None, sessions: None, ..below }
        } else {
            below
        };
        self.or(below)
    }

    /// Returns the sessions. Fails when they cannot be spread evenly.
    pub fn population(&self, default: (u32, u32)) -> Result<Population, ParameterError> {
        if self.readers.is_some() || self.writers.is_some() {
            let (readers, writers) = (self.readers.unwrap_or(0), self.writers.unwrap_or(0));
            return Ok(Population::Apart { readers, writers });
        }
        let threads = match self.sessions {
            None => self.threads.unwrap_or(default.1),
            Some(sessions) => {
                let schemas = self.schemas.unwrap_or(default.0.min(sessions)).max(1);
                if !sessions.is_multiple_of(schemas) {
                    return Err(ParameterError::Uneven { sessions, schemas });
                }
                return Ok(Population::Mixed { schemas, threads: sessions / schemas });
            }
        };
        Ok(Population::Mixed { schemas: self.schemas.unwrap_or(default.0), threads })
    }

    /// Returns the parameters, complete and checked.
    pub fn settle(
        &self,
        defaults: Defaults,
        block: Bytes,
        seed: u64,
    ) -> Result<Parameters, ParameterError> {
        let shipped = Parameters::default();
        let work_unit = self.work_unit.unwrap_or(shipped.work_unit);
        let scan_size = self.scan_rows.unwrap_or(Scale::Bytes(Bytes::mib(1)));
        let parameters = Parameters {
            population: self.population(defaults.population)?,
            rows_per_schema: self.rows_per_schema.unwrap_or(defaults.scale).blocks(block),
            work_unit,
            update_work_unit: self.update_work_unit.unwrap_or(work_unit),
            update_pct: self.update_pct.unwrap_or(shipped.update_pct),
            scan_pct: self.scan_pct.unwrap_or(shipped.scan_pct),
            scan_rows: scan_size.blocks(block),
            order_entry: false,
            bulk_write: false,
            scan_how: None,
            hotspot: self.hotspot.map(|hotspot| Hotspot {
                first: hotspot.offset.blocks(block),
                rows: hotspot.size.blocks(block),
                every: Every(hotspot.every),
            }),
            hot_schema_every: self.hot_schema_every.map(Every),
            think: self.think,
            loops: self.loops,
            rate_per_s: self.rate_per_s,
            seed: self.seed.unwrap_or(seed),
        };
        parameters.check()?;
        Ok(parameters)
    }
}

impl FromStr for HotspotWanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let why = || {
            format!(
                "`{text}` is not a hot range; write SIZE@OFFSET/N: 8M@16M/3 is 1 of 3 operations \
                 in the 8 MiB at offset 16 MiB"
            )
        };
        let (range, every) = text.rsplit_once('/').ok_or_else(why)?;
        let (size, offset) = range.split_once('@').ok_or_else(why)?;
        Ok(Self {
            size: size.parse().map_err(|_| why())?,
            offset: offset.parse().map_err(|_| why())?,
            every: every.parse().map_err(|_| why())?,
        })
    }
}

impl FromStr for Think {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let why = || {
            format!(
                "`{text}` is not a pause; write MIN..MAX/N, as in 100ms..500ms/10: after one of 10 \
                 operations, 0.1 to 0.5 s"
            )
        };
        let (range, every) = text.rsplit_once('/').ok_or_else(why)?;
        let (min, max) = range.split_once("..").ok_or_else(why)?;
        Ok(Self {
            min: min.parse().map_err(|_| why())?,
            max: max.parse().map_err(|_| why())?,
            every: Every(every.parse().map_err(|_| why())?),
        })
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("it must be a number from 0 to 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::hint::Hint as _;

    use super::*;

    const DEFAULTS: Defaults =
        Defaults { population: (4, 4), scale: Scale::Bytes(Bytes::mib(256)) };

    fn settled(wanted: &Wanted) -> Result<Parameters, ParameterError> {
        wanted.settle(DEFAULTS, Bytes::kib(8), 7)
    }

    #[test]
    fn wishes_are_laid_over_each_other() {
        let file = Wanted {
            threads: Some(8),
            update_pct: Some(25),
            work_unit: Some(256),
            ..Wanted::default()
        };
        let line = Wanted { work_unit: Some(64), ..Wanted::default() };
        let both = line.over(file);
        assert_eq!((both.work_unit, both.threads), (Some(64), Some(8)));
        let readers = Wanted { readers: Some(128), ..Wanted::default() }.over(file);
        let population = settled(&readers).unwrap().population;
        assert_eq!(population, Population::Apart { readers: 128, writers: 0 });
        assert_eq!(readers.update_pct, None, "readers only read, whatever the file says");
        let looping = Wanted { loops: Some(9), think: "1s..2s/3".parse().ok(), ..file };
        let timed =
            Wanted { run_time_ns: Some(Nanos(1)), rate_per_s: Some(5.0), ..Wanted::default() };
        let timed = timed.over(looping);
        assert_eq!((timed.loops, timed.think), (None, None), "what is above goes before");
        let sessions = Wanted { sessions: Some(64), ..Wanted::default() }.over(file);
        let population = settled(&sessions).unwrap().population;
        assert_eq!(population, Population::Mixed { schemas: 4, threads: 16 });
    }

    #[test]
    fn gaps_are_filled_and_sizes_become_blocks() {
        let parameters = settled(&Wanted::default()).unwrap();
        assert_eq!(parameters.rows_per_schema, 32_768);
        assert_eq!(parameters.scan_rows, 128);
        assert_eq!(parameters.update_work_unit, 64);
        assert_eq!(parameters.seed, 7);
        let hotspot = Some("8M@16M/3".parse().unwrap());
        let hot = settled(&Wanted { hotspot, ..Wanted::default() }).unwrap().hotspot.unwrap();
        assert_eq!((hot.first, hot.rows, hot.every), (2048, 1024, Every(3)));
    }

    #[test]
    fn contradictions_are_refused() {
        let with = |change: fn(&mut Wanted)| {
            let mut wanted = Wanted::default();
            change(&mut wanted);
            settled(&wanted).unwrap_err().told()
        };
        let cases = [
            (
                with(|w| w.rows_per_schema = Some(Scale::Blocks(63))),
                "visit 64 rows at a time: the schema has only 63",
            ),
            (with(|w| w.update_pct = Some(101)), "set --update-pct to 101"),
            (with(|w| w.schemas = Some(0)), "set --schemas to 0"),
            (with(|w| (w.readers, w.writers) = (Some(0), None)), "--readers and --writers to 0"),
            (with(|w| w.hotspot = "8M@250M/3".parse().ok()), "visit a hot range of 1024 rows"),
            (with(|w| w.hotspot = "63@0/3".parse().ok()), "the hot range has only 63"),
            (with(|w| w.hotspot = "8M@0/0".parse().ok()), "the frequency of --hotspot to 0"),
            (with(|w| w.think = "2s..1s/3".parse().ok()), "think 2 s to 1 s"),
            (
                with(|w| (w.think, w.rate_per_s) = ("1s..2s/3".parse().ok(), Some(10.0))),
                "at a fixed rate",
            ),
            (with(|w| w.rate_per_s = Some(f64::NAN)), "start NaN operations"),
            (with(|w| w.sessions = Some(7)), "7 sessions over 4 schemas"),
            (with(|w| w.loops = Some(0)), "--loops to 0"),
        ];
        for (message, expected) in cases {
            assert!(message.contains(expected) && message.contains("\nhint: "), "{message}");
        }
    }

    #[test]
    fn notation_that_cannot_be_read_is_explained() {
        for text in ["8M", "8M@16M", "8M/3", "@/", "8M@16M/x", ""] {
            let error = text.parse::<HotspotWanted>().unwrap_err();
            assert!(error.contains("8M@16M/3"), "{error}");
        }
        for text in ["1s", "1s..2s", "1..2/3", "1s..2s/", ""] {
            let error = text.parse::<Think>().unwrap_err();
            assert!(error.contains("100ms..500ms/10"), "{error}");
        }
        assert!("80Q".parse::<Scale>().unwrap_err().contains("80M"));
        assert_eq!("10000".parse(), Ok(Scale::Blocks(10_000)));
    }
}
