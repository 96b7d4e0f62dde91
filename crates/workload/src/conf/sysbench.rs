//! Options of sysbench, from a file of `name=value` or from a command line.

use super::{Assignment, Conf, ConfError, Dialect, NO_LOGIN, NO_SERVER, Reason, unquoted};
use crate::wanted::Wanted;

/// Options that only sysbench has.
const OWN: [&str; 12] = [
    "table-size",
    "table_size",
    "oltp-table-size",
    "oltp-tables-count",
    "db-driver",
    "mysql-host",
    "mysql-user",
    "mysql-db",
    "pgsql-host",
    "pgsql-user",
    "rand-type",
    "report-interval",
];

const REASONS: [(&[&str], Reason); 9] = [
    (
        &["tables", "table-size", "table_size", "oltp-table-size", "oltp-tables-count"],
        Reason::Open("a row here fills a block; --scale sets the size"),
    ),
    (
        &["rate", "tx-rate"],
        Reason::Open("its transactions have many statements; --rate sets operations a second"),
    ),
    (&["events", "max-requests"], Reason::Open("--loops ends a run after so many operations")),
    (&["warmup-time"], Reason::Open("a warm-up of at most half the window comes before it")),
    (
        &["rand-type", "rand-seed"],
        Reason::Open("rows are drawn uniformly; --seed and --hotspot set the draw"),
    ),
    (
        &["report-interval", "percentile", "histogram", "verbosity", "thread-init-timeout"],
        Reason::Open("the recording has every second and the whole distribution"),
    ),
    (
        &[
            "range-size",
            "point-selects",
            "simple-ranges",
            "sum-ranges",
            "order-ranges",
            "distinct-ranges",
            "index-updates",
            "non-index-updates",
            "delete-inserts",
            "range-selects",
            "skip-trx",
            "skip_trx",
            "auto-inc",
            "auto_inc",
            "secondary",
            "create-secondary",
            "reconnect",
            "db-ps-mode",
        ],
        Reason::Open("its statements are its own; --update-pct and --work-unit set those here"),
    ),
    (
        &[
            "db-driver",
            "mysql-host",
            "mysql-port",
            "mysql-socket",
            "mysql-db",
            "mysql-ssl",
            "mysql-storage-engine",
            "pgsql-host",
            "pgsql-port",
            "pgsql-db",
            "pgsql-sslmode",
        ],
        Reason::Address(NO_SERVER),
    ),
    (&["mysql-user", "pgsql-user"], Reason::Address(NO_LOGIN)),
];

pub fn is_options(text: &str) -> bool {
    words(text).any(|(_, word)| {
        let program = word.rsplit('/').next().unwrap_or_default();
        let name = word.trim_start_matches("--").split('=').next().unwrap_or_default();
        program == "sysbench" || word.contains('=') && OWN.contains(&name)
    })
}

pub fn read(text: &str) -> Result<Conf, ConfError> {
    let mut wanted = Wanted::default();
    let mut without = Vec::new();
    for (line, word) in words(text) {
        let Some((name, value)) = word.trim_start_matches("--").split_once('=') else {
            of_test(word, &mut wanted);
            continue;
        };
        let setting = Assignment { line, name, value: unquoted(value) };
        match name {
            "threads" | "num-threads" => {
                wanted.schemas = Some(1);
                wanted.sessions = Some(setting.number(u32::MAX)?);
            }
            // No time at all stands for no end.
            "time" | "max-time" => {
                wanted.run_time_ns = Some(setting.seconds()?).filter(|time| time.get() > 0);
            }
            "test" => of_test(setting.value, &mut wanted),
            _ => {
                let known = REASONS.iter().find(|(names, _)| names.contains(&name));
                let unknown = Reason::Secret("it is not a known option of sysbench");
                let reason = known.map_or(unknown, |(_, reason)| *reason);
                without.extend(setting.without_counterpart(reason));
            }
        }
    }
    Ok(Conf { dialect: Dialect::Sysbench, wanted, without_counterpart: without })
}

/// Takes what a test does to rows where it is what sessions do here.
fn of_test(word: &str, wanted: &mut Wanted) {
    let script = word.rsplit('/').next().unwrap_or_default();
    let (update_pct, work_unit) = match script.strip_suffix(".lua").unwrap_or(script) {
        "oltp_point_select" | "select" => (0, Some(1)),
        "oltp_read_only" => (0, None),
        "oltp_update_index" | "oltp_update_non_index" | "update_index" | "update_non_index" => {
            (100, Some(1))
        }
        "oltp_write_only" => (100, None),
        _ => return,
    };
    wanted.update_pct = Some(update_pct);
    wanted.work_unit = work_unit;
}

/// Returns the words of the text, each with the number of its line. A value in quotes is one word.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().zip(1..).flat_map(|(text, line)| {
        let text = text.trim();
        let text = if text.starts_with('#') { "" } else { text };
        split(text).filter(|word| *word != "\\").map(move |word| (line, word))
    })
}

/// Splits a line at blanks outside of quotes.
fn split(mut rest: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let mut quote = None;
        let end = rest.char_indices().find(|(_, c)| match (quote, c) {
            (Some(open), c) => {
                quote = quote.filter(|_| open != *c);
                false
            }
            (None, '"' | '\'') => {
                quote = Some(*c);
                false
            }
            (None, c) => c.is_whitespace(),
        });
        let (word, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::units::Nanos;

    use super::*;
    use crate::conf::read;

    #[test]
    fn a_command_line_and_a_file_set_the_same() {
        let line = "sysbench /usr/share/sysbench/oltp_point_select.lua --threads=16 \\\n  \
            --time=60 --mysql-host=db1 --mysql-password='Tulip 99x' --tables=8 \
            --table-size=1000000 run\n";
        let file = "# of the test\ntest=oltp_point_select\nthreads=16\ntime=60\nmysql-host=db1\n\
            mysql-password=Tulip 99x\ntables=8\ntable-size=1000000\n";
        for text in [line, file] {
            let conf = read(text).unwrap();
            assert_eq!(conf.dialect, Dialect::Sysbench);
            let wanted = Wanted {
                schemas: Some(1),
                sessions: Some(16),
                run_time_ns: Some(Nanos(60_000_000_000)),
                update_pct: Some(0),
                work_unit: Some(1),
                ..Wanted::default()
            };
            assert_eq!(conf.wanted, wanted, "{text}");
            let told = conf.without_counterpart.join("\n");
            assert!(!told.contains("Tulip") && !told.contains("99x"), "{told}");
            assert!(told.contains("mysql-password=… has no counterpart"), "{told}");
            assert!(told.contains("table-size=1000000 has no counterpart"), "{told}");
        }
    }

    #[test]
    fn a_run_without_end_keeps_the_window_of_here() {
        let conf = read("sysbench oltp_read_write --threads=4 --time=0 run").unwrap();
        assert_eq!((conf.wanted.run_time_ns, conf.wanted.update_pct), (None, None));
        let error = read("sysbench oltp_read_write --threads=$T run").unwrap_err().to_string();
        assert!(error.contains("computed by a script"), "{error}");
    }
}
