//! The balance of a machine whose storage filters: which part binds, at how many hosts.
//!
//! Throughput is what the storage reads, in bytes a second. Of each byte that it reads, a fraction
//! crosses the wire and is consumed by hosts:
//!
//! ```text
//! cells   n_c × min(scan rate, CPU rate)
//! links   min(n_c × link of a cell, n_h × link of a host, fabric) ÷ fraction
//! hosts   n_h × consume rate ÷ fraction
//! ```

use blockstone_base::named;

named! {
    /// A part of the machine that may bind.
    Part {
        Cells = "cells",
        CellCpu = "cell-cpu",
        CellLinks = "cell-links",
        HostLinks = "host-links",
        Fabric = "fabric",
        Hosts = "hosts",
        Processors = "processors",
    }
}

/// Hosts that a crossing is looked for up to.
const HOSTS_MAX: f64 = 1e6;

/// Rates in bytes a second. What is `None` never binds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    pub cells: u32,
    /// What one cell reads.
    pub scan_rate: Option<f64>,
    /// What the processors of one cell can filter, in bytes read.
    pub cell_cpu_rate: Option<f64>,
    /// What the link of one cell carries.
    pub cell_link: Option<f64>,
    /// What the link of one host carries.
    pub host_link: Option<f64>,
    /// What the network between them carries.
    pub fabric: Option<f64>,
    /// What one host consumes, by how many work at once, in the order of these numbers.
    pub consume: Vec<Consumed>,
    /// Processors that cells and hosts share.
    pub shared: Option<Shared>,
}

/// What each of some hosts consumes of what crosses the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Consumed {
    pub hosts: u32,
    pub bytes_per_s: f64,
}

/// Processors of a machine on which everything runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shared {
    pub processors: u32,
    /// Processor time of all parts for each byte that is read.
    pub s_per_byte: f64,
}

/// Where one part hands over to another as hosts are added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// With the rate that one of this many hosts has.
    pub measured_with: u32,
    /// At which the hosts could take as much as the part gives.
    pub hosts: f64,
    pub binds: Part,
}

/// What the machine does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    pub bytes_per_s: f64,
    pub binding: Part,
}

/// One more of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    pub what: &'static str,
    pub then: Bound,
    /// Of the throughput before.
    pub gained: f64,
}

impl Machine {
    /// What one of `hosts` hosts consumes: between two numbers that are known, linear; beyond them,
    /// the nearest.
    pub fn consume_rate(&self, hosts: f64) -> Option<f64> {
        let first = self.consume.first()?;
        let at = self.consume.iter().rposition(|it| f64::from(it.hosts) <= hosts);
        let Some(below) = at.map(|at| (at, self.consume[at])) else {
            return Some(first.bytes_per_s);
        };
        let (at, below) = below;
        let Some(above) = self.consume.get(at + 1) else { return Some(below.bytes_per_s) };
        let part = (hosts - f64::from(below.hosts)) / f64::from(above.hosts - below.hosts);
        Some(below.bytes_per_s + part * (above.bytes_per_s - below.bytes_per_s))
    }

    /// What each part allows with `hosts` hosts, if the fraction `returned` of what is read crosses
    /// the wire.
    pub fn limits(&self, hosts: f64, returned: f64) -> Vec<Bound> {
        let cells = f64::from(self.cells);
        let each = |rate: Option<f64>| rate.map(|rate| cells * rate);
        let wire = |rate: Option<f64>| rate.map(|rate| rate / returned);
        let shared = self.shared.filter(|it| it.s_per_byte > 0.0);
        let limits = [
            (Part::Cells, each(self.scan_rate)),
            (Part::CellCpu, each(self.cell_cpu_rate)),
            (Part::CellLinks, wire(each(self.cell_link))),
            (Part::HostLinks, wire(self.host_link.map(|rate| hosts * rate))),
            (Part::Fabric, wire(self.fabric)),
            (Part::Hosts, wire(self.consume_rate(hosts).map(|rate| hosts * rate))),
            (Part::Processors, shared.map(|it| f64::from(it.processors) / it.s_per_byte)),
        ];
        let known = limits.into_iter().filter_map(|(binding, rate)| Some((binding, rate?)));
        known
            .filter(|(_, rate)| rate.is_finite())
            .map(|(binding, bytes_per_s)| Bound { bytes_per_s, binding })
            .collect()
    }

    /// The least of them; none where nothing is known.
    pub fn bound(&self, hosts: f64, returned: f64) -> Option<Bound> {
        let limits = self.limits(hosts, returned).into_iter();
        limits.min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    }

    /// The least of what does not grow with the number of hosts.
    pub fn storage(&self, returned: f64) -> Option<Bound> {
        let limits = self.limits(1.0, returned).into_iter();
        let fixed = limits.filter(|it| !matches!(it.binding, Part::Hosts | Part::HostLinks));
        fixed.min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    }

    /// From which number of hosts on something else than hosts and their links binds: one for each
    /// rate of a host that is known.
    pub fn crossings(&self, returned: f64) -> Vec<Crossing> {
        let Some(storage) = self.storage(returned) else { return Vec::new() };
        let at = |measured_with: u32, rate: f64| {
            let rate = self.host_link.map_or(rate, |link| rate.min(link));
            let hosts = storage.bytes_per_s * returned / rate;
            (hosts <= HOSTS_MAX).then_some(Crossing {
                measured_with,
                hosts,
                binds: storage.binding,
            })
        };
        if self.consume.is_empty() {
            return self.host_link.and_then(|link| at(1, link)).into_iter().collect();
        }
        self.consume.iter().filter_map(|it| at(it.hosts, it.bytes_per_s)).collect()
    }

    /// The fraction at which hosts or links take over from the cells: below it filtering better
    /// gains nothing.
    pub fn crossing_returned(&self, hosts: f64) -> Option<f64> {
        let all = self.limits(hosts, 1.0).into_iter();
        let is_storage = |part| matches!(part, Part::Cells | Part::CellCpu | Part::Processors);
        let (storage, wire): (Vec<Bound>, Vec<Bound>) = all.partition(|it| is_storage(it.binding));
        let least =
            |bounds: &[Bound]| bounds.iter().map(|it| it.bytes_per_s).min_by(f64::total_cmp);
        Some(least(&wire)? / least(&storage)?)
    }

    /// What one more of each part brings.
    pub fn gains(&self, hosts: u32, returned: f64) -> Vec<Gain> {
        let Some(now) = self.bound(f64::from(hosts), returned) else { return Vec::new() };
        let mut gains = Vec::new();
        let mut try_it = |what, machine: &Self, hosts: u32| {
            if let Some(then) = machine.bound(f64::from(hosts), returned) {
                let gained = then.bytes_per_s / now.bytes_per_s - 1.0;
                gains.push(Gain { what, then, gained });
            }
        };
        if self.scan_rate.or(self.cell_cpu_rate).or(self.cell_link).is_some() {
            try_it("cell", &Self { cells: self.cells + 1, ..self.clone() }, hosts);
        }
        if self.host_link.is_some() || !self.consume.is_empty() {
            try_it("host", self, hosts + 1);
        }
        let twice = |rate: Option<f64>| rate.map(|rate| 2.0 * rate);
        if self.host_link.is_some() {
            let more = Self { host_link: twice(self.host_link), ..self.clone() };
            try_it("link of each host", &more, hosts);
        }
        if self.cell_link.is_some() {
            let more = Self { cell_link: twice(self.cell_link), ..self.clone() };
            try_it("link of each cell", &more, hosts);
        }
        if self.fabric.is_some() {
            try_it("fabric", &Self { fabric: twice(self.fabric), ..self.clone() }, hosts);
        }
        if let Some(shared) = self.shared {
            let shared = Some(Shared { processors: shared.processors + 1, ..shared });
            try_it("processor", &Self { shared, ..self.clone() }, hosts);
        }
        gains
    }
}
