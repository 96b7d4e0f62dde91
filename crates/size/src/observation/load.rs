//! Observations from statistics kept by the databases themselves.

use blockstone_base::database::LOAD;
use blockstone_figures::{History, Sample};

use super::{CLASSES, Levels, Most, Observation};

const NS: f64 = 1e9;

/// Returns every interval between two snapshots of an instance, ordered by instance and time. An
/// interval of a cluster that is also known by instance is left out: it would count twice.
pub fn observations(history: &History) -> Vec<Observation> {
    let rows: Vec<Sample<'_>> = history.rows(LOAD.probe).collect();
    let pairs = rows.windows(2).filter(|pair| pair[0].object == pair[1].object);
    let all: Vec<_> = pairs.filter_map(|pair| observation(history, &pair[0], &pair[1])).collect();
    let twice = |whole: &Observation| {
        let overlaps = |part: &Observation| {
            part.database == whole.database
                && !part.instance.is_empty()
                && part.begin_s < whole.end_s() - 1.0
                && whole.begin_s < part.end_s() - 1.0
        };
        whole.instance.is_empty() && all.iter().any(overlaps)
    };
    all.iter().filter(|it| !twice(it)).cloned().collect()
}

fn observation(history: &History, from: &Sample, to: &Sample) -> Option<Observation> {
    let elapsed_s = grown(from, to, "elapsed_ns")? / NS;
    if elapsed_s <= 0.0 {
        return None;
    }
    let rate = |column| Some(grown(from, to, column)? / elapsed_s);
    let level = |column| to.number(column);
    let (database, instance) = to.object.rsplit_once('/').unwrap_or((to.object, "*"));
    let cores = |column| Some(rate(column)? / NS);
    let averaging_s = level("most_averaging_ns").map(|ns| ns / NS).filter(|s| *s > 0.0);
    let most = averaging_s.map(|averaging_s| {
        let rate = |column| level(column).map(|count| count / averaging_s);
        Most {
            averaging_s,
            reads_per_s: rate("most_read_ios"),
            writes_per_s: rate("most_write_ios"),
            read_bytes_per_s: rate("most_read_bytes"),
            write_bytes_per_s: rate("most_write_bytes"),
            redo_bytes_per_s: rate("most_redo_bytes"),
        }
    });
    let memory = [level("shared_memory_bytes"), level("private_memory_bytes")];
    Some(Observation {
        database: database.to_owned(),
        instance: if instance == "*" { String::new() } else { instance.to_owned() },
        begin_s: history.local_s(to.t_ns)? - elapsed_s,
        seconds: elapsed_s,
        reads_per_s: rate("read_ios"),
        writes_per_s: rate("write_ios"),
        read_bytes_per_s: rate("read_bytes"),
        write_bytes_per_s: rate("write_bytes"),
        redo_bytes_per_s: rate("redo_bytes"),
        redo_writes_per_s: rate("redo_writes"),
        commits_per_s: rate("commits"),
        class_ios_per_s: CLASSES.map(rate),
        // Old releases do not count background processes separately.
        database_cores: cores("cpu_ns").map(|it| it + cores("background_cpu_ns").unwrap_or(0.0)),
        busy_processors: cores("host_busy_ns"),
        most,
        levels: Levels {
            size_bytes: level("size_bytes"),
            memory_bytes: memory.iter().copied().sum(),
            sessions: level("sessions"),
            cores: level("cores"),
            processors: level("processors"),
        },
        ticks_ns: (from.t_ns, to.t_ns),
        ..Observation::default()
    })
}

/// Returns the growth of a counter; `None` if it is empty or was reset.
fn grown(from: &Sample, to: &Sample, column: &str) -> Option<f64> {
    Some(to.number(column)? - from.number(column)?).filter(|by| *by >= 0.0)
}
