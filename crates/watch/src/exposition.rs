//! The last tick as `OpenMetrics`: raw counters and gauges, from which Prometheus derives rates.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use blockstone_base::column::{Cell, Kind, Unit};
use blockstone_probe::io::bucket_start_ns;
use blockstone_record::manifest::{ColumnInfo, ProbeInfo};
use blockstone_view::History;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Longer texts, such as statements, are not used as labels.
const LABEL_BYTES: usize = 80;
/// Columns whose texts may be paths of files, of any probe.
const PATH_COLUMNS: &[&str] = &["file", "beneath"];
/// Separator of the texts that make up the object of a row.
const BETWEEN: &str = " | ";

/// Whether metrics contain paths of files. They may be in directories that a reader of the metrics
/// may not look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    Shown,
    /// Rows that differ only in their file are summed.
    Hidden,
}

#[derive(Debug, Default)]
pub struct Snapshot {
    host: String,
    probes: Vec<ProbeSnapshot>,
}

#[derive(Debug)]
struct ProbeSnapshot {
    info: ProbeInfo,
    rows: Vec<SnapshotRow>,
}

#[derive(Debug)]
struct SnapshotRow {
    /// The database of the row; `None` if only one is watched.
    instance: Option<String>,
    object: String,
    cells: Vec<Cell>,
}

impl Snapshot {
    /// Returns the last tick of a history, on this host, without the `sampled` probes.
    pub fn last(history: &History, host: &str, sampled: &[&str], paths: Paths) -> Self {
        let mut probes: Vec<ProbeSnapshot> = Vec::new();
        for info in history.probes().filter(|info| !sampled.contains(&info.kind())) {
            let instance = || info.instance().map(str::to_owned);
            let rows = history.last_rows(&info.probe).into_iter().map(|(object, cells)| {
                let (object, cells) = (object.to_owned(), cells.to_vec());
                SnapshotRow { instance: instance(), object, cells }
            });
            let kind = info.kind().to_owned();
            // All instances are in one family of metrics.
            match probes.iter_mut().find(|known| known.info.probe == kind) {
                Some(known) if known.info.columns.len() == info.columns.len() => {
                    known.rows.extend(rows);
                }
                _ => probes.push(ProbeSnapshot {
                    info: ProbeInfo { probe: kind, ..info.clone() },
                    rows: rows.collect(),
                }),
            }
        }
        if paths == Paths::Hidden {
            probes = probes.into_iter().map(ProbeSnapshot::without_paths).collect();
        }
        Self { host: host.to_owned(), probes }
    }
}

impl ProbeSnapshot {
    /// Removes the columns with paths, and paths from the objects, and sums the rows that are equal
    /// otherwise. The sums rise as their parts do: what was counted for a file is never forgotten.
    fn without_paths(self) -> Self {
        let Self { mut info, rows } = self;
        let is_kept: Vec<bool> =
            info.columns.iter().map(|it| !PATH_COLUMNS.contains(&it.name.as_str())).collect();
        let mut kept = is_kept.iter();
        info.columns.retain(|_| *kept.next().unwrap_or(&true));
        let mut sums = BTreeMap::<(Option<String>, String, String), Vec<Cell>>::new();
        for SnapshotRow { instance, object, mut cells } in rows {
            let is_made_of_texts = object == joined(&cells);
            let mut kept = is_kept.iter();
            cells.retain(|_| *kept.next().unwrap_or(&true));
            let texts = joined(&cells);
            let object = if is_made_of_texts { texts.clone() } else { without_path(&object) };
            match sums.entry((instance, object, texts)) {
                Entry::Vacant(entry) => {
                    entry.insert(cells);
                }
                Entry::Occupied(mut entry) => {
                    entry.get_mut().iter_mut().zip(&cells).for_each(|(sum, cell)| add(sum, cell));
                }
            }
        }
        let row = |((instance, object, _), cells)| SnapshotRow { instance, object, cells };
        Self { info, rows: sums.into_iter().map(row).collect() }
    }
}

/// Returns an object without those of its parts that are paths.
fn without_path(object: &str) -> String {
    let parts = object.split(BETWEEN).filter(|part| !part.starts_with('/'));
    parts.collect::<Vec<_>>().join(BETWEEN)
}

fn joined(cells: &[Cell]) -> String {
    let texts = cells.iter().filter_map(|cell| match cell {
        Cell::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(BETWEEN)
}

fn add(sum: &mut Cell, cell: &Cell) {
    match (&mut *sum, cell) {
        (Cell::Value(sum), Cell::Value(value)) => *sum = sum.saturating_add(*value),
        (Cell::Unmeasured, Cell::Value(_)) => *sum = cell.clone(),
        _ => {}
    }
}

/// Encodes the answer to a scrape.
pub fn text(snapshot: Arc<Snapshot>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Rows(snapshot)));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Rows(Arc<Snapshot>);

impl Collector for Rows {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for ProbeSnapshot { info, rows } in &self.0.probes {
            for (index, column) in info.columns.iter().enumerate() {
                if column.kind != Kind::State && bucket_start_ns(&column.name).is_none() {
                    family(&mut encoder, &self.0.host, info, index, rows)?;
                }
            }
            latencies(&mut encoder, &self.0.host, info, rows)?;
        }
        Ok(())
    }
}

/// Upper bounds of the buckets of a latency, closest together where limits of databases lie. All
/// that a recording has would be 100 lines a row.
const BOUNDS_NS: [u64; 9] =
    [1 << 17, 1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 26, 1 << 30];

/// Encodes the columns that count I/Os by their latency as a histogram.
fn latencies(
    encoder: &mut DescriptorEncoder<'_>,
    host: &str,
    info: &ProbeInfo,
    rows: &[SnapshotRow],
) -> Result<(), fmt::Error> {
    let columns = info.columns.iter().enumerate();
    let starts: Vec<(usize, u64)> =
        columns.filter_map(|(at, column)| Some((at, bucket_start_ns(&column.name)?))).collect();
    let elapsed = info.columns.iter().position(|column| column.name == "elapsed_ns");
    let Some(elapsed) = elapsed.filter(|_| !starts.is_empty()) else { return Ok(()) };
    let value = |row: &SnapshotRow, at: usize| match row.cells.get(at) {
        Some(Cell::Value(value)) => u64::try_from(*value).ok(),
        _ => None,
    };
    let name = format!("blockstone_{}_latency_seconds", info.probe);
    let help = "I/Os by the time they took";
    let mut metric = encoder.encode_descriptor(&name, help, None, MetricType::Histogram)?;
    for row in rows {
        let counts = starts.iter().map(|&(at, start_ns)| Some((start_ns, value(row, at)?)));
        let Some(counts) = counts.collect::<Option<Vec<_>>>() else { continue };
        let Some(elapsed_ns) = value(row, elapsed) else { continue };
        let mut buckets = BOUNDS_NS.map(|bound_ns| (bound_ns as f64 / 1e9, 0)).to_vec();
        buckets.push((f64::INFINITY, 0));
        for &(start_ns, count) in &counts {
            buckets[BOUNDS_NS.partition_point(|bound_ns| *bound_ns <= start_ns)].1 += count;
        }
        let all = counts.iter().map(|(_, count)| count).sum();
        let labels = labels(host, info, row);
        let mut sample = metric.encode_family(&labels)?;
        sample.encode_histogram::<[(&str, &str); 0]>(
            elapsed_ns as f64 / 1e9,
            all,
            &buckets,
            None,
        )?;
    }
    Ok(())
}

/// Encodes all rows of one column. A cell that was not measured is left out: it is not zero.
fn family(
    encoder: &mut DescriptorEncoder<'_>,
    host: &str,
    info: &ProbeInfo,
    index: usize,
    rows: &[SnapshotRow],
) -> Result<(), fmt::Error> {
    let column = &info.columns[index];
    let measured: Vec<(&SnapshotRow, i64)> = rows
        .iter()
        .filter_map(|row| match row.cells.get(index) {
            Some(Cell::Value(value)) => Some((row, *value)),
            _ => None,
        })
        .collect();
    if measured.is_empty() {
        return Ok(());
    }
    let kind = match column.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge | Kind::State => MetricType::Gauge,
    };
    let name = name(&info.probe, column);
    let help = column.doc.trim_end_matches('.');
    let mut metric = encoder.encode_descriptor(&name, help, None, kind)?;
    for (row, value) in measured {
        let labels = labels(host, info, row);
        let sample = metric.encode_family(&labels)?;
        let value =
            if column.unit == Unit::Nanoseconds { value as f64 / 1e9 } else { value as f64 };
        match column.kind {
            Kind::Counter => ConstCounter::new(value).encode(sample)?,
            Kind::Gauge | Kind::State => ConstGauge::new(value).encode(sample)?,
        }
    }
    Ok(())
}

/// Returns a name like `blockstone_block_read_bytes`; times are in seconds, as is usual for
/// Prometheus.
fn name(probe: &str, column: &ColumnInfo) -> String {
    let name = match (column.unit, column.name.strip_suffix("_ns")) {
        (Unit::Nanoseconds, Some(stem)) => format!("{stem}_seconds"),
        _ => column.name.clone(),
    };
    format!("blockstone_{probe}_{name}")
}

fn labels(host: &str, info: &ProbeInfo, row: &SnapshotRow) -> Vec<(String, String)> {
    let mut labels = vec![("host".to_owned(), host.to_owned())];
    // Prometheus itself sets `instance`, to the target of the scrape.
    labels.extend(row.instance.iter().map(|name| ("server".to_owned(), name.clone())));
    // Texts that make up the object are labels of their own.
    if !row.object.is_empty() && row.object != joined(&row.cells) {
        labels.push((object_label(&info.probe).to_owned(), row.object.clone()));
    }
    for (column, cell) in info.columns.iter().zip(&row.cells) {
        if let Cell::Text(text) = cell
            && !text.is_empty()
            && text.len() <= LABEL_BYTES
        {
            labels.push((column.name.clone(), text.clone()));
        }
    }
    labels
}

/// Returns the label of a row's object, as dashboards of other exporters have it.
fn object_label(probe: &str) -> &'static str {
    match probe {
        "block" | "disk" | "nvme" | "network" => "device",
        "cpu" => "cpu",
        _ => "object",
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Column, Schema};

    use super::*;

    const fn column(name: &'static str, unit: Unit, kind: Kind) -> Column {
        Column { name, unit, kind, source: "a test", doc: "What it means." }
    }

    const DISK: Schema = Schema {
        probe: "host",
        doc: "A probe.",
        columns: &[
            column("read_ns", Unit::Nanoseconds, Kind::Counter),
            column("in_flight", Unit::Count, Kind::Gauge),
            column("device_kind", Unit::Text, Kind::State),
        ],
    };

    #[test]
    fn times_are_seconds_counters_are_totals_and_what_is_unmeasured_is_not_there() {
        let mut history = History::new(vec![ProbeInfo::of(&DISK)]);
        let row = |ns, level| vec![Cell::Value(ns), level, Cell::Text("di\"sk".to_owned())];
        history.push("host", 1, "vda", row(2_500_000_000, Cell::Unmeasured));
        let text = text(Arc::new(Snapshot::last(&history, "db1", &[], Paths::Hidden))).unwrap();
        let labels = r#"host="db1",object="vda",device_kind="di\"sk""#;
        let wanted = format!("blockstone_host_read_seconds_total{{{labels}}} 2.5\n");
        assert!(text.contains(&wanted), "{text}");
        assert!(!text.contains("in_flight") && text.ends_with("# EOF\n"), "{text}");
        assert!(text.contains("# TYPE blockstone_host_read_seconds counter"), "{text}");
        let none = Snapshot::last(&history, "db1", &["host"], Paths::Hidden);
        assert!(!super::text(Arc::new(none)).unwrap().contains("read"));
    }

    #[test]
    fn several_databases_are_one_family_told_apart_by_a_label() {
        let names = ["postgres@5432", "postgres@5433"];
        let mut history =
            History::new(names.map(|name| ProbeInfo::of_instance(&DISK, name)).to_vec());
        history.push("host", 1, "", Vec::new());
        history.push(
            "host@postgres@5433",
            1,
            "",
            vec![Cell::Value(2_000_000_000), Cell::Value(3), Cell::Text(String::new())],
        );
        history.push(
            "host@postgres@5432",
            1,
            "",
            vec![Cell::Value(1_000_000_000), Cell::Unmeasured, Cell::Text(String::new())],
        );
        let text = text(Arc::new(Snapshot::last(&history, "db1", &[], Paths::Hidden))).unwrap();
        let family = "# TYPE blockstone_host_read_seconds counter";
        assert_eq!(text.matches(family).count(), 1, "{text}");
        for (name, value) in names.into_iter().zip(["1.0", "2.0"]) {
            let labels = format!(r#"host="db1",server="{name}""#);
            let wanted = format!("blockstone_host_read_seconds_total{{{labels}}} {value}\n");
            assert!(text.contains(&wanted), "{wanted} is not in {text}");
        }
    }

    const KERNEL_IO: Schema = Schema {
        probe: "kernel_io",
        doc: "A probe.",
        columns: &[
            column("role", Unit::Text, Kind::State),
            column("file", Unit::Text, Kind::State),
            column("operation", Unit::Text, Kind::State),
            column("ios", Unit::Count, Kind::Counter),
            column("bytes", Unit::Bytes, Kind::Counter),
        ],
    };

    #[test]
    fn latencies_are_a_histogram() {
        const LATENCY: Schema = Schema {
            probe: "kernel_io",
            doc: "A probe.",
            columns: &[
                column("role", Unit::Text, Kind::State),
                column("elapsed_ns", Unit::Nanoseconds, Kind::Counter),
                column("ios_from_0ns", Unit::Count, Kind::Counter),
                column("ios_from_131072ns", Unit::Count, Kind::Counter),
                column("ios_from_17179869184ns", Unit::Count, Kind::Counter),
            ],
        };
        let mut history = History::new(vec![ProbeInfo::of(&LATENCY)]);
        history.push("host", 1, "", Vec::new());
        let mut cells = vec![Cell::Text("lgwr".to_owned())];
        cells.extend([2_000_000_000, 5, 3, 1].map(Cell::Value));
        history.push("kernel_io", 1, "lgwr", cells);
        let text = text(Arc::new(Snapshot::last(&history, "db1", &[], Paths::Hidden))).unwrap();
        let name = "blockstone_kernel_io_latency_seconds";
        let buckets = [("0.000131072", 5), ("0.000524288", 8), ("1.073741824", 8), ("+Inf", 9)];
        for (bound, count) in buckets {
            let wanted =
                format!("{name}_bucket{{le=\"{bound}\",host=\"db1\",role=\"lgwr\"}} {count}");
            assert!(text.contains(&wanted), "{wanted} is not in {text}");
        }
        assert!(text.contains(&format!("{name}_sum{{host=\"db1\",role=\"lgwr\"}} 2.0")), "{text}");
        assert!(!text.contains("ios_from"), "{text}");
    }

    #[test]
    fn paths_are_summed_unless_they_are_asked_for() {
        let mut history = History::new(vec![ProbeInfo::of(&KERNEL_IO)]);
        history.push("host", 1, "", Vec::new());
        let mut row = |role: &str, file: &str, bytes| {
            let texts = [role, file, "read"];
            let mut cells = texts.map(|text| Cell::Text(text.to_owned())).to_vec();
            cells.extend([Cell::Value(5), bytes]);
            history.push("kernel_io", 1, &texts.join(BETWEEN), cells);
        };
        row("dbwr", "/secret/a", Cell::Unmeasured);
        row("dbwr", "/secret/b", Cell::Value(70));
        row("lgwr", "/secret/a", Cell::Unmeasured);
        let text = |paths| text(Arc::new(Snapshot::last(&history, "db1", &[], paths))).unwrap();
        let hidden = text(Paths::Hidden);
        let labels = r#"host="db1",role="dbwr",operation="read""#;
        for (name, value) in [("ios", 10), ("bytes", 70)] {
            let wanted = format!("blockstone_kernel_io_{name}_total{{{labels}}} {value}");
            assert!(hidden.contains(&wanted), "{wanted} is not in {hidden}");
        }
        assert!(!hidden.contains("secret") && hidden.matches("bytes_total{").count() == 1);
        assert_eq!(without_path("postgres | /secret/a"), "postgres");
        let shown = text(Paths::Shown);
        assert!(shown.contains(r#"role="dbwr",file="/secret/a",operation="read""#), "{shown}");
    }
}
