//! Work of the storage for one write of the database.

use std::fmt;
use std::str::FromStr;

use super::HardwareError;

/// Protection of the data, and its cost. The penalty applies once, to all writes: a database's
/// count of writes includes each member of a redo log, but no mirror copies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Redundancy {
    /// None, or that of an array whose IOPS are stated as the host sees them.
    #[default]
    External,
    /// Two copies, written by the host.
    Normal,
    /// Three copies, written by the host.
    High,
    Raid10,
    /// A small write reads and writes data and parity: four I/Os.
    Raid5 {
        disks: u32,
    },
    /// A small write also reads and writes a second parity: six I/Os.
    Raid6 {
        disks: u32,
    },
    Replicas(u32),
    /// A penalty stated by the user; data take up space by the same factor.
    Penalty(f64),
}

const HINT: &str = "external, normal, high, raid10, raid5, raid6, raid5:DISKS, raid6:DISKS, \
     replicas:N, or a number from 1 to 100";

impl Redundancy {
    /// Returns the I/Os of the storage for one write.
    pub fn penalty(self) -> f64 {
        match self {
            Self::External => 1.0,
            Self::Normal | Self::Raid10 => 2.0,
            Self::High => 3.0,
            Self::Raid5 { .. } => 4.0,
            Self::Raid6 { .. } => 6.0,
            Self::Replicas(copies) => f64::from(copies),
            Self::Penalty(penalty) => penalty,
        }
    }

    /// Returns the bytes stored for one byte of data.
    pub fn copies(self) -> f64 {
        let parity = |disks: u32, parity: u32| {
            f64::from(disks) / f64::from(disks.saturating_sub(parity).max(1))
        };
        match self {
            Self::Raid5 { disks } => parity(disks, 1),
            Self::Raid6 { disks } => parity(disks, 2),
            other => other.penalty(),
        }
    }

    /// Returns how many times a written byte crosses the link between host and storage: arrays
    /// mirror and compute parity behind it.
    pub fn over_link(self) -> f64 {
        match self {
            Self::Normal | Self::High | Self::Replicas(_) => self.copies(),
            Self::External
            | Self::Raid10
            | Self::Raid5 { .. }
            | Self::Raid6 { .. }
            | Self::Penalty(_) => 1.0,
        }
    }

    /// Returns the I/Os per second of the storage: reads + penalty × writes.
    pub fn hardware_iops(self, reads_per_s: f64, writes_per_s: f64) -> f64 {
        reads_per_s + self.penalty() * writes_per_s
    }

    /// Returns the writes per second that the database can issue if the storage delivers `iops`.
    pub fn workload_writes(self, iops: f64) -> f64 {
        iops / self.penalty()
    }

    /// Returns one level less and one level more, if they exist.
    pub fn neighbours(self) -> [Option<Self>; 2] {
        match self {
            Self::External => [None, Some(Self::Normal)],
            Self::Normal => [Some(Self::External), Some(Self::High)],
            Self::High => [Some(Self::Normal), None],
            Self::Raid10 => [None, Some(Self::Raid6 { disks: 8 })],
            Self::Raid5 { disks } => [None, Some(Self::Raid6 { disks: disks.saturating_add(1) })],
            Self::Raid6 { disks } => [Some(Self::Raid5 { disks: disks.saturating_sub(1) }), None],
            Self::Replicas(copies) => [
                (copies > 1).then(|| Self::Replicas(copies - 1)),
                copies.checked_add(1).map(Self::Replicas),
            ],
            Self::Penalty(_) => [None, None],
        }
    }
}

impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::External => f.write_str("external"),
            Self::Normal => f.write_str("normal"),
            Self::High => f.write_str("high"),
            Self::Raid10 => f.write_str("raid10"),
            Self::Raid5 { disks } => write!(f, "raid5:{disks}"),
            Self::Raid6 { disks } => write!(f, "raid6:{disks}"),
            Self::Replicas(copies) => write!(f, "replicas:{copies}"),
            Self::Penalty(penalty) => write!(f, "penalty {penalty}"),
        }
    }
}

impl FromStr for Redundancy {
    type Err = HardwareError;

    fn from_str(text: &str) -> Result<Self, HardwareError> {
        let unknown = || HardwareError::Redundancy(text.to_owned(), HINT);
        let (name, count) = match text.split_once(':') {
            Some((name, count)) => (name, Some(count.parse::<u32>().map_err(|_| unknown())?)),
            None => (text, None),
        };
        let count_from = |least: u32, default: u32| {
            let count = count.unwrap_or(default);
            if (least..=1000).contains(&count) { Ok(count) } else { Err(unknown()) }
        };
        match (name, count) {
            ("external", None) => Ok(Self::External),
            ("normal", None) => Ok(Self::Normal),
            ("high", None) => Ok(Self::High),
            ("raid10", None) => Ok(Self::Raid10),
            ("raid5", _) => Ok(Self::Raid5 { disks: count_from(3, 5)? }),
            ("raid6", _) => Ok(Self::Raid6 { disks: count_from(4, 8)? }),
            ("replicas", Some(_)) => Ok(Self::Replicas(count_from(1, 1)?)),
            (number, None) => match number.parse::<f64>() {
                Ok(penalty) if (1.0..=100.0).contains(&penalty) => Ok(Self::Penalty(penalty)),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::hint::Hint as _;

    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for name in ["external", "normal", "high", "raid10", "raid5:8", "raid6:10", "replicas:3"] {
            assert_eq!(name.parse::<Redundancy>().unwrap().to_string(), name);
        }
        assert_eq!("raid5".parse(), Ok(Redundancy::Raid5 { disks: 5 }));
        assert_eq!("2.5".parse(), Ok(Redundancy::Penalty(2.5)));
        for bad in ["", "raid5:2", "raid5:x", "replicas", "replicas:0", "0.5", "NaN", "inf", "low"]
        {
            let error = bad.parse::<Redundancy>().unwrap_err().told();
            assert!(error.contains("\nhint: "), "{bad}: {error}");
        }
    }

    #[test]
    fn penalties_and_space() {
        let of = |name: &str| name.parse::<Redundancy>().unwrap();
        let names = ["external", "normal", "high", "raid10", "raid5", "raid6", "replicas:3"];
        let penalties: Vec<f64> = names.iter().map(|name| of(name).penalty()).collect();
        assert_eq!(penalties, [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 3.0]);
        assert_eq!((of("raid5:5").copies(), of("raid6:8").copies()), (1.25, 8.0 / 6.0));
        assert_eq!((of("normal").over_link(), of("raid10").over_link()), (2.0, 1.0));
    }
}
