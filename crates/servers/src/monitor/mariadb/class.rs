//! Classifies a session's wait by what the server and the system report of its thread.

use std::path::Path;

use blockstone_sys::proc;

use crate::sql::Member;

#[derive(Clone, Copy, Debug, Default)]
pub struct Signs<'a> {
    /// The session is idle, outside a call.
    pub sleeps: bool,
    /// Its transaction waits for a row lock.
    pub waits_for_row: bool,
    /// Its state in the process list.
    pub stage: &'a str,
    /// Its wait in the performance schema, if waits are recorded.
    pub wait: Option<&'a str>,
    pub has_waits: bool,
    /// Its state in the system: `R` runs, `D` waits for storage, `S` waits for something else.
    pub system: Option<char>,
}

const CPU: &str = "On CPU";

pub fn class(signs: &Signs<'_>) -> Option<(&'static str, String)> {
    let Signs { stage, .. } = *signs;
    let class_of = |class| Some((class, stage.to_owned()));
    if signs.sleeps {
        return Some(("Client", "idle".to_owned()));
    }
    if signs.waits_for_row {
        return Some(("Lock", "row lock".to_owned()));
    }
    match stage {
        "User lock" => return class_of("Lock"),
        "User sleep" => return class_of("Timeout"),
        "Writing to net" | "Reading from net" | "Sending to client" => return class_of("Client"),
        _ if stage.starts_with("Waiting for") && stage.contains("lock") => return class_of("Lock"),
        _ if stage.starts_with("Waiting for") => return class_of("IPC"),
        _ => {}
    }
    if let Some((class, wait)) = signs.wait.and_then(|wait| Some((wait_class(wait)?, wait))) {
        return Some((class, wait.to_owned()));
    }
    match signs.system {
        Some('R') => class_of(CPU),
        Some('D') => class_of("IO"),
        // A commit sleeps while another thread flushes its redo.
        Some('S') if stage.to_lowercase().contains("commit") => class_of("IO"),
        Some('S') => class_of("IPC"),
        _ if signs.has_waits => class_of(CPU),
        _ => None,
    }
}

/// Returns the class of an event of the performance schema; `None` if it is not a wait.
fn wait_class(wait: &str) -> Option<&'static str> {
    const CLASSES: [(&str, &str); 7] = [
        ("wait/io/file/", "IO"),
        ("wait/io/socket/", "Client"),
        ("wait/lock/", "Lock"),
        ("wait/synch/cond/", "IPC"),
        ("wait/synch/", "LWLock"),
        ("idle", "Client"),
        ("wait/io/net/", "Client"),
    ];
    CLASSES.iter().find(|(start, _)| wait.starts_with(start)).map(|(_, class)| *class)
}

pub fn system_state(member: Member) -> Option<char> {
    let thread = member.thread.unwrap_or(member.pid);
    let path = format!("/proc/{}/task/{thread}/stat", member.pid);
    let stat = proc::text(Path::new(&path))?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(signs: Signs<'_>) -> Option<&'static str> {
        class(&signs).map(|(class, _)| class)
    }

    #[test]
    fn locks_are_told_from_latches() {
        let stage = "Waiting for table metadata lock";
        assert_eq!(of(Signs { stage, ..Signs::default() }), Some("Lock"));
        assert_eq!(of(Signs { waits_for_row: true, ..Signs::default() }), Some("Lock"));
        let latch = Some("wait/synch/rwlock/innodb/index_tree_rw_lock");
        assert_eq!(of(Signs { wait: latch, ..Signs::default() }), Some("LWLock"));
        let file = Some("wait/io/file/innodb/innodb_data_file");
        assert_eq!(of(Signs { wait: file, ..Signs::default() }), Some("IO"));
    }

    #[test]
    fn what_the_server_does_not_tell_the_system_does() {
        let stage = "Updating";
        for (system, class) in [('R', "On CPU"), ('D', "IO"), ('S', "IPC")] {
            let signs = Signs { stage, system: Some(system), ..Signs::default() };
            assert_eq!(of(signs), Some(class));
        }
        assert_eq!(of(Signs { stage, has_waits: true, ..Signs::default() }), Some("On CPU"));
        assert_eq!(of(Signs { stage, ..Signs::default() }), None, "unknown");
        let own = Member { pid: std::process::id(), thread: None };
        assert_eq!(system_state(own).map(|state| "RS".contains(state)), Some(true));
    }
}
