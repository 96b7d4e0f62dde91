//! Dirty memory: its size, and how near it is to the limit at which the kernel throttles writers.

use blockstone_figures::{Interval, Known, Missing, ratio, sum};

use crate::table::{Bytes, Heading, Nanoseconds, Shape, Share, Value, View, count, derived, level};

pub const VIEW: View = View {
    name: "dirty-memory",
    title: "Dirty memory",
    doc: "Memory waiting to be written to storage, the limits that the kernel keeps it within, and \
          the settings behind them.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        level("dirty_bytes", "dirty", Bytes, "Memory waiting to be written to storage."),
        level("writeback_bytes", "writeback", Bytes, "Memory being written to storage."),
        level(
            "dirty_background_limit_bytes",
            "background limit",
            Bytes,
            "Amount of dirty memory above which the kernel writes it in the background.",
        ),
        level("background_share", "of background", Share, "Dirty memory as a share of that."),
        level(
            "throttle_bytes",
            "throttled from",
            Bytes,
            "Dirty memory and writeback above which writers are slowed down: halfway between \
             the two limits.",
        ),
        level(
            "dirty_limit_bytes",
            "limit",
            Bytes,
            "Limit on dirty memory and writeback; writers are slowed down to stay below it.",
        ),
        level("dirty_limit_share", "of limit", Share, "Dirty memory and writeback, as a share."),
        count("dirtied_pages_per_s", "dirtied/s", "Pages made dirty per second."),
        count("written_pages_per_s", "written/s", "Dirty pages written per second."),
        level(
            "dirty_ratio_share",
            "dirty_ratio",
            Share,
            "The limit as a share of available memory; empty if bytes are set instead.",
        ),
        level(
            "dirty_background_ratio_share",
            "background ratio",
            Share,
            "The background limit as a share of available memory; empty if bytes are set instead.",
        ),
        level(
            "dirty_fixed_bytes",
            "dirty_bytes",
            Bytes,
            "The limit as bytes; empty if a ratio is set instead.",
        ),
        level(
            "dirty_background_fixed_bytes",
            "background bytes",
            Bytes,
            "The background limit as bytes; empty if a ratio is set instead.",
        ),
        level(
            "dirty_expire_ns",
            "written after",
            Nanoseconds,
            "Age at which dirty memory is written, however little there is.",
        ),
        level(
            "dirty_writeback_ns",
            "looked for every",
            Nanoseconds,
            "Interval at which the kernel looks for dirty memory of that age.",
        ),
    ],
    rows,
};

const PROBE: &str = "memory";
const HOST: &str = "host";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let limit = |column: &str| interval.level(PROBE, "", column);
    let dirty = interval.level(HOST, "", "dirty_bytes");
    let background = limit("dirty_background_limit_bytes");
    // Of the two settings, the one that is not in effect is zero.
    let set = |known: Known| match known {
        Ok(0.0) => Err(Missing::Nothing),
        known => known,
    };
    let share = |column: &str| Ok(limit(column)? / 1e6);
    let cell = |heading: &Heading| match &*heading.key {
        "dirty_bytes" => dirty.into(),
        "writeback_bytes" => interval.level(HOST, "", "writeback_bytes").into(),
        "background_share" => ratio(dirty, background).into(),
        "throttle_bytes" => {
            Value::from(sum([background, limit("dirty_limit_bytes")]).map(|both| both / 2.0))
        }
        "dirty_limit_share" => share_of_limit(interval).into(),
        "dirty_ratio_share" => set(share("dirty_ratio_ppm")).into(),
        "dirty_background_ratio_share" => set(share("dirty_background_ratio_ppm")).into(),
        key @ ("dirty_fixed_bytes" | "dirty_background_fixed_bytes" | "dirty_writeback_ns") => {
            set(limit(key)).into()
        }
        _ => derived(interval, PROBE, &[""], heading),
    };
    vec![VIEW.columns.iter().map(cell).collect()]
}

/// Returns dirty memory and writeback as a share of the limit for writers.
pub(super) fn share_of_limit(interval: &Interval<'_>) -> Known {
    if !interval.has(PROBE) {
        return Err(Missing::Off);
    }
    let both = ["dirty_bytes", "writeback_bytes"].map(|it| interval.level(HOST, "", it));
    ratio(sum(both), interval.level(PROBE, "", "dirty_limit_bytes"))
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_record::testing;

    use super::*;

    #[test]
    fn shares_are_of_the_limit_that_counts() {
        let gauges = |names: &'static str| [(Kind::Gauge, names)];
        let host = testing::probe(HOST, &gauges("dirty_bytes writeback_bytes"));
        let limits = "dirty_background_limit_bytes dirty_limit_bytes dirty_ratio_ppm \
                      dirty_background_ratio_ppm dirty_fixed_bytes";
        let memory = testing::probe(PROBE, &gauges(limits));
        let mut history = History::new(vec![host, memory]);
        history.push(HOST, 1, "", [30, 20].map(Cell::Value).into());
        history.push(PROBE, 1, "", [60, 200, 0, 100_000, 200].map(Cell::Value).into());
        let row = &rows(&history.interval(0, 1))[0];
        let of = |key| row[VIEW.column(key).unwrap()].clone();
        assert_eq!(of("background_share"), Value::Number(0.5));
        assert_eq!(of("throttle_bytes"), Value::Number(130.0));
        assert_eq!(of("dirty_limit_share"), Value::Number(0.25));
        assert_eq!(of("dirty_ratio_share"), Value::Missing(Missing::Nothing));
        assert_eq!(of("dirty_background_ratio_share"), Value::Number(0.1));
        assert_eq!(of("dirty_fixed_bytes"), Value::Number(200.0));
        assert_eq!(of("dirty_background_fixed_bytes"), Value::Missing(Missing::NotInVersion));
    }
}
