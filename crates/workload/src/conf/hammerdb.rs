//! Scripts for `hammerdbcli`: Tcl, of which the lines that set something are read.

use super::{Assignment, Conf, ConfError, Dialect, NO_SERVER, Reason};
use crate::wanted::Wanted;

/// Commands that set something: the name of the setting is the word before the value.
const SETTING: [&str; 4] = ["diset", "dbset", "vuset", "giset"];

/// Settings under the names that they have after the prefix of the database: `pg_duration`.
const OF_ANY_DATABASE: [(&str, Reason); 16] = [
    ("count_ware", Reason::Open("--scale sets the size of a schema")),
    ("num_vu", Reason::Open("the load is as parallel as the machine allows")),
    ("rampup", Reason::Open("a warm-up of at most half the window comes before it")),
    ("driver", Reason::Open("a run is timed, or counts with --loops")),
    ("keyandthink", Reason::Open("--think sets pauses")),
    ("total_iterations", Reason::Open("--loops ends a run after so many transactions")),
    ("allwarehouse", Reason::Open("every session visits all rows of its schema")),
    ("timeprofile", Reason::Open("response times are always measured")),
    ("vacuum", Reason::Open("it is a setting of the database")),
    ("partition", Reason::Open("tables are not partitioned")),
    ("storedprocs", Reason::Open("transactions are single statements")),
    ("raiseerror", Reason::Open("a transaction that fails is counted")),
    ("async_scale", Reason::Open("sessions are not shared")),
    ("sslmode", Reason::Open(NO_SERVER)),
    ("port", Reason::Open(NO_SERVER)),
    ("host", Reason::Address(NO_SERVER)),
];

pub fn is_script(text: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("diset" | "dbset" | "vuset")) && words.next().is_some()
    })
}

pub fn is_xml(text: &str) -> bool {
    let text = text.trim_start();
    let is_of_window = |name: &str| text.contains(name);
    text.starts_with('<')
        && ["<hammerdb", "<count_ware>", "_count_ware>"].into_iter().any(is_of_window)
}

pub fn read(text: &str) -> Result<Conf, ConfError> {
    let mut wanted = Wanted::default();
    let mut without = Vec::new();
    for line in settings(text) {
        match line.name {
            "vu" => {
                wanted.schemas = Some(1);
                wanted.sessions = Some(line.number(u32::MAX)?);
            }
            "bm" if !["TPC-C", "TPROC-C"].contains(&line.value) => {
                without.extend(line.without_counterpart(Reason::Open(
                    "only transactions are sent; --profile scan measures large reads",
                )));
            }
            "db" | "bm" => {}
            name if is(name, "duration") => wanted.run_time_ns = Some(line.minutes()?),
            name => {
                let known = OF_ANY_DATABASE.iter().find(|(known, _)| is(name, known));
                let unknown = Reason::Secret("it is not a known setting of HammerDB");
                let reason = known.map_or(unknown, |(_, reason)| *reason);
                without.extend(line.without_counterpart(reason));
            }
        }
    }
    Ok(Conf { dialect: Dialect::HammerDb, wanted, without_counterpart: without })
}

/// Whether a name is this one after the prefix of a database: `pg_duration`, `mysql_duration`.
fn is(name: &str, known: &str) -> bool {
    name.strip_suffix(known).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('_'))
}

/// Returns what the script sets, line by line.
fn settings(text: &str) -> impl Iterator<Item = Assignment<'_>> {
    text.lines().zip(1..).filter_map(|(text, line)| {
        let text = text.split(";#").next().unwrap_or_default();
        let text = text.trim().trim_end_matches(';').trim_end();
        let mut words = text.splitn(3, char::is_whitespace);
        let (command, name) = (words.next()?, words.next()?);
        let rest = words.next().unwrap_or_default().trim();
        if !SETTING.contains(&command) {
            return None;
        }
        // `diset` names a dictionary first.
        let (name, value) = match command {
            "diset" | "giset" => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
            _ => (name, rest),
        };
        let value = value.trim().trim_matches(['"', '{', '}']);
        Some(Assignment { line, name, value })
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::units::Nanos;

    use super::*;
    use crate::conf::read;

    #[test]
    fn a_script_sets_sessions_and_time_and_names_everything_else() {
        let script = "#!/bin/tclsh\nputs \"SETTING CONFIGURATION\"\ndbset db pg\ndbset bm TPROC-C\n\
            diset connection pg_host db1\ndiset tpcc pg_superuserpass Tulip99x\n\
            diset tpcc pg_pass {Tulip99x}\ndiset tpcc pg_count_ware 10   ;# warehouses\n\
            diset tpcc pg_driver timed\ndiset tpcc pg_rampup 2\ndiset tpcc pg_duration 5\n\
            loadscript\nvuset vu 16\nvucreate\nvurun\n";
        let conf = read(script).unwrap();
        assert_eq!(conf.dialect, Dialect::HammerDb);
        assert_eq!((conf.wanted.sessions, conf.wanted.schemas), (Some(16), Some(1)));
        assert_eq!(conf.wanted.run_time_ns, Some(Nanos(300_000_000_000)));
        let told = conf.without_counterpart.join("\n");
        assert!(!told.contains("Tulip99x"), "{told}");
        for named in
            ["pg_host=db1", "pg_superuserpass=…", "pg_pass=…", "pg_count_ware=10 ", "pg_rampup=2"]
        {
            assert!(told.contains(named), "{named}: {told}");
        }
    }

    #[test]
    fn a_value_of_tcl_is_refused_only_where_it_counts() {
        let told = |script: &str| {
            read(script)
                .map(|conf| conf.without_counterpart.join("\n"))
                .map_err(|error| error.to_string())
        };
        let host =
            told("dbset db pg\ndiset connection pg_host $env(PGHOST)\nvuset vu 4\n").unwrap();
        assert!(host.contains("pg_host="), "{host}");
        let sessions = told("dbset db pg\nvuset vu $z\n").unwrap_err();
        assert!(sessions.contains("computed by a script"), "{sessions}");
        let queries = told("dbset db pg\ndbset bm TPC-H\n").unwrap();
        assert!(queries.starts_with("bm=TPC-H has no counterpart"), "{queries}");
    }
}
