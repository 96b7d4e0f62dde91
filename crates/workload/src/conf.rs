//! Settings files of other tools: `slob.conf` and `pgio.conf`, read so that a known test can be
//! repeated here. A setting without a counterpart is named, never silently dropped.
//!
//! Both are shell fragments with lines `NAME=value`. They are read, not executed: comments, quotes
//! and `export` are understood, and a value with an expansion is refused.

use blockstone_base::hint::Hint;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_servers::RedoStress;

use crate::parameters::{Every, Scale, Think};
use crate::wanted::{HotspotWanted, Wanted};

#[derive(Clone, Debug, PartialEq)]
pub struct Conf {
    pub dialect: Dialect,
    pub wanted: Wanted,
    /// Settings without a counterpart here, one sentence each.
    pub without_counterpart: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SLOB, for Oracle.
    Slob,
    /// pgio, SLOB for PostgreSQL.
    Pgio,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Hint)]
pub enum ConfError {
    #[error("read line {line}: `{text}` is not NAME=value")]
    #[hint("remove it, or comment it out")]
    Line { line: usize, text: String },
    #[error("read line {line}: {name}={value} cannot be used: {why}")]
    #[hint("{hint}")]
    Value { line: usize, name: String, value: String, why: String, hint: String },
    #[error("read settings: no setting of slob.conf or pgio.conf is in it")]
    #[hint("name one of these files")]
    Nothing,
}

/// Reads `text` of either tool: the names that only one of them uses show which.
pub fn read(text: &str) -> Result<Conf, ConfError> {
    let lines = assignments(text)?;
    let has = |names: &[&str]| lines.iter().any(|line| names.contains(&line.name));
    let pgio = has(&["NUM_SCHEMAS", "NUM_THREADS", "UPDATE_WORK_UNIT", "CREATE_BASE_TABLE"]);
    if !pgio && !lines.iter().any(|line| SLOB.contains(&line.name)) {
        return Err(ConfError::Nothing);
    }
    let dialect = if pgio { Dialect::Pgio } else { Dialect::Slob };
    let mut reader = Reader {
        wanted: Wanted::default(),
        has_hotspot: false,
        hotspot: HOTSPOT_SHIPPED,
        think: THINK_SHIPPED,
        without: Vec::new(),
    };
    for line in &lines {
        match dialect {
            Dialect::Slob => reader.slob(line)?,
            Dialect::Pgio => reader.pgio(line)?,
        }
    }
    Ok(reader.finish(dialect))
}

#[derive(Clone, Copy, Debug)]
struct Assignment<'a> {
    line: usize,
    name: &'a str,
    value: &'a str,
}

/// Names in a slob.conf that suffice to recognise it.
const SLOB: [&str; 8] = [
    "UPDATE_PCT",
    "SCAN_PCT",
    "RUN_TIME",
    "WORK_LOOP",
    "SCALE",
    "WORK_UNIT",
    "REDO_STRESS",
    "THREADS_PER_SCHEMA",
];

/// Hot range and pauses of a slob.conf as shipped, each enabled by a different name.
const HOTSPOT_SHIPPED: HotspotWanted = HotspotWanted {
    size: Scale::Bytes(Bytes::mib(8)),
    offset: Scale::Bytes(Bytes::mib(16)),
    every: 3,
};
const THINK_SHIPPED: Think =
    Think { min: Nanos::millis(100), max: Nanos::millis(500), every: Every(0) };

struct Reader {
    wanted: Wanted,
    has_hotspot: bool,
    hotspot: HotspotWanted,
    think: Think,
    without: Vec<String>,
}

impl Reader {
    /// Reads a setting that has the same name in both files; returns false if it is not one.
    fn common(&mut self, line: &Assignment<'_>) -> Result<bool, ConfError> {
        match line.name {
            "UPDATE_PCT" => self.wanted.update_pct = Some(line.number(100)?),
            "RUN_TIME" => self.wanted.run_time_ns = Some(line.seconds()?),
            "SCALE" => self.wanted.rows_per_schema = Some(line.scale()?),
            "WORK_UNIT" => self.wanted.work_unit = Some(line.number(u32::MAX)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn slob(&mut self, line: &Assignment<'_>) -> Result<(), ConfError> {
        if self.common(line)? {
            return Ok(());
        }
        match line.name {
            "SCAN_PCT" => self.wanted.scan_pct = Some(line.number(100)?),
            "SCAN_TABLE_SZ" => self.wanted.scan_rows = Some(line.scale()?),
            "WORK_LOOP" => {
                let loops: u64 = line.number(u32::MAX)?.into();
                self.wanted.loops = (loops > 0).then_some(loops);
            }
            "REDO_STRESS" => {
                self.wanted.redo_stress = Some(match line.value.to_ascii_uppercase().as_str() {
                    "LITE" => RedoStress::Lite,
                    "HEAVY" => RedoStress::Heavy,
                    _ => return Err(line.unusable("it is neither LITE nor HEAVY")),
                });
            }
            "THREADS_PER_SCHEMA" => self.wanted.threads = Some(line.number(u32::MAX)?),
            "OBFUSCATE_COLUMNS" => {
                self.wanted.obfuscate = Some(if line.flag()? { 1.0 } else { 0.0 });
            }
            "DO_HOTSPOT" => self.has_hotspot = line.flag()?,
            "HOTSPOT_MB" => self.hotspot.size = line.mebibytes()?,
            "HOTSPOT_OFFSET_MB" => self.hotspot.offset = line.mebibytes()?,
            "HOTSPOT_FREQUENCY" => self.hotspot.every = line.number(u32::MAX)?,
            "HOT_SCHEMA_FREQUENCY" => {
                let every = line.number(u32::MAX)?;
                self.wanted.hot_schema_every = (every > 0).then_some(every);
            }
            "THINK_TM_FREQUENCY" => self.think.every = Every(line.number(u32::MAX)?),
            "THINK_TM_MIN" => self.think.min = line.seconds()?,
            "THINK_TM_MAX" => self.think.max = line.seconds()?,
            _ => self.no_counterpart(line, slob_reason(line.name)),
        }
        Ok(())
    }

    fn pgio(&mut self, line: &Assignment<'_>) -> Result<(), ConfError> {
        if self.common(line)? {
            return Ok(());
        }
        match line.name {
            "NUM_SCHEMAS" => self.wanted.schemas = Some(line.number(u32::MAX)?),
            "NUM_THREADS" => self.wanted.threads = Some(line.number(u32::MAX)?),
            "UPDATE_WORK_UNIT" => self.wanted.update_work_unit = Some(line.number(u32::MAX)?),
            _ => self.no_counterpart(line, pgio_reason(line.name)),
        }
        Ok(())
    }

    /// Records a setting without a counterpart; an empty value asks for nothing.
    fn no_counterpart(&mut self, line: &Assignment<'_>, why: &str) {
        if !line.value.is_empty() {
            let Assignment { name, value, .. } = line;
            self.without.push(format!("{name}={} has no counterpart: {why}", hidden(name, value)));
        }
    }

    fn finish(self, dialect: Dialect) -> Conf {
        let Self { mut wanted, has_hotspot, hotspot, think, without } = self;
        wanted.hotspot = has_hotspot.then_some(hotspot);
        wanted.think = (think.every.0 > 0).then_some(think);
        Conf { dialect, wanted, without_counterpart: without }
    }
}

fn slob_reason(name: &str) -> &'static str {
    match name {
        "LOAD_PARALLEL_DEGREE" => "the load is as parallel as the machine allows",
        "DATABASE_STATISTICS_TYPE" => "statistics are the recording; --awr-info prints SLOB's line",
        "ADMIN_SQLNET_SERVICE" | "SQLNET_SERVICE_BASE" | "SQLNET_SERVICE_MAX" => {
            "there is no server to connect to"
        }
        "DBA_PRIV_USER" | "SYSDBA_PASSWD" => "there is no server to log in to",
        "EXTERNAL_SCRIPT" => "run it around this command",
        _ => "it is not a known setting of slob.conf",
    }
}

fn pgio_reason(name: &str) -> &'static str {
    match name {
        "DBNAME" | "CONNECT_STRING" => "there is no server to connect to",
        "CREATE_BASE_TABLE" => "schemas are always reloaded",
        _ => "it is not a known setting of pgio.conf",
    }
}

/// Returns a value as it may be printed: passwords may not.
fn hidden<'a>(name: &str, value: &'a str) -> &'a str {
    if name.contains("PASSW") { "…" } else { value }
}

/// Parses the assignments in a shell fragment.
fn assignments(text: &str) -> Result<Vec<Assignment<'_>>, ConfError> {
    let mut found = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        let text = raw.trim();
        let exported = text.strip_prefix("export ").map(str::trim);
        if text.is_empty() || text.starts_with('#') || exported.is_some_and(|t| !t.contains('=')) {
            continue;
        }
        let assignment = exported.unwrap_or(text);
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let (name, value) = assignment
            .split_once('=')
            .filter(|(name, _)| is_name(name))
            .ok_or_else(|| ConfError::Line { line, text: text.to_owned() })?;
        let assignment = Assignment { line, name, value: unquoted(value) };
        if assignment.value.contains(['$', '`']) {
            return Err(assignment.unusable("it is computed by a shell"));
        }
        found.push(assignment);
    }
    Ok(found)
}

/// Returns a value without its quotes, or up to the comment after it.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some((inside, _)) = value.strip_prefix(quote).and_then(|v| v.split_once(quote)) {
            return inside;
        }
    }
    value.split(|c: char| c.is_whitespace() || c == ';').next().unwrap_or_default()
}

impl Assignment<'_> {
    fn unusable(&self, why: impl Into<String>) -> ConfError {
        ConfError::Value {
            line: self.line,
            name: self.name.to_owned(),
            value: hidden(self.name, self.value).to_owned(),
            why: why.into(),
            hint: "correct the value; command-line options take precedence over the file"
                .to_owned(),
        }
    }

    fn number(&self, most: u32) -> Result<u32, ConfError> {
        let number: u32 =
            self.value.parse().map_err(|_| self.unusable("it is not a whole number"))?;
        if number > most { Err(self.unusable(format!("it is above {most}"))) } else { Ok(number) }
    }

    fn seconds(&self) -> Result<Nanos, ConfError> {
        match self.value.parse::<f64>() {
            Ok(seconds) if (0.0..1e9).contains(&seconds) => {
                Ok(Nanos((seconds * 1e9).round() as u64))
            }
            _ => Err(self.unusable("it is not a number of seconds")),
        }
    }

    fn scale(&self) -> Result<Scale, ConfError> {
        self.value.parse().map_err(|why: String| self.unusable(why))
    }

    fn mebibytes(&self) -> Result<Scale, ConfError> {
        Ok(Scale::Bytes(Bytes::mib(self.number(u32::MAX)?.into())))
    }

    fn flag(&self) -> Result<bool, ConfError> {
        match self.value.to_ascii_uppercase().as_str() {
            "TRUE" => Ok(true),
            "FALSE" => Ok(false),
            _ => Err(self.unusable("it is neither TRUE nor FALSE")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOB_FILE: &str = "
# a comment
UPDATE_PCT=25
SCAN_PCT=10
RUN_TIME=300
WORK_LOOP=0
SCALE=80M
SCAN_TABLE_SZ=1M
WORK_UNIT=64   # rows
REDO_STRESS=HEAVY
LOAD_PARALLEL_DEGREE=2

THREADS_PER_SCHEMA=4
DATABASE_STATISTICS_TYPE=awr   # Permitted values: [statspack|awr]
#ADMIN_SQLNET_SERVICE=slob
SYSDBA_PASSWD=\"change_on_install\"
EXTERNAL_SCRIPT=''
DO_HOTSPOT=TRUE
HOTSPOT_MB=8
HOTSPOT_OFFSET_MB=16
HOTSPOT_FREQUENCY=3
HOT_SCHEMA_FREQUENCY=5
THINK_TM_FREQUENCY=2
THINK_TM_MIN=.1
THINK_TM_MAX=.5
OBFUSCATE_COLUMNS=TRUE
export UPDATE_PCT RUN_TIME
";

    #[test]
    fn a_slob_conf_is_read_whole() {
        let conf = read(SLOB_FILE).unwrap();
        assert_eq!(conf.dialect, Dialect::Slob);
        let wanted = Wanted {
            update_pct: Some(25),
            scan_pct: Some(10),
            run_time_ns: Some(Nanos(300_000_000_000)),
            rows_per_schema: Some(Scale::Bytes(Bytes::mib(80))),
            scan_rows: Some(Scale::Bytes(Bytes::mib(1))),
            work_unit: Some(64),
            redo_stress: Some(RedoStress::Heavy),
            threads: Some(4),
            hotspot: "8M@16M/3".parse().ok(),
            hot_schema_every: Some(5),
            think: "100ms..500ms/2".parse().ok(),
            obfuscate: Some(1.0),
            ..Wanted::default()
        };
        assert_eq!(conf.wanted, wanted);
        let names = ["LOAD_PARALLEL_DEGREE=2", "DATABASE_STATISTICS_TYPE=awr", "SYSDBA_PASSWD=…"];
        assert_eq!(conf.without_counterpart.len(), names.len(), "{:?}", conf.without_counterpart);
        for (line, name) in conf.without_counterpart.iter().zip(names) {
            assert!(line.starts_with(name), "{line}");
            assert!(!line.contains("change_on_install"), "a password is not repeated");
        }
    }

    #[test]
    fn switches_that_are_off_stay_off() {
        let conf = read("UPDATE_PCT=0\nDO_HOTSPOT=FALSE\nHOTSPOT_MB=8\nTHINK_TM_FREQUENCY=0\n");
        let wanted = conf.unwrap().wanted;
        assert_eq!((wanted.hotspot, wanted.think, wanted.loops), (None, None, None));
    }

    #[test]
    fn a_pgio_conf_is_read_whole() {
        let file = "UPDATE_PCT=10\nRUN_TIME=120\nNUM_SCHEMAS=4\nNUM_THREADS=2\nWORK_UNIT=255\n\
                    UPDATE_WORK_UNIT=8\nSCALE=1G\nDBNAME=pgio\nCONNECT_STRING=\"pgio\"\n\
                    CREATE_BASE_TABLE=TRUE\n";
        let conf = read(file).unwrap();
        assert_eq!(conf.dialect, Dialect::Pgio);
        let wanted = &conf.wanted;
        assert_eq!((wanted.schemas, wanted.threads), (Some(4), Some(2)));
        assert_eq!((wanted.work_unit, wanted.update_work_unit), (Some(255), Some(8)));
        assert_eq!(wanted.rows_per_schema, Some(Scale::Bytes(Bytes::gib(1))));
        assert_eq!(conf.without_counterpart.len(), 3, "{:?}", conf.without_counterpart);
    }

    #[test]
    fn what_cannot_be_understood_is_refused_with_its_line() {
        for (text, expected) in [
            ("UPDATE_PCT=10\nwhat is this", "line 2: `what is this`"),
            ("UPDATE_PCT=ten", "UPDATE_PCT=ten cannot be used"),
            ("UPDATE_PCT=101", "above 100"),
            ("SCALE=80Q", "80Q"),
            ("REDO_STRESS=MEDIUM", "neither LITE nor HEAVY"),
            ("RUN_TIME=-1", "not a number of seconds"),
            ("SCALE=$SIZE", "computed by a shell"),
            ("UPDATE_PCT=1\nDO_HOTSPOT=maybe", "neither TRUE nor FALSE"),
            ("listen_port=5432", "no setting of slob.conf"),
            ("", "no setting of slob.conf"),
        ] {
            let error = read(text).unwrap_err().told();
            assert!(error.contains(expected) && error.contains("\nhint: "), "{text}: {error}");
        }
    }

    #[test]
    fn an_unknown_setting_is_named_and_harmless() {
        let conf = read("UPDATE_PCT=10\nFUTURE_OPTION=3\n").unwrap();
        assert!(conf.without_counterpart[0].starts_with("FUTURE_OPTION=3"));
    }
}
