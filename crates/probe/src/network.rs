//! The network: traffic of each interface, and how often TCP had to retransmit.

use std::collections::BTreeMap;

use blockstone_base::column::Origin;
use blockstone_sys::proc::numbers;

use crate::rising::{self, Rising};
use crate::source::{Source, unread};
use crate::{Context, Probe, Row, Schema, Unmeasured};

/// The schema: one row per interface.
pub const SCHEMA: Schema = Schema {
    probe: "network",
    doc: "Each network interface of this network namespace; the object `tcp` has what TCP sent and \
          retransmitted.",
    columns: &[
        DEV.bytes("received_bytes", "Bytes received."),
        DEV.count("received_packets", "Packets received, or TCP segments."),
        DEV.count("receive_errors", "Damaged packets or TCP segments received."),
        DEV.count("receive_drops", "Packets dropped on their way in."),
        DEV.bytes("sent_bytes", "Bytes sent."),
        DEV.count("sent_packets", "Packets sent, or TCP segments."),
        DEV.count("send_errors", "Packets that could not be sent."),
        DEV.count("send_drops", "Packets dropped on their way out."),
        Origin("/proc/net/snmp Tcp").count("retransmits", "TCP segments retransmitted."),
    ],
};

const DEV: Origin = Origin("/proc/net/dev");
const COLUMNS: usize = 9;
/// Index of each column but the last in a line of `/proc/net/dev`.
const FIELDS: [usize; COLUMNS - 1] = [0, 1, 2, 3, 8, 9, 10, 11];
/// Object of the row on TCP.
const TCP: &str = "tcp";

pub fn open(context: &Context) -> Box<dyn Probe> {
    let source = |path| Source::of(context, path, "procfs is not mounted");
    Box::new(Network {
        interfaces: source("/proc/net/dev"),
        snmp: source("/proc/net/snmp"),
        counters: BTreeMap::new(),
    })
}

#[derive(Debug)]
struct Network {
    interfaces: Source,
    snmp: Source,
    counters: BTreeMap<String, [Rising; COLUMNS]>,
}

impl Probe for Network {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let mut seen = BTreeMap::new();
        let text = self.interfaces.read().unwrap_or_default();
        for line in String::from_utf8_lossy(text).lines() {
            // The name of an alias contains a colon itself, as in `eth0:1`.
            let Some((name, values)) = line.rsplit_once(':') else { continue };
            let values: Vec<u64> = numbers(values.as_bytes()).collect();
            let raw = FIELDS.map(|field| values.get(field).copied());
            let raw = std::array::from_fn(|index| raw.get(index).copied().flatten());
            seen.insert(name.trim().to_owned(), raw);
        }
        if let Some(tcp) = self.snmp.read().and_then(tcp) {
            seen.insert(TCP.to_owned(), tcp);
        }
        rising::rows(&mut self.counters, seen, rows);
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        unread(&SCHEMA, &[&self.interfaces, &self.snmp])
    }
}

/// Reads the `Tcp` lines of `/proc/net/snmp`: names, then values in the same order.
fn tcp(text: &[u8]) -> Option<[Option<u64>; COLUMNS]> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let value = |wanted: &str| {
        let at = names.split(' ').position(|name| name == wanted)?;
        values.split(' ').nth(at)?.parse().ok()
    };
    let mut row = [None; COLUMNS];
    row[1] = value("InSegs");
    row[2] = value("InErrs");
    row[5] = value("OutSegs");
    row[8] = value("RetransSegs");
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_is_read_by_the_names_of_its_columns() {
        let text = b"Ip: Forwarding\nIp: 1\nTcp: MaxConn InSegs OutSegs RetransSegs InErrs\n\
                     Tcp: -1 7 8 9 10\nUdp: InDatagrams\nUdp: 3\n";
        let row = tcp(text).unwrap();
        assert_eq!((row[1], row[5], row[8], row[2]), (Some(7), Some(8), Some(9), Some(10)));
        assert_eq!((row[0], tcp(b"Ip: 1\n")), (None, None));
    }
}
