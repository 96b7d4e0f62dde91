//! Classifies where answers came from, by what was counted.

use crate::metadata::findings::{Class, Moved, Operation};

use super::server::Requests;

/// Least bytes that an answer from storage takes: a directory entry has at least as many, an inode
/// ten times as many.
const LEAST_BYTES: f64 = 16.0;
/// Maximum number of durable operations per write of the device: a group of ranks shares a journal
/// commit.
const SHARED: u64 = 64;
/// Requests to a server per operation that it answered, and per operation that memory answered:
/// attributes of a directory are requested occasionally.
const SERVED_LEAST: f64 = 0.5;
const CACHED_MOST: f64 = 0.01;

/// Observations of operations.
#[derive(Clone, Copy, Debug)]
pub struct OperationEvidence<'a> {
    pub operation: Operation,
    pub operations: u64,
    pub error: Option<&'a str>,
    /// Whether the file system keeps its files in memory.
    pub in_memory: bool,
    /// Why reads of this file system are not charged to the process that causes them, if they are
    /// not.
    pub elsewhere: Option<&'a str>,
    /// Requests to a server, if they are counted.
    pub asked: Option<&'a Requests>,
    pub bytes_read: Option<u64>,
    pub moved: Option<Moved>,
}

pub fn classify(seen: &OperationEvidence<'_>) -> (Class, String) {
    if seen.operations == 0 {
        let error = seen.error.unwrap_or("there was no time for it");
        return (Class::Unknown, format!("none succeeded: {error}"));
    }
    if seen.in_memory {
        return (Class::Cached, "the file system keeps its files in memory".to_owned());
    }
    if let Some(asked) = seen.asked {
        return served(seen, asked);
    }
    if let Some(why) = seen.elsewhere {
        return (Class::Unknown, why.to_owned());
    }
    if seen.operation.is_durable() { durable(seen) } else { read(seen) }
}

/// Classifies operations on a server: a listing has many entries from one request, other operations
/// at least one request each.
fn served(seen: &OperationEvidence<'_>, asked: &Requests) -> (Class, String) {
    let total: u64 = asked.values().sum();
    let lists = matches!(seen.operation, Operation::Readdir | Operation::ReaddirStat);
    let is_listed = lists && asked.keys().any(|name| name.starts_with("READDIR"));
    let each = total as f64 / seen.operations as f64;
    let class = if is_listed || each >= SERVED_LEAST {
        Class::Server
    } else if each >= CACHED_MOST {
        Class::Unknown
    } else {
        Class::Cached
    };
    let mut most: Vec<(&String, &u64)> = asked.iter().collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let most: Vec<String> = most.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let what = if most.is_empty() { "no request".to_owned() } else { most.join(", ") };
    (class, format!("{what} to the server for {} operations", seen.operations))
}

/// Classifies a durable operation, which returns when the device has the data.
fn durable(seen: &OperationEvidence<'_>) -> (Class, String) {
    let Some(moved) = seen.moved else {
        return (Class::Unknown, "the writes of the device are not seen".to_owned());
    };
    let evidence = format!(
        "{} writes and {} flushes of the device for {} operations",
        moved.writes, moved.flushes, seen.operations
    );
    let class = match moved.writes {
        0 => Class::Cached,
        writes if writes * SHARED >= seen.operations => Class::Storage,
        _ => Class::Unknown,
    };
    (class, evidence)
}

fn read(seen: &OperationEvidence<'_>) -> (Class, String) {
    let Some(bytes) = seen.bytes_read else {
        return (Class::Unknown, "what was read is not counted".to_owned());
    };
    let each = bytes as f64 / seen.operations as f64;
    let evidence = format!("{bytes} bytes read for {} operations, {each:.0} each", seen.operations);
    let class = if bytes == 0 || !seen.operation.reads() && each < LEAST_BYTES {
        Class::Cached
    } else if each >= LEAST_BYTES {
        Class::Storage
    } else {
        Class::Unknown
    };
    (class, evidence)
}

/// Returns why reads of a file system of this type are not charged to the process that causes them.
pub fn elsewhere(kind: &str) -> Option<&'static str> {
    const SERVED: [&str; 11] = [
        "nfs", "nfs4", "cifs", "smb3", "virtiofs", "9p", "ceph", "afs", "lustre", "gpfs", "vboxsf",
    ];
    if SERVED.contains(&kind) || kind.starts_with("fuse") {
        return Some("a server answers: what it, or this machine, caches is not seen here");
    }
    (kind == "zfs").then_some("ZFS has caches of its own, and reads in threads of its own")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(
        operation: Operation,
        bytes_read: Option<u64>,
        writes: u64,
    ) -> OperationEvidence<'static> {
        let moved = Some(Moved { writes, flushes: writes, ..Moved::default() });
        let (error, elsewhere) = (None, None);
        let operations = 1_000;
        let asked = None;
        OperationEvidence {
            operation,
            operations,
            error,
            in_memory: false,
            elsewhere,
            asked,
            bytes_read,
            moved,
        }
    }

    #[test]
    fn requests_to_a_server_tell_what_memory_answered() {
        let of = |operation, asked: &[(&str, u64)]| {
            let asked = asked.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            classify(&OperationEvidence {
                elsewhere: elsewhere("nfs4"),
                asked: Some(&asked),
                ..seen(operation, Some(0), 0)
            })
        };
        let class = |operation, asked: &[(&str, u64)]| of(operation, asked).0;
        assert_eq!(class(Operation::Stat, &[("LOOKUP", 1_000)]), Class::Server);
        assert_eq!(class(Operation::Stat, &[("GETATTR", 100)]), Class::Unknown);
        assert_eq!(class(Operation::Stat, &[("GETATTR", 3)]), Class::Cached);
        assert_eq!(class(Operation::Stat, &[]), Class::Cached);
        assert_eq!(class(Operation::Readdir, &[("READDIRPLUS", 4)]), Class::Server);
        assert_eq!(class(Operation::ReaddirStat, &[("GETATTR", 3)]), Class::Cached);
        let evidence = of(Operation::ReaddirStat, &[("GETATTR", 1), ("READDIR", 8)]).1;
        assert_eq!(evidence, "8 READDIR, 1 GETATTR to the server for 1000 operations");
    }

    #[test]
    fn only_what_was_read_or_made_durable_came_from_storage() {
        let class = |operation, bytes, writes| classify(&seen(operation, bytes, writes)).0;
        assert_eq!(class(Operation::Stat, Some(256_000), 0), Class::Storage);
        assert_eq!(class(Operation::Stat, Some(0), 500), Class::Cached);
        assert_eq!(class(Operation::Stat, Some(4_096), 0), Class::Unknown);
        assert_eq!(class(Operation::Stat, None, 0), Class::Unknown);
        assert_eq!(class(Operation::Create, Some(4_096), 9), Class::Cached);
        assert_eq!(class(Operation::CreateFsync, Some(0), 2_000), Class::Storage);
        assert_eq!(class(Operation::CreateFsync, Some(0), 0), Class::Cached);
        let memory =
            OperationEvidence { in_memory: true, ..seen(Operation::CreateFsync, Some(0), 9) };
        assert_eq!(classify(&memory).0, Class::Cached);
        let served =
            OperationEvidence { elsewhere: elsewhere("nfs4"), ..seen(Operation::Stat, Some(0), 0) };
        assert_eq!(classify(&served).0, Class::Unknown);
        let failed = OperationEvidence {
            operations: 0,
            error: Some("EPERM"),
            ..seen(Operation::Link, None, 0)
        };
        assert_eq!(classify(&failed), (Class::Unknown, "none succeeded: EPERM".to_owned()));
    }
}
