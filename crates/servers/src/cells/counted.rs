//! Counters of processes and connections at one moment, and their changes.

use std::path::Path;

use blockstone_sys::tcp::Socket;
use blockstone_sys::{account, netns, tcp};

use crate::sql::error::SqlError;

/// Cumulative counters at one moment.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Bytes on the interface of the namespace; `None` outside a namespace.
    pub interface_bytes: Option<u64>,
    pub ends: Ends,
    /// Table blocks that were not in the cells' shared buffers, as reported by the cells.
    pub buffer_reads: u64,
    /// Table blocks that were in the shared buffers.
    pub buffer_hits: u64,
    /// Processor time of the backends: the host's, then that of each cell.
    pub cpu_ns: Vec<Option<u64>>,
    /// Bytes returned by read system calls of each cell's backend, and bytes read from storage.
    pub io: Vec<Option<(u64, u64)>>,
}

/// Both ends of the connections between host and cells.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    pub host: Vec<Socket>,
    pub cells: Vec<Socket>,
}

/// Resources used by one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The first row of the answer.
    pub answer: Vec<String>,
    pub seconds: f64,
    /// Blocks of the table that the cells read into their shared buffers.
    pub buffer_reads: u64,
    /// Blocks of the table found in the shared buffers.
    pub buffer_hits: u64,
    /// Bytes returned by the cells' read system calls, as counted by the kernel.
    pub file_bytes: Option<u64>,
    /// Bytes read from storage rather than from the page cache.
    pub storage_bytes: Option<u64>,
    /// Payload bytes from the cells to the host, without retransmissions.
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Payload bytes retransmitted by either end.
    pub resent_bytes: u64,
    /// Payload including retransmissions, and headers, in both directions.
    pub wire_bytes: u64,
    /// The same as counted by the interface; `None` outside a network namespace.
    pub interface_bytes: Option<u64>,
    pub host_cpu_ns: Option<u64>,
    pub cell_cpu_ns: Option<u64>,
}

impl Moved {
    pub fn between(
        before: &Counted,
        after: &Counted,
        (answer, seconds): (Vec<String>, f64),
    ) -> Self {
        let mut moved = Self {
            answer,
            seconds,
            buffer_reads: after.buffer_reads.saturating_sub(before.buffer_reads),
            buffer_hits: after.buffer_hits.saturating_sub(before.buffer_hits),
            file_bytes: None,
            storage_bytes: None,
            received_bytes: 0,
            sent_bytes: 0,
            resent_bytes: 0,
            wire_bytes: 0,
            interface_bytes: after
                .interface_bytes
                .zip(before.interface_bytes)
                .map(|(after, before)| after.saturating_sub(before)),
            host_cpu_ns: None,
            cell_cpu_ns: None,
        };
        let before_ends = before.ends.host.iter().chain(&before.ends.cells);
        let before_ends: Vec<&Socket> = before_ends.collect();
        let after_ends = after.ends.host.iter().map(|it| (it, true));
        for (socket, host) in after_ends.chain(after.ends.cells.iter().map(|it| (it, false))) {
            let was = before_ends.iter().find(|it| it.cookie == socket.cookie).copied();
            let since = |of: fn(&Socket) -> u64| of(socket) - was.map_or(0, of);
            let sent = since(|it| it.sent_bytes);
            if host {
                moved.received_bytes += since(|it| it.received_bytes);
                moved.sent_bytes += sent - since(|it| it.resent_bytes);
            }
            moved.resent_bytes += since(|it| it.resent_bytes);
            // The counter of segments wraps at 2³².
            let segments = socket.sent_segments.wrapping_sub(was.map_or(0, |it| it.sent_segments));
            moved.wire_bytes += sent + u64::from(segments) * u64::from(socket.header_bytes);
        }
        let cpu: Vec<Option<u64>> = after
            .cpu_ns
            .iter()
            .zip(&before.cpu_ns)
            .map(|(after, before)| (*after)?.checked_sub((*before)?))
            .collect();
        moved.host_cpu_ns = cpu.first().copied().flatten();
        moved.cell_cpu_ns = cpu.iter().skip(1).copied().sum();
        let io = after.io.iter().zip(&before.io);
        let io: Option<Vec<(u64, u64)>> = io
            .map(|(after, before)| {
                let (after, before) = (after.as_ref()?, before.as_ref()?);
                Some((after.0.checked_sub(before.0)?, after.1.checked_sub(before.1)?))
            })
            .collect();
        moved.file_bytes = io.as_ref().map(|io| io.iter().map(|it| it.0).sum());
        moved.storage_bytes = io.map(|io| io.iter().map(|it| it.1).sum());
        moved
    }
}

/// Waits until the connections to these ports are quiet and returns both of their ends. With
/// `apart`, all servers are in a network namespace of the calling thread, and the bytes on its
/// interface are returned too.
pub fn connections(ports: &[u16], apart: bool) -> Result<(Option<u64>, Ends), SqlError> {
    const COUNTERS: &str = "read the counters of connections";
    let failed = |what: &'static str| {
        move |error: std::io::Error| SqlError::Program {
            what: what.to_owned(),
            why: error.to_string(),
            hint: "Linux 4.19 and later count what is needed".to_owned(),
        }
    };
    let to_cells = |socket: &Socket| ports.contains(&socket.remote.port());
    let from_cells = |socket: &Socket| ports.contains(&socket.local.port());
    let interface = if apart {
        let bytes = || netns::loopback().map(|traffic| traffic.received_bytes);
        Some(tcp::quiet(bytes).map_err(failed("read the counters of the interface"))?)
    } else {
        let sum = || {
            let sockets = tcp::sockets()?;
            Ok(sockets.iter().filter(|it| to_cells(it)).map(|it| it.received_bytes).sum())
        };
        tcp::quiet(sum).map_err(failed(COUNTERS))?;
        None
    };
    let sockets = tcp::sockets().map_err(failed(COUNTERS))?;
    let (host, others): (Vec<_>, Vec<_>) = sockets.into_iter().partition(to_cells);
    Ok((interface, Ends { host, cells: others.into_iter().filter(from_cells).collect() }))
}

/// Returns the bytes returned by read system calls of a process, and those read from storage;
/// `None` if this user may not see them.
pub fn io_of(pid: u32) -> Option<(u64, u64)> {
    let io = account::account(Path::new("/"), pid, None)?.io?;
    Some((io.requested_read_bytes, io.read_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(cookie: u64, bytes: u64, segments: u32) -> Socket {
        let any = "127.0.0.1:1".parse().unwrap();
        Socket {
            local: any,
            remote: any,
            cookie,
            sent_bytes: bytes / 10,
            received_bytes: bytes,
            resent_bytes: 0,
            sent_segments: segments,
            received_segments: segments,
            header_bytes: 52,
        }
    }

    #[test]
    fn a_statement_is_charged_with_what_moved() {
        let counted = |host: Vec<Socket>, cells: Vec<Socket>, cpu: u64| Counted {
            interface_bytes: Some(cpu * 10),
            ends: Ends { host, cells },
            buffer_reads: cpu,
            buffer_hits: 0,
            cpu_ns: vec![Some(cpu), Some(cpu * 2), Some(cpu * 3)],
            io: vec![Some((cpu, 0)), Some((cpu, 1))],
        };
        let before = counted(vec![socket(1, 1000, u32::MAX)], vec![socket(9, 1000, 5)], 5);
        // One counter wrapped, and one socket was connected in between.
        let host = vec![socket(1, 3000, 1), socket(2, 100, 3)];
        let after = counted(host, vec![socket(9, 21_000, 9)], 8);
        let moved = Moved::between(&before, &after, (Vec::new(), 1.0));
        assert_eq!((moved.received_bytes, moved.sent_bytes), (2100, 210));
        assert_eq!(moved.wire_bytes, 210 + 2000 + (2 + 3 + 4) * 52);
        assert_eq!(moved.interface_bytes, Some(30));
        assert_eq!((moved.host_cpu_ns, moved.cell_cpu_ns), (Some(3), Some(15)));
        assert_eq!((moved.file_bytes, moved.storage_bytes), (Some(6), Some(0)));
        let unseen =
            Counted { cpu_ns: vec![Some(9), None, Some(9)], io: vec![None, None], ..after };
        let moved = Moved::between(&before, &unseen, (Vec::new(), 1.0));
        assert_eq!((moved.cell_cpu_ns, moved.file_bytes), (None, None), "unmeasured is not zero");
    }
}
