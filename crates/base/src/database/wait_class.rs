//! Which class an event is of, where the database itself does not say.

/// Events that are no waits, as [`RUN_QUEUE`].
pub const CPU: &str = "CPU";
pub const RUN_QUEUE: &str = "run queue";
/// Time of a call in which a server did not work for it: on the way, or with the client.
pub const NETWORK: &str = "network and client";

/// The classes as Oracle's `V$EVENT_NAME` has them.
pub fn wait_class(event: &str) -> &'static str {
    match event {
        CPU => "CPU",
        RUN_QUEUE => "Run queue",
        "db file sequential read"
        | "db file scattered read"
        | "direct path read"
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
