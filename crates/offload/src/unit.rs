//! Units of counters of bytes.

use blockstone_base::named;

named! {
    /// Unit of the counters of bytes in a table.
    Unit {
        Bytes = "B",
        Kb = "KB",
        Mb = "MB",
        Gb = "GB",
        Tb = "TB",
        Kib = "KiB",
        Mib = "MiB",
        Gib = "GiB",
        Tib = "TiB",
    }
}

impl Unit {
    pub fn bytes(self) -> f64 {
        match self {
            Self::Bytes => 1.0,
            Self::Kb => 1e3,
            Self::Mb => 1e6,
            Self::Gb => 1e9,
            Self::Tb => 1e12,
            Self::Kib => 1024.0,
            Self::Mib => 1_048_576.0,
            Self::Gib => 1_073_741_824.0,
            Self::Tib => 1_099_511_627_776.0,
        }
    }

    pub fn of(text: &str) -> Option<Self> {
        let is_it = |unit: &&Self| unit.name().eq_ignore_ascii_case(text);
        match text.to_ascii_lowercase().as_str() {
            "byte" | "bytes" => Some(Self::Bytes),
            _ => Self::ALL.iter().find(is_it).copied(),
        }
    }
}
