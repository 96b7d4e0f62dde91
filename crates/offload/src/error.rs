use blockstone_base::hint::Hint;

use crate::unit::Unit;

/// Reason why a table of counters was rejected. Lines are counted from 1.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Hint)]
pub enum CountersError {
    #[error("it has no column `{name}`")]
    #[hint("its columns are time, instance, statistic, value; run and unit if there are any")]
    NoColumn { name: &'static str },
    #[error("line {line}: no column is called `{name}`")]
    #[hint("columns are run, time, instance, statistic, value and unit")]
    UnknownColumn { line: usize, name: String },
    #[error("line {line}: {why}")]
    #[hint("a quote inside of quotes is written twice")]
    NotCsv { line: usize, why: &'static str },
    #[error("line {line}: {found} fields for {columns} columns")]
    #[hint("put fields that contain commas in quotes")]
    Fields { line: usize, found: usize, columns: usize },
    #[error("line {line}: {text:?} is not a time")]
    #[hint("ISO 8601, a number of seconds, or `before` and `after` of a run that was not timed")]
    Time { line: usize, text: String },
    #[error("line {line}: the instance is missing")]
    #[hint("counters of several instances cannot be subtracted without it; select INST_ID as well")]
    NoInstance { line: usize },
    #[error("line {line}: the statistic is missing")]
    #[hint("select its name as well")]
    NoStatistic { line: usize },
    #[error(
        "line {line}: the statistic is the number {text}, and numbers change from version to \
         version"
    )]
    #[hint("give its name: join V$STATNAME by STATISTIC#")]
    Numbered { line: usize, text: String },
    #[error("line {line}: the value {text:?} is not a number of {unit} from 0 on")]
    #[hint("counters as the database shows them, without separators of thousands")]
    Value { line: usize, text: String, unit: &'static str },
    #[error("line {line}: {text} is rounded: nothing exact can be subtracted from it")]
    #[hint("SET NUMWIDTH 20 lets SQL*Plus show all digits")]
    Rounded { line: usize, text: String },
    #[error("line {line}: {text:?} is not a unit of bytes")]
    #[hint("B, KB, MB, GB, TB, KiB, MiB, GiB or TiB")]
    NotUnit { line: usize, text: String },
    #[error("line {line}: its unit is {}, that of line {first} is {}", found.name(), before.name())]
    #[hint("GiB are 7 % more than GB; give all counters in one unit")]
    MixedUnits { line: usize, found: Unit, first: usize, before: Unit },
    #[error(
        "line {line}: {statistic} of instance {instance} has a value at this time already, in \
         line {first}"
    )]
    #[hint("name runs in a column `run`, or the instance of each row")]
    Twice { line: usize, first: usize, statistic: String, instance: String },
    #[error("run {run:?}: {statistic} of instance {instance} is missing at {time}")]
    #[hint("each snapshot needs the same counters of the same instances")]
    Missing { run: String, statistic: String, instance: String, time: String },
    #[error("run {run:?} has one snapshot only")]
    #[hint("a counter needs a value before and one after")]
    OneSnapshot { run: String },
    #[error(
        "line {line}: {statistic} of instance {instance} falls from {from} to {to}: the counters \
         do not continue, and nothing can be subtracted over that"
    )]
    #[hint(
        "{}",
        if *several { "the instance was started again, or the rows are of several runs: name \
             these in a column `run`" } else { "the instance was started again; take the snapshots \
             of a run between two starts" }
    )]
    Decreasing {
        line: usize,
        statistic: String,
        instance: String,
        from: f64,
        to: f64,
        /// Whether several runs may be mixed, because the file has no `run` column.
        several: bool,
    },
    #[error("run {run:?}: it has no {}", names.join(", no "))]
    #[hint("a ledger takes bytes read, eligible and of the interconnect, by these names")]
    NoCounter { run: String, names: Vec<&'static str> },
    #[error(
        "run {run:?}: {part} is {ratio:.4} × {whole}, of which it is a part{}",
        suspected(*ratio)
    )]
    #[hint("give all counters in one unit")]
    PartAboveWhole { run: String, part: &'static str, whole: &'static str, ratio: f64 },
    #[error("it has no rows")]
    #[hint("its columns are time, instance, statistic, value; run and unit if there are any")]
    Empty,
    #[error("run {run:?}: {what} add up to more than can be counted")]
    #[hint("is the unit right?")]
    TooLarge { run: String, what: &'static str },
}

/// Names the units that were probably mixed if the ratio is that of a binary to a decimal unit.
fn suspected(ratio: f64) -> String {
    const UNITS: [(f64, &str); 4] = [
        (1.024, "KiB and KB"),
        (1.048_576, "MiB and MB"),
        (1.073_741_824, "GiB and GB"),
        (1.099_511_627_776, "TiB and TB"),
    ];
    let found = UNITS.iter().find(|(units, _)| (ratio / units - 1.0).abs() < 0.01);
    found.map_or(String::new(), |(_, names)| format!(": as if {names} were mixed"))
}
