//! Wait class of an event, for databases that do not report one.

/// Events that are not waits, such as [`RUN_QUEUE`].
pub const CPU: &str = "CPU";
pub const RUN_QUEUE: &str = "run queue";
/// Time of a call in which the server was not working on it: in transit, or with the client.
pub const NETWORK: &str = "network and client";

/// Waits for row locks, which MariaDB and MySQL count and time without an event: in samples of the
/// server's events, a session in such a wait appears to be working.
pub const ROW_LOCK: &str = "Lock/row lock";

/// Places where the kernel shows a server thread blocked, and the names under which they are listed
/// if no event of the server covers them.
pub const BLOCKED_IN: [(&str, &str); 7] = [
    ("read", "IO/read, seen by the kernel"),
    ("write", "IO/write, seen by the kernel"),
    ("flush", "IO/flush, seen by the kernel"),
    ("futex", "Lock/futex, seen by the kernel"),
    ("sleep", "sleep, seen by the kernel"),
    ("fault", "page fault, seen by the kernel"),
    ("other", "other call, seen by the kernel"),
];

/// Other states of such a thread in the kernel: it waits for its client, or it is on a processor or
/// ready to run.
pub const PEER: &str = "peer";
pub const RUNNING: &str = "running";

/// Returns the class of an event, as in Oracle's `V$EVENT_NAME`.
pub fn wait_class(event: &str) -> &'static str {
    match event {
        CPU => "CPU",
        RUN_QUEUE => "Run queue",
        "db file sequential read"
        | "db file scattered read"
        | "direct path read"
        | "direct path write"
        | "direct path sync"
        | "read by other session" => "User I/O",
        "db file parallel write" | "log file parallel write" | "control file parallel write" => {
            "System I/O"
        }
        "log file sync" => "Commit",
        "free buffer waits" | "write complete waits" | "log buffer space" => "Configuration",
        "buffer busy waits" => "Concurrency",
        event if event.starts_with("log file switch") => "Configuration",
        event if event.starts_with("latch") => "Concurrency",
        "commit" | "stage/sql/Commit" => "Commit",
        NETWORK => "Network",
        // PostgreSQL waits for a read that another process performs for it, or has performed.
        "IPC/AioIoCompletion" => "User I/O",
        // Event names of PostgreSQL and of MariaDB's performance schema begin with their class.
        event if event.starts_with("IO/") || event.starts_with("wait/io/") => "User I/O",
        event
            if ["Lock/", "LWLock/", "wait/lock/", "wait/synch/"]
                .iter()
                .any(|class| event.starts_with(class)) =>
        {
            "Concurrency"
        }
        _ => "Other",
    }
}
