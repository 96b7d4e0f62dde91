//! Page cache that holds blocks of a database in addition to the database's own buffer cache, at
//! the cost of memory that the database needs.

use blockstone_base::column::Unmeasured;
use blockstone_base::database::DATABASE;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::table::Known;
use blockstone_base::units::{Bytes, three_digits};
use blockstone_base::verdict::{Outcome, Weight};
use blockstone_figures::Interval;
use blockstone_record::parameters::RunParameters;

use super::{Observed, RunRule, WatchRule, percent, read_figures};

const ABOUT: About = About {
    id: "double-caching",
    weight: Weight::Warns,
    doc: "Page cache that holds much of a database's files while memory is short: the same blocks \
          are in its own buffer cache too, and what they displace has to be read again.",
    threshold: "The page cache holds files of a server (cachestat(2), see docs/cached-files.md) \
                with at least 10 % of the memory of the machine, and either at least 10 pages a \
                second were swapped in (pswpin), or at least 100 pages a second of files were read \
                again that the page cache had evicted while in use (workingset_refault_file, any \
                file of the machine) and at least 10 % of the memory can be held twice: the lesser \
                of the server's page cache and its buffer cache. Both rates are means of the \
                interval or window. Below 10 % it passes, and with more if nothing was displaced. \
                Inconclusive without cachestat(2) (before Linux 6.5), without the count of pages \
                read again (before Linux 5.9), where files could not be looked at, or where the \
                size of the buffer cache decides and is not known: it is asked of a server that is \
                named with --db, and of that of a run. Limits of control groups are not \
                considered.",
    cause: "The database reads and writes its files through the page cache.",
    next: "Let the database open its files with direct I/O and give the memory to its buffer \
           cache; where it cannot, make the buffer cache smaller.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, |case| {
    Judgement::when(case.window.has(FILES), || check(&case.observed()))
});
pub(super) const WATCH: WatchRule = WatchRule::new(&ABOUT, |observed| {
    Judgement::when(observed.saw(FILES) || observed.saw("processes"), || check(observed))
});

const FILES: &str = "cached_files";
const MEMORY: &str = "memory";

/// Share of the memory below which page cache displaces nothing that matters.
const SHARE_MIN: f64 = 0.10;
/// Pages a second. At 100 µs each, ten take a thousandth of the time.
const SWAPPED_MIN: f64 = 10.0;
const READ_AGAIN_MIN: f64 = 100.0;

fn check(observed: &Observed) -> Judgement {
    let interval = &observed.interval;
    let Ok(memory_bytes) = interval.level(MEMORY, "", "memory_bytes") else {
        return Judgement::inconclusive("how much memory the machine has was not measured");
    };
    let server = |name| Server::of(observed, name, memory_bytes);
    let mut servers: Vec<Server> = observed.servers(FILES).into_iter().filter_map(server).collect();
    servers.sort_by(|a, b| b.cached_bytes.total_cmp(&a.cached_bytes));
    let rank = |judgement: &Judgement| match judgement.outcome {
        Outcome::Fail => 0,
        Outcome::Inconclusive => 1,
        Outcome::Pass => 2,
    };
    let judged = servers.iter().map(Server::judge).min_by_key(rank);
    judged.unwrap_or_else(|| Judgement::inconclusive(nothing_seen(interval)))
}

/// Returns why no file of a server was looked at.
fn nothing_seen(interval: &Interval) -> String {
    match interval.reason(FILES, "cached_bytes") {
        Some(
            Unmeasured::Off(why)
            | Unmeasured::NotInVersion(why)
            | Unmeasured::NotPermitted(why)
            | Unmeasured::NoEvidence(why),
        ) => why.clone(),
        None => "no look at the files of a database was complete".to_owned(),
    }
}

/// A server, and its files in the page cache.
struct Server<'a> {
    observed: &'a Observed<'a>,
    name: &'a str,
    memory_bytes: f64,
    cached_bytes: f64,
    unseen_files: f64,
}

impl<'a> Server<'a> {
    /// Returns `None` for a server that was not there at the end.
    fn of(observed: &'a Observed<'a>, name: &'a str, memory_bytes: f64) -> Option<Self> {
        let level = |column| observed.interval.level(FILES, name, column).ok();
        let (cached_bytes, unseen_files) = (level("cached_bytes")?, level("unseen_files")?);
        Some(Self { observed, name, memory_bytes, cached_bytes, unseen_files })
    }

    fn judge(&self) -> Judgement {
        let seen = self.seen();
        let is_small = self.cached_bytes < SHARE_MIN * self.memory_bytes;
        if is_small && (self.unseen_files == 0.0 || self.page_cache_is_small()) {
            return Judgement::pass(seen);
        }
        let unknown = |what: &str| Judgement::inconclusive(format!("{seen}; {what}"));
        let Ok(swapped) = self.per_s("swapped_in_pages") else {
            return unknown("what was swapped in was not measured");
        };
        if !is_small && swapped >= SWAPPED_MIN {
            return self.fail(format!("{seen}; {} pages/s were swapped in", three_digits(swapped)));
        }
        let Ok(read_again) = self.per_s("refaulted_file_pages") else {
            return unknown("pages that were evicted and read again were not counted");
        };
        let rates = format!(
            "{} pages/s swapped in, {} pages/s of files read again",
            three_digits(swapped),
            three_digits(read_again)
        );
        if swapped < SWAPPED_MIN && read_again < READ_AGAIN_MIN {
            return Judgement::pass(format!("{seen}; it displaced nothing: {rates}"));
        }
        if is_small {
            let files = self.unseen_files;
            return unknown(&format!("{files} of its files could not be looked at; {rates}"));
        }
        let Some(buffer_bytes) = self.buffer_bytes() else {
            return unknown(&format!("{rates}; the size of its buffer cache is not known"));
        };
        let twice = buffer_bytes.min(self.cached_bytes);
        let evidence = format!(
            "{seen}; its buffer cache has {}, so up to {} of the memory is held twice; {rates}",
            bytes(buffer_bytes),
            percent(twice / self.memory_bytes)
        );
        if twice >= SHARE_MIN * self.memory_bytes {
            self.fail(evidence)
        } else {
            Judgement::pass(evidence)
        }
    }

    fn seen(&self) -> String {
        let available = self.observed.interval.level(MEMORY, "", "available_bytes");
        let available = available.map_or(String::new(), |it| format!(", {} available", bytes(it)));
        format!(
            "{}: {} of its files in the page cache, {} of the memory of {}{available}",
            self.name,
            bytes(self.cached_bytes),
            percent(self.cached_bytes / self.memory_bytes),
            bytes(self.memory_bytes)
        )
    }

    fn fail(&self, evidence: String) -> Judgement {
        let places =
            if self.observed.run.is_some() { read_figures() } else { vec![self.name.to_owned()] };
        let judgement = Judgement::fail(evidence, places);
        if self.observed.interval.text(FILES, self.name, "open_mode") == Some("direct") {
            return judgement
                .caused_by(
                    "The server opens its files with direct I/O: another program, such as a \
                     backup, brought them into the page cache.",
                )
                .advising("Let that program use direct I/O, or drop what it has read.");
        }
        match advice(self.name) {
            Some(next) if self.observed.run.is_some() => judgement.advising(format!(
                "{next} `--page-cache SIZE` bounds the page cache of a server that the run starts \
                 and of SQLite."
            )),
            Some(next) => judgement.advising(next),
            None => judgement,
        }
    }

    /// Returns whether the page cache of all files is so small that it does not matter whose they
    /// are.
    fn page_cache_is_small(&self) -> bool {
        let all = self.observed.interval.level(MEMORY, "", "file_cache_bytes");
        all.is_ok_and(|all| all < SHARE_MIN * self.memory_bytes)
    }

    fn per_s(&self, column: &str) -> Known {
        self.observed.interval.per_s(MEMORY, "", column)
    }

    /// Returns the size of the server's own buffer cache.
    fn buffer_bytes(&self) -> Option<f64> {
        if let Some(run) = &self.observed.run {
            return Some(buffer_by_settings(run)? as f64);
        }
        let interval = &self.observed.interval;
        let level =
            |interval: &Interval| interval.level(DATABASE.probe, "", "buffer_cache_bytes").ok();
        let instances = interval.instances_with(DATABASE.probe);
        if instances.is_empty() {
            // The server that was named is listed by the name of its product only.
            let servers = self.observed.servers(FILES).into_iter();
            let plain: Vec<&str> = servers.filter(|name| !name.contains(['@', ' '])).collect();
            return if plain == [self.name] { level(interval) } else { None };
        }
        let instance = instances.into_iter().find(|instance| *instance == self.name)?;
        level(&interval.of_instance(instance))
    }
}

/// Returns settings that keep a database from caching twice, by the name of its server.
fn advice(server: &str) -> Option<&'static str> {
    const ADVICE: [(&str, &str); 4] = [
        (
            "postgres",
            "PostgreSQL reads through the page cache (direct I/O is an option for developers: \
             debug_io_direct, from 16 on). Lower shared_buffers to a quarter of the memory or \
             less; or raise it so far that the data in use fit into it.",
        ),
        (
            "mariadb",
            "Set innodb_flush_method = O_DIRECT, and give the memory to innodb_buffer_pool_size.",
        ),
        (
            "oracle",
            "Set filesystemio_options = SETALL, and give the memory to the buffer cache \
             (db_cache_size, sga_target).",
        ),
        (
            "sqlite",
            "SQLite reads through the page cache; in a run, --io direct has it read past that. Or \
             lower its cache_size, which each connection has for itself.",
        ),
    ];
    ADVICE.iter().find(|(name, _)| server.starts_with(name)).map(|(_, next)| *next)
}

/// Returns the size of the buffer cache in bytes, according to the settings of a run's database.
fn buffer_by_settings(run: &RunParameters) -> Option<u64> {
    let settings = run.server_settings.as_ref()?;
    if let Some(text) = settings.get("shared_buffers") {
        return with_unit(text);
    }
    if let Some(text) = settings.get("innodb_buffer_pool_size") {
        return text.parse().ok();
    }
    // SQLite: in pages or, if negative, in KiB; each connection has its own cache.
    let size: i64 = settings.get("cache_size")?.parse().ok()?;
    let unit = if size < 0 { 1024 } else { settings.get("page_size")?.parse().ok()? };
    size.unsigned_abs().checked_mul(unit)?.checked_mul(run.sessions?.into())
}

/// Parses a size as PostgreSQL shows it: `128MB`.
fn with_unit(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] =
        [("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1 << 40), ("B", 1)];
    let (number, unit) = UNITS
        .iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)))
        .unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn bytes(value: f64) -> Bytes {
    Bytes(value as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_buffer_cache_is_known_by_the_settings_of_each_database() {
        let of = |settings: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let settings: BTreeMap<_, _> = settings.iter().map(owned).collect();
            buffer_by_settings(&RunParameters {
                server_settings: Some(settings),
                sessions: Some(4),
                ..RunParameters::default()
            })
        };
        assert_eq!(of(&[("shared_buffers", "16GB")]), Some(16 << 30));
        assert_eq!(of(&[("shared_buffers", "16384kB")]), Some(16 << 20));
        assert_eq!(of(&[("shared_buffers", "a lot")]), None);
        assert_eq!(of(&[("innodb_buffer_pool_size", "134217728")]), Some(128 << 20));
        assert_eq!(of(&[("cache_size", "-8192"), ("page_size", "4096")]), Some(32 << 20));
        assert_eq!(of(&[("cache_size", "100"), ("page_size", "4096")]), Some(1_638_400));
        assert_eq!(of(&[("cache_size", "100")]), None);
        assert_eq!(of(&[("shared_buffers", "99999999999999TB")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn each_product_has_its_own_advice() {
        for (server, setting) in [
            ("postgres@5432", "shared_buffers"),
            ("mariadb", "innodb_flush_method"),
            ("oracle ORCL1", "filesystemio_options"),
            ("sqlite", "cache_size"),
        ] {
            assert!(advice(server).unwrap().contains(setting), "{server}");
        }
        assert_eq!(advice("mongod"), None);
    }
}
