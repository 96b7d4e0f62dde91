//! Licences that count cores, virtual processors or sockets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Unit;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    Core,
    Vcpu,
    Socket,
}

/// Terms of a licence, as stated by the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Licence {
    pub name: String,
    #[serde(default)]
    pub about: String,
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub dated: String,
    pub metric: Metric,
    /// Licences for one unit of the metric.
    pub factor: f64,
    /// Price of one licence, in US dollars.
    pub usd: Option<f64>,
    /// Support per year, as a share of the price.
    pub support: Option<f64>,
    /// Maximum number of sockets of a host on which it may be used.
    pub sockets_most: Option<u32>,
    /// Maximum number of threads that a database uses, whatever the host has.
    pub threads_most: Option<u32>,
}

/// Licences that `hosts` of one unit take.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LicenceUse {
    pub licence: String,
    pub metric: Metric,
    /// Cores, virtual processors or sockets of all hosts.
    pub counted: f64,
    pub licences: u64,
    pub usd: Option<f64>,
    pub support_usd_per_year: Option<f64>,
    /// Date of the price; no price is shown without it.
    pub as_of: String,
    /// Reasons that the licence may not be used, or not fully, on these hosts.
    pub limits: Vec<String>,
}

impl Licence {
    pub(super) fn check(&self) -> Result<(), String> {
        let sound = |value: f64| value > 0.0 && value.is_finite();
        let support = self.support.is_none_or(|share| (0.0..=1.0).contains(&share));
        if sound(self.factor) && self.usd.is_none_or(sound) && support {
            return Ok(());
        }
        Err(format!("licence {:?} has an impossible factor, price or support", self.name))
    }

    /// Returns the licences for `hosts`; `None` if the unit does not state the number of the
    /// metric.
    pub fn of(&self, host: &Unit, hosts: u64) -> Option<LicenceUse> {
        let each = match self.metric {
            Metric::Core => host.cores?,
            Metric::Vcpu => host.vcpus?,
            Metric::Socket => host.sockets?,
        };
        // Fractions of a licence are rounded up per host.
        let a_host = (each * self.factor - 1e-9).ceil().max(1.0) as u64;
        let licences = a_host.saturating_mul(hosts);
        let usd = self.usd.map(|usd| usd * licences as f64);
        let mut limits = Vec::new();
        if let (Some(most), Some(sockets)) = (self.sockets_most, host.sockets)
            && sockets > f64::from(most)
        {
            limits.push(format!("{sockets} sockets, it allows {most}"));
        }
        let threads = host.vcpus.or(host.cores);
        if let (Some(most), Some(threads)) = (self.threads_most, threads)
            && threads > f64::from(most)
        {
            limits.push(format!("uses {most} of {threads} threads"));
        }
        Some(LicenceUse {
            licence: self.name.clone(),
            metric: self.metric,
            counted: each * hosts as f64,
            licences,
            usd,
            support_usd_per_year: usd.and_then(|usd| Some(usd * self.support?)),
            as_of: self.dated.clone(),
            limits,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::hardware::{Catalogue, Unit};

    fn host(sockets: f64, cores: f64, vcpus: f64) -> Unit {
        let (sockets, cores, vcpus) = (Some(sockets), Some(cores), Some(vcpus));
        Unit { cores, vcpus, sockets, ..Unit::default() }
    }

    #[test]
    fn cores_vcpus_and_sockets() {
        let catalogue = Catalogue::example().unwrap();
        let of = |name: &str, host: &Unit, hosts| {
            catalogue.licence(name).unwrap().of(host, hosts).unwrap()
        };
        let ee = of("oracle-ee", &host(2.0, 16.0, 32.0), 2);
        assert_eq!((ee.counted, ee.licences, ee.usd), (32.0, 16, Some(760_000.0)));
        assert_eq!(ee.support_usd_per_year, Some(167_200.0));
        assert_eq!(ee.as_of, "2025-03");
        assert_eq!(of("oracle-ee", &host(1.0, 9.0, 18.0), 2).licences, 10, "rounded for each host");
        assert_eq!(of("oracle-ee-cloud", &host(1.0, 8.0, 16.0), 1).licences, 8);
        let se2 = of("oracle-se2", &host(2.0, 16.0, 32.0), 1);
        assert_eq!((se2.licences, se2.usd), (2, Some(35_000.0)));
        assert_eq!(se2.limits, ["uses 16 of 32 threads"]);
        let four = of("oracle-se2", &host(4.0, 16.0, 16.0), 1);
        assert_eq!(four.limits, ["4 sockets, it allows 2"]);
    }

    #[test]
    fn nothing_to_count_is_no_licence_count() {
        let catalogue = Catalogue::example().unwrap();
        let licence = catalogue.licence("oracle-ee").unwrap();
        assert_eq!(licence.of(&Unit::default(), 1), None);
        assert!(catalogue.licence("gpl").is_err());
        assert_eq!(licence.of(&host(1.0, f64::MAX, 1.0), u64::MAX).unwrap().licences, u64::MAX);
    }
}
