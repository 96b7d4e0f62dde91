//! Settings files of other tools: `slob.conf`, `pgio.conf`, scripts of `HammerDB` and options of
//! sysbench, read so that a known test can be repeated here. A setting without a counterpart is
//! named, never silently dropped. A value is repeated only if its setting is known not to be a
//! secret: forks and scripts keep passwords under any name.
//!
//! The files are read, not executed: comments, quotes and `export` are understood, and a setting
//! that has a counterpart is refused if a shell or Tcl would compute its value.

mod hammerdb;
mod sysbench;

use blockstone_base::hint::Hint;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_servers::{RedoStress, without_password};

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
    /// A script for `hammerdbcli`.
    HammerDb,
    /// Options of sysbench: a file of them, or a command line.
    Sysbench,
}

impl Dialect {
    /// Whether the load is order entry, which `--profile oltp` sends.
    pub fn is_order_entry(self) -> bool {
        matches!(self, Self::HammerDb)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Hint)]
pub enum ConfError {
    /// The text is not repeated: a line that is no setting may be a call with a password.
    #[error("read line {line}: it is not NAME=value")]
    #[hint("remove it, or comment it out")]
    Line { line: usize },
    #[error("read line {line}: {name}={value} cannot be used: {why}")]
    #[hint("{hint}")]
    Value { line: usize, name: String, value: String, why: String, hint: String },
    #[error("read settings: no setting of slob.conf, pgio.conf, HammerDB or sysbench is in it")]
    #[hint("name one of these files")]
    Nothing,
    #[error("read settings: this is the XML of HammerDB's window")]
    #[hint("name a script for hammerdbcli: lines such as `diset tpcc pg_duration 5`, `vuset vu 8`")]
    Xml,
}

/// Reads `text` of one of the tools: the names that only one of them uses show which.
pub fn read(text: &str) -> Result<Conf, ConfError> {
    if hammerdb::is_xml(text) {
        return Err(ConfError::Xml);
    }
    for (is_meant, read) in [
        (hammerdb::is_script as fn(&str) -> bool, hammerdb::read as Read),
        (sysbench::is_options, sysbench::read),
    ] {
        if is_meant(text) {
            return read(text);
        }
    }
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
        if pgio {
            reader.pgio(line)?;
        } else {
            reader.slob(line)?;
        }
    }
    Ok(reader.finish(dialect))
}

type Read = fn(&str) -> Result<Conf, ConfError>;

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
            // SLOB up to 2.2 has the second names.
            "HOT_SCHEMA_FREQUENCY" | "SHARED_DATA_MODULUS" => {
                let every = line.number(u32::MAX)?;
                self.wanted.hot_schema_every = (every > 0).then_some(every);
            }
            "THINK_TM_FREQUENCY" | "THINK_TM_MODULUS" => {
                self.think.every = Every(line.number(u32::MAX)?);
            }
            "THINK_TM_MIN" => self.think.min = line.seconds()?,
            "THINK_TM_MAX" => self.think.max = line.seconds()?,
            // An update hot spot that is off asks for nothing.
            "DO_UPDATE_HOTSPOT" if line.value.eq_ignore_ascii_case("false") => {}
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
    fn no_counterpart(&mut self, line: &Assignment<'_>, reason: Reason) {
        self.without.extend(line.without_counterpart(reason));
    }

    fn finish(self, dialect: Dialect) -> Conf {
        let Self { mut wanted, has_hotspot, hotspot, think, without } = self;
        wanted.hotspot = has_hotspot.then_some(hotspot);
        wanted.think = (think.every.0 > 0).then_some(think);
        Conf { dialect, wanted, without_counterpart: without }
    }
}

/// Reason why a setting has no counterpart, and how much of its value may be repeated.
#[derive(Clone, Copy, Debug)]
enum Reason {
    /// The value is no secret.
    Open(&'static str),
    /// The value may contain a password.
    Address(&'static str),
    /// Nothing is known of the value.
    Secret(&'static str),
}

const NO_SERVER: &str = "there is no server to connect to";
const NO_LOGIN: &str = "there is no server to log in to";

fn slob_reason(name: &str) -> Reason {
    match name {
        "LOAD_PARALLEL_DEGREE" => Reason::Open("the load is as parallel as the machine allows"),
        "DATABASE_STATISTICS_TYPE" => {
            Reason::Open("statistics are the recording; --awr-info prints SLOB's line")
        }
        "DO_UPDATE_HOTSPOT" | "HOTSPOT_PCT" => {
            Reason::Open("a hot range is of selects and updates; --hotspot sets one")
        }
        "SQLNET_SERVICE_MAX" => Reason::Open(NO_SERVER),
        "ADMIN_SQLNET_SERVICE" | "SQLNET_SERVICE_BASE" => Reason::Address(NO_SERVER),
        "DBA_PRIV_USER" => Reason::Address(NO_LOGIN),
        "SYSDBA_PASSWD" => Reason::Secret(NO_LOGIN),
        "EXTERNAL_SCRIPT" => Reason::Address("run it around this command"),
        _ => Reason::Secret("it is not a known setting of slob.conf"),
    }
}

fn pgio_reason(name: &str) -> Reason {
    match name {
        "DBNAME" | "CONNECT_STRING" => Reason::Address(NO_SERVER),
        "CREATE_BASE_TABLE" => Reason::Open("schemas are always reloaded"),
        _ => Reason::Secret("it is not a known setting of pgio.conf"),
    }
}

/// Returns an address as it may be repeated. Oracle's form, `user/password@service`, is that of no
/// address here.
fn shown(address: &str) -> String {
    let login = address.split_once('@').filter(|(login, _)| !login.contains(':'));
    match login.and_then(|(login, service)| Some((login.split_once('/')?.0, service))) {
        Some((user, service)) if !user.is_empty() => format!("{user}@{service}"),
        _ => without_password(address),
    }
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
            .ok_or(ConfError::Line { line })?;
        found.push(Assignment { line, name, value: unquoted(value) });
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
    /// Returns the sentence on a setting without a counterpart. An empty value asks for nothing.
    fn without_counterpart(&self, reason: Reason) -> Option<String> {
        let Self { name, value, .. } = self;
        let (value, why) = match reason {
            _ if value.is_empty() => return None,
            Reason::Open(why) => ((*value).to_owned(), why),
            Reason::Address(why) => (shown(value), why),
            Reason::Secret(why) => ("…".to_owned(), why),
        };
        Some(format!("{name}={value} has no counterpart: {why}"))
    }

    /// Refuses the value of a setting that has a counterpart, none of which is a secret.
    fn unusable(&self, why: impl Into<String>) -> ConfError {
        let is_computed = self.value.contains(['$', '`', '[']);
        ConfError::Value {
            line: self.line,
            name: self.name.to_owned(),
            value: self.value.to_owned(),
            why: if is_computed { "it is computed by a script".to_owned() } else { why.into() },
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

    fn minutes(&self) -> Result<Nanos, ConfError> {
        let minutes: u64 = self.number(1 << 20)?.into();
        Ok(Nanos(minutes * 60_000_000_000))
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
            ("UPDATE_PCT=10\nsqlplus system/manager", "line 2: it is not NAME=value"),
            ("UPDATE_PCT=ten", "UPDATE_PCT=ten cannot be used"),
            ("UPDATE_PCT=101", "above 100"),
            ("SCALE=80Q", "80Q"),
            ("REDO_STRESS=MEDIUM", "neither LITE nor HEAVY"),
            ("RUN_TIME=-1", "not a number of seconds"),
            ("SCALE=$SIZE", "computed by a script"),
            ("<hammerdb><count_ware>4</count_ware></hammerdb>", "XML of HammerDB"),
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
        assert!(conf.without_counterpart[0].starts_with("FUTURE_OPTION=…"));
    }

    #[test]
    fn a_slob_conf_of_the_first_releases_is_read() {
        let file = "UPDATE_PCT=25\nSHARED_DATA_MODULUS=4\nTHINK_TM_MODULUS=7\nTHINK_TM_MIN=.1\n\
                    THINK_TM_MAX=.5\nDO_UPDATE_HOTSPOT=FALSE\nHOTSPOT_PCT=10\n";
        let conf = read(file).unwrap();
        assert_eq!(conf.wanted.hot_schema_every, Some(4));
        assert_eq!(conf.wanted.think, "100ms..500ms/7".parse().ok());
        assert_eq!(conf.without_counterpart.len(), 1, "{:?}", conf.without_counterpart);
    }

    #[test]
    fn no_secret_is_repeated_whatever_its_name() {
        for setting in [
            "DB_ROOT_PWD=Tulip99x",
            "DB2_PWD='Tulip99x'",
            "ORACLE_SYS=Tulip99x",
            "PIN=Tulip99x",
            "export PGPASSWORD=Tulip99x",
            "SYSDBA_PASSWD=\"Tulip99x\"",
            "DBA_PRIV_USER=system/Tulip99x@db1",
            "ADMIN_SQLNET_SERVICE='system/Tulip99x@//db1:1521/x'",
            "NUM_SCHEMAS=1\nCONNECT_STRING=postgresql://bench:Tulip99x@db1/x",
            "NUM_SCHEMAS=1\nCONNECT_STRING=\"host=db1 password=Tulip99x dbname=x\"",
            "NUM_SCHEMAS=1\nCONNECT_STRING=\"host=db1 password='Tul Tulip99x' dbname=x\"",
            "NUM_SCHEMAS=1\nCONNECT_STRING=\"host=db1 password = Tulip99x dbname=x\"",
            "NUM_SCHEMAS=1\nCONNECT_STRING=\"postgresql:///x?passfile=/a&password=Tulip99x\"",
            "mysql -uroot -pTulip99x",
        ] {
            let told = match read(&format!("UPDATE_PCT=10\n{setting}\n")) {
                Ok(conf) => conf.without_counterpart.join("\n"),
                Err(error) => error.told(),
            };
            assert!(!told.is_empty() && !told.contains("Tulip99x"), "{setting}: {told}");
        }
        let conf = read("NUM_SCHEMAS=1\nCONNECT_STRING=postgresql://bench:Tulip99x@db1/x").unwrap();
        let told = &conf.without_counterpart[0];
        assert!(told.starts_with("CONNECT_STRING=postgresql://bench@db1/x"), "{told}");
    }
}
