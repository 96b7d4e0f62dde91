//! Growth of the bytes of one window on their way: written by a database, by its processes, by the
//! disks, by the devices to the media.

use blockstone_base::column::Unmeasured;
use blockstone_base::table::Measure::Ratio;
use blockstone_figures::{Interval, Known, Missing, ratio, sum};

use super::{ledger, nvme};
use crate::table::{Measure, Shape, Text, Value, View, text, unmerged};

pub const VIEW: View = View {
    name: "write-amplification",
    title: "Write amplification",
    doc: "The bytes that each layer writes in the same interval, from the database to the media, \
          and by how much each multiplies those of the layer before.",
    probe: BLOCK,
    shape: Shape::Table,
    columns: &[
        text("layer", "written by", "The layer."),
        // Devices are not read at every tick.
        unmerged("written_bytes_per_s", "written", Measure::BytesPerS, "Bytes per second."),
        unmerged(
            "amplification",
            "÷ before",
            Ratio,
            "Bytes for each that the layer before wrote: of the same disks, in the same time.",
        ),
        unmerged("amplification_all", "÷ first", Ratio, "Bytes for each of the first known layer."),
        unmerged("remark", "what it is", Text, "What is counted, or why it is unknown."),
    ],
    rows,
};

const BLOCK: &str = "block";

struct Layer {
    name: &'static str,
    per_s: Known,
    /// Bytes of this layer per byte of the layer before.
    grown: Known,
    remark: String,
    /// Whether it covers the same disks as the layer before.
    is_whole: bool,
}

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let mut layers = of_host(interval);
    layers.extend(of_devices(interval));
    let first = layers.iter().find_map(|layer| layer.per_s.ok()).ok_or(Missing::Nothing);
    let mut whole = true;
    let row = |layer: Layer| {
        whole &= layer.is_whole;
        let all = if whole { ratio(layer.per_s, first) } else { Err(Missing::Nothing) };
        vec![
            layer.name.into(),
            layer.per_s.into(),
            layer.grown.into(),
            all.into(),
            layer.remark.into(),
        ]
    };
    layers.into_iter().map(row).collect()
}

/// Returns the layers counted by the host. Bytes charged to processes are not among them: file
/// systems charge whole folios for pages of which they write one.
fn of_host(interval: &Interval<'_>) -> Vec<Layer> {
    let [claimed, asked] = ledger::written(interval);
    let disks = interval.disks();
    let moved = sum(disks.iter().map(|disk| interval.moved(BLOCK, disk, "write_bytes")));
    let per_s = |moved: Known| moved.map(|bytes| bytes / interval.seconds());
    let remark = |known: Known, counted: &str| match known {
        Ok(_) => counted.to_owned(),
        Err(Missing::Off) => "no database is watched (--db)".to_owned(),
        Err(missing) => missing.word().to_owned(),
    };
    let before = asked.or(claimed);
    let layer = |name, known: Known, grown, remark| Layer {
        name,
        per_s: per_s(known),
        grown,
        remark,
        is_whole: true,
    };
    let nothing = Err(Missing::Nothing);
    let named = format!("all disks ({}), for all processes", disks.join(", "));
    vec![
        layer("database", claimed, nothing, remark(claimed, "data and redo, as it reports")),
        layer("its processes", asked, ratio(asked, claimed), remark(asked, "their system calls")),
        layer("disks", moved, before.map_or(nothing, |before| ratio(moved, Ok(before))), named),
    ]
}

/// Returns the layers counted by `NVMe` devices themselves.
fn of_devices(interval: &Interval<'_>) -> Vec<Layer> {
    let devices = devices(interval);
    let names: Vec<&str> = devices.iter().map(|device| device.controller).collect();
    let disks = interval.disks();
    let is_covered = |disk: &&str| devices.iter().any(|device| device.disks.contains(disk));
    let is_whole = !devices.is_empty() && disks.iter().all(is_covered);
    let all = |of: &dyn Fn(&Device<'_>) -> Known| {
        if devices.is_empty() { Err(Missing::NotInVersion) } else { sum(devices.iter().map(of)) }
    };
    let block = all(&|device| device.block_per_s(interval));
    let host = all(&|device| nvme::per_s(interval, device.controller, "host_written_bytes"));
    let media = all(&|device| nvme::per_s(interval, device.controller, "media_written_bytes"));
    let remark = |known: Known, column: &str, counted: &str| match known {
        _ if devices.is_empty() => "no disk is an NVMe device".to_owned(),
        Ok(_) => format!("{}: {counted}", names.join(", ")),
        Err(missing) => why(interval, column, missing),
    };
    vec![
        Layer {
            name: "devices",
            per_s: host,
            grown: ratio(host, block),
            remark: remark(host, "host_written_bytes", "bytes of the host, as they count them"),
            is_whole,
        },
        Layer {
            name: "media",
            per_s: media,
            grown: ratio(media, host),
            remark: remark(media, "media_written_bytes", "all that they wrote to flash"),
            is_whole,
        },
    ]
}

/// A device: one controller and its watched disks.
struct Device<'a> {
    controller: &'a str,
    disks: Vec<&'a str>,
}

impl Device<'_> {
    /// Returns the write rate of its disks in the time between its readings.
    fn block_per_s(&self, interval: &Interval<'_>) -> Known {
        let interval = nvme::with_readings(interval, self.controller);
        sum(self.disks.iter().map(|disk| interval.per_s(BLOCK, disk, "write_bytes")))
    }
}

/// Returns the devices behind the watched disks. Of several controllers of one subsystem only the
/// first is used: no specification says whether each counts on its own.
fn devices<'a>(interval: &Interval<'a>) -> Vec<Device<'a>> {
    let mut subsystems: Vec<&str> = Vec::new();
    let mut devices = Vec::new();
    for controller in interval.objects(nvme::PROBE) {
        let text = |column| interval.text(nvme::PROBE, controller, column).unwrap_or_default();
        let its = |disk: &&str| text("disks").split(' ').any(|known| known == whole_disk(disk));
        let disks: Vec<&str> = interval.disks().into_iter().filter(its).collect();
        let subsystem = text("subsystem");
        if disks.is_empty() || !subsystem.is_empty() && subsystems.contains(&subsystem) {
            continue;
        }
        subsystems.push(subsystem);
        devices.push(Device { controller, disks });
    }
    devices
}

/// Returns the disk of a path: `nvme0n1` for `nvme0c1n1`, any other name unchanged.
fn whole_disk(name: &str) -> String {
    let parts = name.strip_prefix("nvme").and_then(|rest| {
        let (subsystem, path) = rest.split_once('c')?;
        let (_, namespace) = path.split_once('n')?;
        Some(format!("nvme{subsystem}n{namespace}"))
    });
    parts.unwrap_or_else(|| name.to_owned())
}

/// Returns the reason that a device counter is unknown.
fn why(interval: &Interval<'_>, column: &str, missing: Missing) -> String {
    match interval.reason(nvme::PROBE, column) {
        Some(
            Unmeasured::Off(why)
            | Unmeasured::NotInVersion(why)
            | Unmeasured::NotPermitted(why)
            | Unmeasured::NoEvidence(why),
        ) => why.clone(),
        None if missing == Missing::Nothing => "there are no two readings yet".to_owned(),
        None => missing.word().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_record::testing;

    use super::*;

    /// Ten seconds of a database that writes 100 bytes per second, and of these disks: the bytes
    /// that each wrote per second, and its device's counts of host and media writes.
    fn history(disks: &[(&str, i64, Option<[i64; 2]>)]) -> History {
        let state = |names| (Kind::State, names);
        let count = |names| (Kind::Counter, names);
        let mut history = History::new(vec![
            testing::probe("server", &[count("requested_write_bytes")]),
            testing::probe("role", &[count("write_bytes")]),
            testing::probe("instance", &[count("redo_written_bytes")]),
            testing::probe(BLOCK, &[count("write_bytes"), state("device_kind beneath")]),
            testing::probe(
                nvme::PROBE,
                &[
                    count("read_at_ns host_written_bytes media_written_bytes"),
                    state("subsystem disks"),
                ],
            ),
        ]);
        for tick in 0..=1 {
            let t_ns = tick * 10_000_000_000;
            let value = |per_s: i64| Cell::Value(tick * 10 * per_s);
            let text = |text: &str| Cell::Text(text.to_owned());
            let mut push = |probe: &str, object: &str, cells| {
                history.push(probe, t_ns as u64, object, cells);
            };
            push("server", "postgres", vec![value(150)]);
            push("role", "session", vec![value(60)]);
            push("instance", "", vec![value(40)]);
            for (disk, written, counted) in disks {
                push(BLOCK, disk, vec![value(*written), text("disk"), text("")]);
                let Some([host, media]) = counted else { continue };
                let media = if *media < 0 { Cell::Unmeasured } else { value(*media) };
                let states = ["nqn.a", &whole_disk(disk)].map(text);
                let mut cells = vec![Cell::Value(t_ns + 77), value(*host), media];
                cells.extend(states);
                push(nvme::PROBE, &format!("of {disk}"), cells);
            }
        }
        history
    }

    /// Layer by layer: bytes per second, per byte of the layer before, per byte of the first.
    fn table(history: &History) -> Vec<(String, [Value; 3], String)> {
        let rows = rows(&history.interval(0, 10_000_000_000));
        let word = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        let row = |row: Vec<Value>| {
            let numbers = [row[1].clone(), row[2].clone(), row[3].clone()];
            (word(&row[0]), numbers, word(&row[4]))
        };
        rows.into_iter().map(row).collect()
    }

    #[test]
    fn each_layer_is_compared_with_the_one_before() {
        let table = table(&history(&[("nvme0n1", 300, Some([303, 909]))]));
        let expected = [
            ("database", [Ok(100.0), Err(Missing::Nothing), Ok(1.0)]),
            ("its processes", [Ok(150.0), Ok(1.5), Ok(1.5)]),
            ("disks", [Ok(300.0), Ok(2.0), Ok(3.0)]),
            ("devices", [Ok(303.0), Ok(1.01), Ok(3.03)]),
            ("media", [Ok(909.0), Ok(3.0), Ok(9.09)]),
        ];
        for ((layer, numbers, remark), (name, figures)) in table.iter().zip(expected) {
            assert_eq!((layer.as_str(), numbers), (name, &figures.map(Value::from)), "{remark}");
        }
        assert_eq!(table[2].2, "all disks (nvme0n1), for all processes");
    }

    #[test]
    fn devices_are_compared_with_their_own_disks_only() {
        let disks = [("vda", 700, None), ("nvme0c1n1", 300, Some([600, 900]))];
        let table = table(&history(&disks));
        let nothing = Value::Missing(Missing::Nothing);
        assert_eq!(table[2].1[0], Value::Number(1000.0));
        assert_eq!(table[3].1, [600.0.into(), 2.0.into(), nothing.clone()]);
        assert_eq!(table[4].1, [900.0.into(), 1.5.into(), nothing]);
    }

    #[test]
    fn what_is_unknown_says_why() {
        let mut refused = history(&[("nvme0n1", 300, Some([300, -1]))]);
        let why = Unmeasured::NotInVersion("refused".to_owned());
        refused.unmeasured(nvme::PROBE, "media_written_bytes", &why);
        let media = &table(&refused)[4];
        assert_eq!(media.1[0], Value::Missing(Missing::NotInVersion));
        assert_eq!(media.2, "refused");
        let without = table(&history(&[("vda", 300, None)]));
        assert_eq!(without[4].2, "no disk is an NVMe device");
        assert_eq!(without[3].1[0], Value::Missing(Missing::NotInVersion));
        let none = History::new(vec![testing::probe(BLOCK, &[(Kind::Counter, "write_bytes")])]);
        assert_eq!(table(&none)[0].2, "no database is watched (--db)");
    }
}
