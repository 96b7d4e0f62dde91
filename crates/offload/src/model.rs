//! The balance of a machine whose storage filters: which part limits it, by number of hosts.
//!
//! Throughput is the rate at which the storage reads, in bytes per second. A fraction of the bytes
//! it reads crosses the wire and is consumed by hosts:
//!
//! ```text
//! cells   n_c × min(scan rate, CPU rate)
//! links   min(n_c × link of a cell, n_h × link of a host, fabric) ÷ fraction
//! hosts   n_h × consume rate ÷ fraction
//! ```

use blockstone_base::named;

named! {
    /// A part of the machine that may limit throughput.
    Resource {
        Cells = "cells",
        CellCpu = "cell-cpu",
        CellLinks = "cell-links",
        HostLinks = "host-links",
        Fabric = "fabric",
        Hosts = "hosts",
        Processors = "processors",
    }
}

/// The largest number of hosts for which a crossing is reported.
const HOSTS_MAX: f64 = 1e6;

/// Rates in bytes per second. A rate that is `None` never limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    pub cells: u32,
    /// Read rate of one cell.
    pub scan_rate: Option<f64>,
    /// Filter rate of one cell's processors, in bytes read.
    pub cell_cpu_rate: Option<f64>,
    /// Capacity of the link of one cell.
    pub cell_link: Option<f64>,
    /// Capacity of the link of one host.
    pub host_link: Option<f64>,
    /// Capacity of the network between cells and hosts.
    pub fabric: Option<f64>,
    /// Consume rate of one host by the number of hosts working at the same time, in ascending
    /// order.
    pub consume: Vec<Consumed>,
    /// Processors shared by cells and hosts.
    pub shared: Option<Shared>,
}

/// Consume rate of each host when this many hosts work, in bytes that cross the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Consumed {
    pub hosts: u32,
    pub bytes_per_s: f64,
}

/// Processors of a machine that runs all parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shared {
    pub processors: u32,
    /// Processor time of all parts per byte read, in seconds.
    pub s_per_byte: f64,
}

/// The number of hosts at which another part becomes the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The number of hosts at which the consume rate was measured.
    pub measured_with: u32,
    /// The number of hosts that together take as much as the part delivers.
    pub hosts: f64,
    pub binds: Resource,
}

/// Throughput of the machine, and the part that limits it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    pub bytes_per_s: f64,
    pub binding: Resource,
}

/// Effect of enlarging one part.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    pub what: &'static str,
    pub then: Bound,
    /// Relative to the throughput before.
    pub gained: f64,
}

impl Machine {
    /// Consume rate of one of `hosts` hosts: interpolated linearly between known numbers of hosts,
    /// and that of the nearest known number outside them.
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

    /// Returns the throughput that each part allows with `hosts` hosts, if the fraction `returned`
    /// of the bytes read crosses the wire.
    pub fn limits(&self, hosts: f64, returned: f64) -> Vec<Bound> {
        let cells = f64::from(self.cells);
        let each = |rate: Option<f64>| rate.map(|rate| cells * rate);
        let wire = |rate: Option<f64>| rate.map(|rate| rate / returned);
        let shared = self.shared.filter(|it| it.s_per_byte > 0.0);
        let limits = [
            (Resource::Cells, each(self.scan_rate)),
            (Resource::CellCpu, each(self.cell_cpu_rate)),
            (Resource::CellLinks, wire(each(self.cell_link))),
            (Resource::HostLinks, wire(self.host_link.map(|rate| hosts * rate))),
            (Resource::Fabric, wire(self.fabric)),
            (Resource::Hosts, wire(self.consume_rate(hosts).map(|rate| hosts * rate))),
            (Resource::Processors, shared.map(|it| f64::from(it.processors) / it.s_per_byte)),
        ];
        let known = limits.into_iter().filter_map(|(binding, rate)| Some((binding, rate?)));
        known
            .filter(|(_, rate)| rate.is_finite())
            .map(|(binding, bytes_per_s)| Bound { bytes_per_s, binding })
            .collect()
    }

    /// Returns the lowest of the limits; `None` if no rate is known.
    pub fn bound(&self, hosts: f64, returned: f64) -> Option<Bound> {
        let limits = self.limits(hosts, returned).into_iter();
        limits.min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    }

    /// Returns the lowest limit that does not grow with the number of hosts.
    pub fn storage(&self, returned: f64) -> Option<Bound> {
        let limits = self.limits(1.0, returned).into_iter();
        let fixed =
            limits.filter(|it| !matches!(it.binding, Resource::Hosts | Resource::HostLinks));
        fixed.min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
    }

    /// Returns the number of hosts above which the limit is not the hosts or their links: one
    /// crossing for each known consume rate.
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

    /// Returns the fraction above which hosts or links limit instead of the cells. Below it, better
    /// filtering gains nothing.
    pub fn crossing_returned(&self, hosts: f64) -> Option<f64> {
        let all = self.limits(hosts, 1.0).into_iter();
        let is_storage =
            |part| matches!(part, Resource::Cells | Resource::CellCpu | Resource::Processors);
        let (storage, wire): (Vec<Bound>, Vec<Bound>) = all.partition(|it| is_storage(it.binding));
        let least =
            |bounds: &[Bound]| bounds.iter().map(|it| it.bytes_per_s).min_by(f64::total_cmp);
        Some(least(&wire)? / least(&storage)?)
    }

    /// Returns the gain from enlarging each part: one more cell, host or processor, or links and
    /// fabric of twice the rate.
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
