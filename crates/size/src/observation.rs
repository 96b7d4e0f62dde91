//! One interval of one instance, in the units in which people size.

/// Rates are means over the interval. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    pub database: String,
    /// Empty: the whole cluster, or a host.
    pub instance: String,
    /// Wall-clock time of the server, in seconds since 1970 as if it were UTC.
    pub begin_s: f64,
    /// Exact length.
    pub seconds: f64,
    pub reads_per_s: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    pub write_bytes_per_s: Option<f64>,
    pub redo_bytes_per_s: Option<f64>,
    pub redo_writes_per_s: Option<f64>,
    pub commits_per_s: Option<f64>,
    /// Processor time of the database, foreground and background, in cores.
    pub database_cores: Option<f64>,
    /// Processors of the host that were busy.
    pub busy_processors: Option<f64>,
    /// Highest values inside the interval, and the time over which they are means.
    pub most: Option<Most>,
    pub levels: Levels,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Most {
    pub averaging_s: f64,
    pub reads_per_s: Option<f64>,
    pub writes_per_s: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    pub write_bytes_per_s: Option<f64>,
    pub redo_bytes_per_s: Option<f64>,
}

/// At the end of the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levels {
    pub size_bytes: Option<f64>,
    pub memory_bytes: Option<f64>,
    pub sessions: Option<f64>,
    pub cores: Option<f64>,
    pub processors: Option<f64>,
}
