//! Published limits of cloud volumes, from a data file of this crate.

use std::sync::LazyLock;

use blockstone_base::identity::Cloud;
use blockstone_base::load::Op;
use serde::Deserialize;

/// Contents of the data file.
pub static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let text = include_str!("../../../data/cloud-volumes.toml");
    toml::from_str(text).expect("a test reads the file of this crate")
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    #[serde(rename = "page")]
    pages: Vec<Page>,
    #[serde(rename = "volume")]
    volumes: Vec<Volume>,
}

/// A page from which facts were taken.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    pub id: String,
    url: String,
    read: String,
    #[expect(dead_code, reason = "for readers of the file")]
    dated: String,
}

impl Page {
    /// Returns its address, and the day on which it was read.
    pub fn source(&self) -> (&str, &str) {
        (&self.url, &self.read)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Volume {
    cloud: Cloud,
    name: String,
    page: String,
    /// The sizes for which its limits hold.
    gib: [u64; 2],
    limits: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    unit: Unit,
    kind: Kind,
    of: Option<Direction>,
    rate: Rate,
    base: Option<Rate>,
    bucket: Option<f64>,
    bucket_per_gib: Option<f64>,
    minutes: Option<f64>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Reads,
    Writes,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub enum Unit {
    #[serde(rename = "IOPS")]
    Iops,
    #[serde(rename = "MB/s")]
    Megabytes,
    #[serde(rename = "MiB/s")]
    Mebibytes,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Always available.
    Sustained,
    /// The most that can be bought.
    Maximum,
    /// Available while credit lasts, or for an additional price.
    Burst,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Rate {
    Fixed(f64),
    BySize {
        per_gib: f64,
        #[serde(default)]
        least: f64,
        most: f64,
    },
}

impl Rate {
    fn at(self, gib: f64) -> f64 {
        match self {
            Self::Fixed(rate) => rate,
            Self::BySize { per_gib, least, most } => (per_gib * gib).clamp(least, most),
        }
    }
}

impl Unit {
    /// Returns the number of I/Os or bytes a second in the unit.
    pub fn scale(self) -> f64 {
        match self {
            Self::Iops => 1.0,
            Self::Megabytes => 1e6,
            Self::Mebibytes => f64::from(1 << 20),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Megabytes => "MB/s",
            Self::Mebibytes => "MiB/s",
        }
    }
}

/// A published limit of a volume of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Volume type, or the machine that limits all of its volumes.
    pub volume: String,
    pub unit: Unit,
    pub kind: Kind,
    /// Rate in the unit.
    pub rate: f64,
    /// Credit of a burst that runs on it.
    pub credit: Option<Credit>,
    /// Whether it limits reads or writes alone, not their sum.
    pub of_direction: bool,
    /// Address of the page that states it, and the day on which it was read.
    pub source: (&'static str, &'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Credit {
    /// Rate that remains without credit, in the unit of the limit.
    pub base: f64,
    /// Time for which a full bucket allows the burst, in seconds.
    pub lasts_s: f64,
}

/// Returns the limits on such operations, for all volumes that may have this size in this cloud.
pub fn limits(cloud: Cloud, gib: f64, op: Op) -> Vec<Limit> {
    let Catalogue { pages, volumes } = &*CATALOGUE;
    let whole = gib.round() as u64;
    let fits = |volume: &&Volume| {
        volume.cloud == cloud && (volume.gib[0]..=volume.gib[1]).contains(&whole)
    };
    let concerns = |row: &&Row| match row.of {
        None => true,
        Some(of) => (of == Direction::Reads) == (op == Op::Read),
    };
    let mut found = Vec::new();
    for volume in volumes.iter().filter(fits) {
        let Some(page) = pages.iter().find(|page| page.id == volume.page) else { continue };
        let source = page.source();
        for row in volume.limits.iter().filter(concerns) {
            let rate = row.rate.at(gib);
            let base = row.base.map_or(0.0, |base| base.at(gib));
            // From some size on, the sustained rate of a volume is at least its burst rate.
            if row.kind == Kind::Burst && rate <= base {
                continue;
            }
            let bucket = row.bucket.or_else(|| Some(row.bucket_per_gib? * gib));
            let lasts_s = bucket.map(|bucket| bucket / (rate - base));
            let lasts_s = lasts_s.or_else(|| Some(row.minutes? * 60.0));
            let credit = lasts_s.map(|lasts_s| Credit { base, lasts_s });
            found.push(Limit {
                volume: volume.name.clone(),
                unit: row.unit,
                kind: row.kind,
                rate,
                credit,
                of_direction: row.of.is_some(),
                source,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cloud: Cloud, gib: f64, volume: &str) -> Vec<Limit> {
        let mut limits = limits(cloud, gib, Op::Read);
        limits.retain(|limit| limit.volume == volume);
        limits
    }

    #[test]
    fn every_fact_names_a_page_that_the_file_has_with_its_day() {
        let Catalogue { pages, volumes } = &*CATALOGUE;
        for volume in volumes {
            assert!(pages.iter().any(|page| page.id == volume.page), "{}", volume.page);
            assert!(volume.gib[0] <= volume.gib[1] && !volume.limits.is_empty(), "{}", volume.name);
            for row in &volume.limits {
                assert_eq!(row.kind == Kind::Burst, row.base.is_some(), "{}", volume.name);
            }
        }
        for page in pages {
            assert!(page.url.starts_with("https://") && page.read.len() == 10, "{}", page.id);
        }
    }

    #[test]
    fn a_burst_ends_with_its_bucket_and_refills_at_the_base() {
        let gp2 = of(Cloud::Aws, 100.0, "gp2");
        let burst = gp2.iter().find(|limit| limit.kind == Kind::Burst).unwrap();
        // From the table on the page: 2,000 s for 100 GiB, 7,200 s for 750 GiB.
        assert_eq!(
            (burst.rate, burst.credit),
            (3000.0, Some(Credit { base: 300.0, lasts_s: 2000.0 }))
        );
        let larger = of(Cloud::Aws, 750.0, "gp2");
        let burst = larger.iter().find(|limit| limit.kind == Kind::Burst).unwrap();
        assert_eq!(burst.credit, Some(Credit { base: 2250.0, lasts_s: 7200.0 }));
        assert!(of(Cloud::Aws, 1000.0, "gp2").iter().all(|limit| limit.kind != Kind::Burst));
        let st1 = of(Cloud::Aws, 5120.0, "st1");
        let burst = st1.iter().find(|limit| limit.kind == Kind::Burst).unwrap();
        assert_eq!((burst.rate, burst.credit.unwrap().base), (500.0, 200.0));
    }

    #[test]
    fn sizes_choose_among_the_limits() {
        let base = |gib, volume| of(Cloud::Azure, gib, volume).first().map(|limit| limit.rate);
        assert_eq!(base(1024.0, "Premium SSD P30"), Some(5000.0));
        assert_eq!(base(513.0, "Premium SSD P30"), Some(5000.0));
        assert_eq!(base(1025.0, "Premium SSD P30"), None);
        let ssd = of(Cloud::Google, 500.0, "pd-ssd");
        assert_eq!(ssd.first().map(|limit| limit.rate), Some(15_000.0));
        let standard = |op| {
            let of_type = |limit: &Limit| (limit.volume == "pd-standard").then_some(limit.rate);
            limits(Cloud::Google, 1000.0, op).iter().find_map(of_type)
        };
        assert_eq!((standard(Op::Read), standard(Op::Write)), (Some(750.0), Some(1500.0)));
    }
}
