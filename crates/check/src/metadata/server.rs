//! Requests of an NFS client to its server, by procedure, as the kernel counts them for each mount.

use std::collections::BTreeMap;
use std::path::Path;

use blockstone_sys::proc::text;

/// Numbers of requests by procedure: `READDIR`, `GETATTR`.
pub type Requests = BTreeMap<String, u64>;

/// Procedures that keep a session alive and belong to no operation.
const UPKEEP: [&str; 3] = ["NULL", "RENEW", "SEQUENCE"];

/// Returns the requests of the mount at this mount point so far; `None` if it is not NFS.
pub fn requests(mount_point: &str) -> Option<Requests> {
    requests_in(&text(Path::new("/proc/self/mountstats"))?, mount_point)
}

/// Returns the requests made between two counts.
pub fn since(now: Requests, then: &Requests) -> Requests {
    let more = now.into_iter().map(|(name, count)| {
        let before = then.get(&name).copied().unwrap_or_default();
        (name, count.saturating_sub(before))
    });
    more.filter(|(_, count)| *count > 0).collect()
}

/// Parses the requests. Of several mounts at the same mount point, uses the last.
fn requests_in(text: &str, mount_point: &str) -> Option<Requests> {
    let wanted = format!(" mounted on {} with fstype nfs", escaped(mount_point));
    let mut found = None;
    for mount in text.split("device ").filter(|it| it.contains(&wanted)) {
        let (_, counts) = mount.split_once("per-op statistics")?;
        let counts = counts.lines().filter_map(|line| {
            let (name, numbers) = line.trim().split_once(':')?;
            let count = numbers.split_whitespace().next()?.parse::<u64>().ok()?;
            (!UPKEEP.contains(&name)).then(|| (name.to_owned(), count))
        });
        found = Some(counts.collect());
    }
    found
}

/// Escapes a path as the kernel does there.
fn escaped(path: &str) -> String {
    let letter = |it: char| match it {
        ' ' | '\t' | '\n' | '\\' => format!("\\{:03o}", u32::from(it)),
        it => it.to_string(),
    };
    path.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_mount_are_counted_by_procedure() {
        let text = "device proc mounted on /proc with fstype proc\n\
            device 10.0.2.2:/export mounted on /a with fstype nfs4 statvers=1.1\n\
            \topts:\trw,vers=4.1\n\txprt:\ttcp 0 1\n\
            \tper-op statistics\n\
            \t        NULL: 1 1 0 44 24 0 0 0 0\n\
            \t     GETATTR: 7 7 0 1000 1200 0 3 3 0\n\
            \t    SEQUENCE: 9 9 0 1000 1200 0 3 3 0\n\
            \t     READDIR: 3 3 0 600 90000 0 9 9 0\n\n\
            device 10.0.2.2:/export mounted on /b\\040c with fstype nfs4 statvers=1.1\n\
            \tper-op statistics\n\
            \t     GETATTR: 2 2 0 1000 1200 0 3 3 0\n";
        let counts = |pairs: &[(&str, u64)]| -> Requests {
            pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let first = requests_in(text, "/a").unwrap();
        assert_eq!(first, counts(&[("GETATTR", 7), ("READDIR", 3)]));
        assert_eq!(requests_in(text, "/b c"), Some(counts(&[("GETATTR", 2)])));
        assert_eq!(requests_in(text, "/proc"), None);
        let later = counts(&[("GETATTR", 7), ("LOOKUP", 2), ("READDIR", 4)]);
        assert_eq!(since(later, &first), counts(&[("LOOKUP", 2), ("READDIR", 1)]));
    }
}
