//! Published limits of cloud machines on all their volumes together, from a data file of this
//! crate.

use std::sync::LazyLock;

use blockstone_base::identity::{Cloud, Host};
use serde::Deserialize;

use super::catalogue::{Credit, Kind, Limit, Page, Unit};

/// Contents of the data file.
static MACHINES: LazyLock<Machines> = LazyLock::new(|| {
    let text = include_str!("../../../data/cloud-machines.toml");
    toml::from_str(text).expect("a test reads the file of this crate")
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Machines {
    #[serde(rename = "page")]
    pages: Vec<Page>,
    machines: Vec<Series>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    cloud: Cloud,
    page: String,
    /// The disks that they are for; none if for all.
    of: Option<String>,
    /// How long a burst lasts.
    minutes: f64,
    /// A line for each type.
    types: String,
}

/// A type and its limits.
struct Machine<'a> {
    name: &'a str,
    /// Processors and memory in GiB, where the type itself cannot be known.
    shape: Option<(u32, f64)>,
    /// IOPS and MB/s sustained, and the same in a burst.
    rates: [f64; 4],
}

impl<'a> Machine<'a> {
    fn of_line(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let numbers: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
        let (shape, rates) = match numbers?[..] {
            [a, b, c, d] => (None, [a, b, c, d]),
            [cpus, gib, a, b, c, d] => (Some((cpus as u32, gib)), [a, b, c, d]),
            _ => return None,
        };
        Some(Self { name, shape, rates })
    }

    /// Returns whether the host may be a machine of this type.
    fn may_be(&self, host: &Host) -> bool {
        match self.shape {
            None => host.machine_type.as_deref() == Some(self.name),
            Some((cpus, gib)) => {
                let has_gib = host.memory_bytes as f64 / f64::from(1 << 30);
                host.cpus == cpus && (VISIBLE_MEMORY..=1.0).contains(&(has_gib / gib))
            }
        }
    }
}

/// Least share of a machine's memory that its kernel reports as its own.
const VISIBLE_MEMORY: f64 = 0.9;

/// Returns the limits of all types that this machine may have.
pub fn limits(cloud: Cloud, host: &Host) -> Vec<Limit> {
    let Machines { pages, machines } = &*MACHINES;
    let mut found = Vec::new();
    for series in machines.iter().filter(|series| series.cloud == cloud) {
        let Some(page) = pages.iter().find(|page| page.id == series.page) else { continue };
        let machines = series.types.lines().filter_map(Machine::of_line);
        for machine in machines.filter(|machine| machine.may_be(host)) {
            let of = series.of.as_deref().map(|of| format!(" with {of}")).unwrap_or_default();
            let volume = format!("the machine type {}{of}", machine.name);
            let [iops, megabytes, burst_iops, burst_megabytes] = machine.rates;
            for (unit, base, burst) in
                [(Unit::Iops, iops, burst_iops), (Unit::Megabytes, megabytes, burst_megabytes)]
            {
                let limit = |kind, rate, credit| Limit {
                    volume: volume.clone(),
                    unit,
                    kind,
                    rate,
                    credit,
                    of_direction: false,
                    source: page.source(),
                };
                found.push(limit(Kind::Sustained, base, None));
                if burst > base {
                    let credit = Credit { base, lasts_s: series.minutes * 60.0 };
                    found.push(limit(Kind::Burst, burst, Some(credit)));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_type_with_limits_that_no_burst_is_below() {
        let Machines { pages, machines } = &*MACHINES;
        for series in machines {
            assert!(pages.iter().any(|page| page.id == series.page), "{}", series.page);
            for line in series.types.lines() {
                let machine = Machine::of_line(line).unwrap_or_else(|| panic!("{line}"));
                let [iops, megabytes, burst_iops, burst_megabytes] = machine.rates;
                assert!(0.0 < iops && iops <= burst_iops, "{line}");
                assert!(0.0 < megabytes && megabytes <= burst_megabytes, "{line}");
                assert_eq!(machine.shape.is_some(), series.cloud == Cloud::Azure, "{line}");
            }
        }
    }

    #[test]
    fn a_machine_is_known_by_its_type_or_else_by_its_shape() {
        let aws = Host { machine_type: Some("m5.large".into()), ..Host::default() };
        let found = limits(Cloud::Aws, &aws);
        let rates: Vec<f64> = found.iter().map(|limit| limit.rate).collect();
        assert_eq!(rates, [3600.0, 18_750.0, 81.25, 593.75]);
        assert_eq!(found[1].credit, Some(Credit { base: 3600.0, lasts_s: 1800.0 }));
        let shaped = |cpus, memory_bytes| {
            let host = Host { cpus, memory_bytes, ..Host::default() };
            limits(Cloud::Azure, &host).into_iter().map(|limit| limit.volume).collect::<Vec<_>>()
        };
        let found = shaped(4, (157 << 30) / 10);
        assert!(found.contains(&"the machine type Standard_D4s_v5".to_owned()), "{found:?}");
        assert!(!found.iter().any(|name| name.contains("_E")), "{found:?}");
        assert!(shaped(5, 16 << 30).is_empty());
        assert!(limits(Cloud::Aws, &Host::default()).is_empty());
    }
}
