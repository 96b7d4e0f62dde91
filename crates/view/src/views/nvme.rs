//! `NVMe` controllers: wear, health, and their counts of bytes of the host and of their media.

use blockstone_base::table::Measure::Ratio;
use blockstone_figures::{Interval, Known, ratio};

use crate::table::{
    Bytes, Count, Heading, Measure, Shape, Share, Text, Value, View, derived, level, text, unmerged,
};

pub const VIEW: View = View {
    name: "nvme",
    title: "NVMe",
    doc: "NVMe controllers, as they count themselves: wear, health, bytes of the host and of the \
          media. Rates are those between the last two readings, which are ten seconds apart, or \
          more.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("controller", "controller", "Kernel name of the controller."),
        level("used_share", "used", Share, "Life used, as the vendor estimates; may pass 100 %."),
        level("available_spare_share", "spare", Share, "Spare capacity that is left."),
        level("critical_warning", "warning", Text, "What the device warns of."),
        level("temperature_celsius", "°C", Count, "Temperature in degrees Celsius."),
        rate("host_written_bytes_per_s", "host w", "Bytes that the host wrote."),
        rate("media_written_bytes_per_s", "media w", "Bytes written to the media (OCP log)."),
        unmerged(
            "write_amplification",
            "media ÷ host",
            Ratio,
            "Bytes written to the media for each that the host wrote.",
        ),
        rate("host_read_bytes_per_s", "host r", "Bytes that the host read."),
        level("host_written_bytes", "host w ever", Bytes, "Bytes that the host ever wrote."),
        level("media_written_bytes", "media w ever", Bytes, "Bytes ever written to the media."),
        level(
            "write_amplification_ever",
            "media ÷ host ever",
            Ratio,
            "Bytes written to the media for each that the host wrote, in the life of the device.",
        ),
        level("spare_threshold_share", "spare min", Share, "Spare below which the device warns."),
        level("media_errors", "media errors", Count, "Data that could not be read or verified."),
        level("unsafe_shutdowns", "power losses", Count, "Losses of power without notice."),
        level("power_on_hours", "hours on", Count, "Hours it was on."),
        level("disks", "disks", Text, "Its block devices."),
        level("model", "model", Text, "What the device calls itself."),
    ],
    rows,
};

pub(super) const PROBE: &str = "nvme";
/// 0 °C in kelvin, rounded as other tools do.
const KELVIN: f64 = 273.0;
/// A span that contains two readings.
const TWO_READINGS_NS: u64 = 25_000_000_000;

const fn rate(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    unmerged(key, heading, Measure::BytesPerS, doc)
}

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |name| VIEW.columns.iter().map(|heading| cell(interval, name, heading)).collect();
    interval.objects(PROBE).into_iter().map(row).collect()
}

fn cell(interval: &Interval<'_>, name: &str, heading: &Heading) -> Value {
    let stood = |column| interval.stood(PROBE, name, column);
    let written = |of: &str| per_s(interval, name, &format!("{of}_written_bytes"));
    match &*heading.key {
        "controller" => name.into(),
        "temperature_celsius" => {
            let kelvin = interval.level(PROBE, name, "temperature_kelvin");
            Value::from(kelvin.map(|kelvin| kelvin - KELVIN))
        }
        "write_amplification" => ratio(written("media"), written("host")).into(),
        "write_amplification_ever" => {
            ratio(stood("media_written_bytes"), stood("host_written_bytes")).into()
        }
        key @ ("host_written_bytes" | "media_written_bytes") => stood(key).into(),
        key => match (key.strip_suffix("_per_s"), key.strip_suffix("_share")) {
            (Some(column), _) => per_s(interval, name, column).into(),
            (_, Some(share)) => {
                let ppm = interval.level(PROBE, name, &format!("{share}_ppm"));
                Value::from(ppm.map(|ppm| ppm / 1e6))
            }
            _ => derived(interval, PROBE, &[name], heading),
        },
    }
}

/// Returns the rate of a counter of a controller, from one reading to another.
pub(super) fn per_s(interval: &Interval<'_>, name: &str, column: &str) -> Known {
    let interval = with_readings(interval, name);
    let ns = interval.moved(PROBE, name, "read_at_ns");
    ratio(interval.moved(PROBE, name, column), ns.map(|ns| ns / 1e9))
}

/// Returns the interval, or a longer one with the same end if no reading fell into it.
pub(super) fn with_readings<'a>(interval: &Interval<'a>, name: &str) -> Interval<'a> {
    if interval.moved(PROBE, name, "read_at_ns").is_ok_and(|ns| ns > 0.0) {
        return *interval;
    }
    let from_ns = interval.to_ns.saturating_sub(TWO_READINGS_NS).min(interval.from_ns);
    interval.history().interval(from_ns, interval.to_ns)
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::{History, Missing};
    use blockstone_record::testing;

    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    /// One tick per second; a reading every ten, of a device that writes 3 for each 2 of the host.
    fn history() -> History {
        let counters = "read_at_ns host_read_bytes host_written_bytes media_written_bytes";
        let levels = "temperature_kelvin used_ppm";
        let mut history = History::new(vec![testing::probe(
            PROBE,
            &[(Kind::Counter, counters), (Kind::Gauge, levels), (Kind::State, "disks")],
        )]);
        for tick in 0..31 {
            let read = tick / 10 * 10;
            let cells = [read * SECOND_NS, 7 * read, 4000 + 200 * read, 9000 + 300 * read, 311, 1];
            let mut cells: Vec<Cell> = cells.map(Cell::Value).into();
            cells.push(Cell::Text("nvme0n1".into()));
            history.push(PROBE, (tick * SECOND_NS) as u64, "nvme0", cells);
        }
        history
    }

    #[test]
    fn rates_are_those_between_readings_whatever_the_interval() {
        let history = history();
        let at = |from: u64, to: u64| {
            let row = rows(&history.interval(from * 1_000_000_000, to * 1_000_000_000)).remove(0);
            move |key| row[VIEW.column(key).unwrap()].clone()
        };
        for (from, to) in [(0, 30), (19, 20), (24, 25), (3, 29)] {
            let of = at(from, to);
            let number = |key| of(key).number().unwrap();
            assert!((number("host_written_bytes_per_s") - 200.0).abs() < 1e-9, "{from} {to}");
            assert!((number("write_amplification") - 1.5).abs() < 1e-9, "{from} {to}");
        }
        let of = at(24, 25);
        assert_eq!(of("host_written_bytes"), Value::Number(8000.0));
        assert_eq!(of("write_amplification_ever"), Value::Number(15_000.0 / 8000.0));
        assert_eq!(of("temperature_celsius"), Value::Number(38.0));
        assert_eq!(of("available_spare_share"), Value::Missing(Missing::NotInVersion));
        assert_eq!(at(5, 6)("host_written_bytes_per_s"), Value::Missing(Missing::Nothing));
    }
}
