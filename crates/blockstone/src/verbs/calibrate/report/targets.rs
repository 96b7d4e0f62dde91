//! Several targets that were measured as one: the share of each in the load, and which is the
//! slowest.

use blockstone_base::Capability;
use blockstone_base::table::{Row, Rows as _, Table, Value, happened};
use blockstone_base::units::format_ns;
use blockstone_judge::findings::{Findings, Point, TargetShare};
use blockstone_record::manifest::{Group, Manifest, Measured};
use blockstone_report::Section;

use super::rows::{SharedDeviceRow, TargetEvidenceRow, TargetFileRow, TargetRow, TargetShareRow};
use super::select;

pub fn names(measured: &Measured) -> impl Iterator<Item = &str> {
    measured.target.devices.iter().map(|device| device.name.as_str())
}

/// Returns the device nearest to the top that both targets have.
pub fn common<'a>(one: &'a Measured, other: &Measured) -> Option<&'a str> {
    names(one).find(|name| names(other).any(|known| known == *name))
}

/// Returns the point of random reads by which targets are compared.
fn random_reads(findings: &Findings) -> Option<&Point> {
    headline(findings, "max_iops", Group::RandomRead)
}

/// Returns the point of a headline figure, or the last of its group if the run ended before the
/// headline.
fn headline<'a>(findings: &'a Findings, name: &str, group: Group) -> Option<&'a Point> {
    let chosen = select::figure(findings, name).and_then(|it| select::point(findings, &it.phase));
    chosen.or_else(|| select::group(findings, group).last())
}

/// Returns the target with the slowest random reads if the difference is significant: its interval
/// at the headline does not overlap that of the fastest, or it is the slowest at every point of
/// random reads, which for equal targets would happen in less than 2.5 % of measurements.
pub fn slowest(findings: &Findings) -> Option<&TargetShare> {
    let shares = &random_reads(findings)?.targets;
    let (fastest, slowest) = extremes(shares)?;
    let mean = |share: &TargetShare| share.latency_ns_mean;
    let apart = match (mean(slowest), mean(fastest)) {
        (Some(slow), Some(fast)) => slow.low > fast.high,
        (None, Some(_)) => true,
        _ => false,
    };
    let all: Vec<&Point> = select::group(findings, Group::RandomRead).collect();
    let leads =
        |point: &Point| extremes(&point.targets).is_some_and(|(_, last)| last.path == slowest.path);
    let alike = 1.0 / shares.len() as f64;
    let rarely = alike.powi(all.len() as i32 - 1) < 0.025;
    (apart || rarely && all.iter().all(|point| leads(point))).then_some(slowest)
}

/// Returns the targets whose requests take the shortest and the longest time; a target without a
/// completed request is the slowest.
fn extremes(shares: &[TargetShare]) -> Option<(&TargetShare, &TargetShare)> {
    let key = |share: &&TargetShare| share.latency_ns_mean.map_or(f64::INFINITY, |mean| mean.value);
    let order = |a: &&TargetShare, b: &&TargetShare| key(a).total_cmp(&key(b));
    Some((shares.iter().min_by(order)?, shares.iter().max_by(order)?))
}

pub fn section(manifest: &Manifest, findings: &Findings) -> Section {
    if manifest.targets.is_empty() {
        return Section::default();
    }
    Section::new("targets", "Targets")
        .with([table(manifest, findings)])
        .with([remarks(manifest, findings)])
}

/// A row for each target.
fn table(manifest: &Manifest, findings: &Findings) -> Table {
    let about = "Each figure of this report is that of all targets together. Any load is spread \
                 over them in turns of 1 MiB, so that each has the same part.";
    let title = format!("{} targets measured as one", manifest.targets.len());
    let reads = random_reads(findings);
    let large = headline(findings, "max_mbps", Group::LargeRead);
    let writes = headline(findings, "max_write_iops", Group::RandomWrite);
    let of = |point: Option<&Point>, path: &str, get: fn(&TargetShare) -> Value| {
        let share = point.and_then(|point| point.targets.iter().find(|share| share.path == path));
        share.map_or_else(Value::default, get)
    };
    let mean = |share: &TargetShare| Value::from(share.latency_ns_mean);
    let iops = |share: &TargetShare| Value::from(share.iops);
    let rate = |share: &TargetShare| Value::from(share.mb_per_s.map(|rate| rate.scaled(1e6)));
    let rows = manifest.targets.iter().map(|measured| {
        let path = measured.target.path.as_str();
        let on = names(measured).next().map(str::to_owned);
        let file_system = measured.target.file_system.as_ref().map(|fs| fs.kind.clone());
        let row = TargetRow {
            target: path.to_owned(),
            device: on.or(file_system).unwrap_or_default(),
            iops: of(reads, path, iops),
            latency_ns_mean: of(reads, path, mean),
            bytes_per_s: of(large, path, rate),
            large_latency_ns_mean: of(large, path, mean),
            write_iops: of(writes, path, iops),
            write_latency_ns_mean: of(writes, path, mean),
        };
        Row::from(row).condemned_by(reads.map_or(&[], |point| &point.condemned_by))
    });
    Table::new("targets", title, TargetRow::COLUMNS).about(about).with(rows)
}

/// Names the slowest target, and the targets that have a device in common.
fn remarks(manifest: &Manifest, findings: &Findings) -> String {
    let mut remarks = vec![match (slowest(findings), random_reads(findings)) {
        (Some(slowest), Some(point)) => {
            let of = |share: &TargetShare| {
                let mean = share.latency_ns_mean;
                mean.map_or("longer than was measured".into(), |mean| format_ns(mean.value))
            };
            let others = point.targets.iter().filter(|share| share.path != slowest.path);
            let others: Vec<String> = others.map(of).collect();
            format!(
                "The slowest is {}: a random read takes {} there, and {} on the others. All have \
                 the same part of the load, so it limits the rate of all.",
                slowest.path,
                of(slowest),
                others.join(", ")
            )
        }
        _ => "No target is slower than the others by more than chance.".to_owned(),
    }];
    for (at, one) in manifest.targets.iter().enumerate() {
        for other in &manifest.targets[at + 1..] {
            remarks.extend(common(one, other).map(|device| {
                format!(
                    "{} and {} are on the same device, {device}: their figures add up to those of \
                     one device.",
                    one.target.path, other.target.path
                )
            }));
        }
    }
    remarks.join(" ")
}

/// Tables of what was determined about each target before it was measured.
pub fn evidence(manifest: &Manifest) -> [Table; 3] {
    let rows = manifest.targets.iter().map(|measured| {
        let map = measured.file.as_ref().map(|file| &file.map);
        let sample = measured.file.as_ref().and_then(|file| file.sample.as_ref());
        TargetEvidenceRow {
            target: measured.target.path.clone(),
            chain: names(measured).collect::<Vec<_>>().join(" → "),
            direct: yes_or_why_not(&measured.direct),
            size_bytes: map.map(|map| map.size_bytes),
            hole_bytes: map.map(|map| map.hole_bytes),
            unwritten_bytes: map.map(|map| map.unwritten_bytes),
            sampled_bytes: sample.map(|sample| sample.sampled_bytes),
            lz4_bytes: sample.map(|sample| sample.lz4_bytes),
        }
    });
    let title = "Targets before they were measured";
    [TargetEvidenceRow::table("target-evidence", title, rows), files(manifest), shared(manifest)]
}

fn yes_or_why_not(capability: &Capability) -> String {
    match capability {
        Capability::Full => "yes".to_owned(),
        Capability::Degraded { why } => format!("no: {why}"),
    }
}

fn files(manifest: &Manifest) -> Table {
    let files = manifest.targets.iter().filter_map(|it| Some((it, it.file.as_ref()?)));
    let rows = files.map(|(measured, file)| {
        let (map, sample) = (&file.map, file.sample.as_ref());
        let attributes = map.attributes.as_ref().map(|attributes| attributes.join(", "));
        TargetFileRow {
            target: measured.target.path.clone(),
            file: file.path.clone(),
            ours: file.ours,
            allocated_bytes: map.allocated_bytes,
            extents: map.extents,
            mapped_bytes: map.mapped_bytes,
            encoded_bytes: map.encoded_bytes,
            shared_bytes: map.shared_bytes,
            zero_bytes: sample.map(|sample| sample.zero_bytes),
            duplicate_bytes: sample.map(|sample| sample.duplicate_bytes),
            attributes: happened(attributes.filter(|attributes| !attributes.is_empty())),
            fiemap: yes_or_why_not(&map.fiemap),
        }
    });
    TargetFileRow::table("target-files", "Files of the targets", rows)
}

fn shared(manifest: &Manifest) -> Table {
    let targets = &manifest.targets;
    let pairs = targets.iter().flat_map(|one| targets.iter().map(move |other| (one, other)));
    let rows = pairs.filter(|(one, other)| one.target.path != other.target.path);
    let rows = rows.filter_map(|(one, other)| {
        let device = common(one, other)?.to_owned();
        let (target, other) = (one.target.path.clone(), other.target.path.clone());
        Some(SharedDeviceRow { target, other, device })
    });
    SharedDeviceRow::table("shared-devices", "Targets on the same device", rows)
}

/// Share of each target in every load.
pub fn shares(findings: &Findings) -> Table {
    let rows = findings.points.iter().flat_map(|point| {
        point.targets.iter().map(|share| {
            let row = TargetShareRow {
                point: point.label.clone(),
                target: share.path.clone(),
                iops: share.iops,
                bytes_per_s: share.mb_per_s.map(|rate| rate.scaled(1e6)),
                latency_ns_mean: share.latency_ns_mean,
            };
            Row::from(row).condemned_by(&point.condemned_by)
        })
    });
    Table::new("target-shares", "Parts of the targets", TargetShareRow::COLUMNS).with(rows)
}
