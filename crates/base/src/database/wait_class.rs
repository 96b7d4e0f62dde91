//! Which class an event is of, where the database itself does not say.

/// Events that are no waits, as [`RUN_QUEUE`].
pub const CPU: &str = "CPU";
pub const RUN_QUEUE: &str = "run queue";
/// Time of a call in which a server did not work for it: on the way, or with the client.
pub const NETWORK: &str = "network and client";

/// Waits for locks on rows, which MariaDB and MySQL count and time without an event: in samples of
/// the server's events, a session that waits so is at work.
pub const ROW_LOCK: &str = "Lock/row lock";

/// Where the kernel shows a thread of a server blocked, and how that is listed where no event of
/// the server covers it.
pub const BLOCKED_IN: [(&str, &str); 7] = [
    ("read", "IO/read, seen by the kernel"),
    ("write", "IO/write, seen by the kernel"),
    ("flush", "IO/flush, seen by the kernel"),
    ("futex", "Lock/futex, seen by the kernel"),
    ("sleep", "sleep, seen by the kernel"),
    ("fault", "page fault, seen by the kernel"),
    ("other", "other call, seen by the kernel"),
];

/// What else the kernel shows of such a thread: it waits for its client, or it is on a processor or
/// ready for one.
pub const PEER: &str = "peer";
pub const RUNNING: &str = "running";

/// The classes as Oracle's `V$EVENT_NAME` has them.
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
        // PostgreSQL waits for a read that another process does for it, or has done.
        "IPC/AioIoCompletion" => "User I/O",
        // Names of PostgreSQL, and of MariaDB's performance schema, begin with their class.
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
