//! The mechanics of a hard disk: seek, rotation and transfer.

use super::HardwareError;

/// Default size of a random request.
pub const BLOCK_BYTES: f64 = 8192.0;
/// Size of the requests of a scan, for the number of disks that one touches.
const SCAN_BYTES: f64 = 1_048_576.0;
/// A unit with more IOPS is not a disk: it serves several requests in parallel.
pub const DISK_IOPS_MAX: f64 = 500.0;
/// Entries per index block if the keys are numbers.
pub const ENTRIES: f64 = 400.0;

/// A disk as its data sheet describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    pub rpm: f64,
    /// Mean seek between two random positions on the whole disk.
    pub seek_s: f64,
    pub seek_track_s: f64,
    /// Transfer rate of the medium.
    pub mbps: f64,
}

/// Service time of a random request if only a share of the stroke is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    pub share: f64,
    pub seek_s: f64,
    pub rotation_s: f64,
    pub transfer_s: f64,
    pub iops: f64,
}

/// Throughput of a scan that seeks for each allocation unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan {
    pub unit_bytes: f64,
    pub mbps: f64,
    /// Mean number of disks that a request of 1 MiB touches.
    pub disks: f64,
}

impl Disk {
    fn check(&self) -> Result<(), HardwareError> {
        super::positive("revolutions a minute", self.rpm)?;
        super::amount("the mean seek", self.seek_s)?;
        super::amount("the seek to the next track", self.seek_track_s)?;
        super::positive("MB/s off the medium", self.mbps)
    }

    /// Returns the mean seek between two random positions within a share of the stroke.
    ///
    /// The arm accelerates for half of the way, so the seek time grows with the square root of the
    /// distance.
    fn seek_within_s(&self, stroke: f64) -> f64 {
        let further = (self.seek_s - self.seek_track_s).max(0.0);
        self.seek_track_s + further * stroke.sqrt()
    }

    /// Returns the time of half a revolution, the mean wait for a sector.
    pub fn rotation_s(&self) -> f64 {
        30.0 / self.rpm
    }

    /// Returns the time of one random request. `stroke` is the used share of the disk: the rest is
    /// stranded, but seeks are shorter.
    pub fn service_s(&self, bytes: f64, stroke: f64) -> Result<f64, HardwareError> {
        self.check()?;
        super::positive("the request in bytes", bytes)?;
        super::share("the stroke that is used", stroke)?;
        Ok(self.seek_within_s(stroke) + self.rotation_s() + bytes / (self.mbps * 1e6))
    }

    /// Returns the random requests per second, one after the other.
    pub fn iops(&self, bytes: f64, stroke: f64) -> Result<f64, HardwareError> {
        Ok(1.0 / self.service_s(bytes, stroke)?)
    }

    /// Returns the MB/s of a scan on a disk shared by several streams: between two allocation units
    /// the arm is moved elsewhere.
    pub fn scan_mbps(&self, allocation_unit_bytes: f64, stroke: f64) -> Result<f64, HardwareError> {
        Ok(allocation_unit_bytes / self.service_s(allocation_unit_bytes, stroke)? / 1e6)
    }
}

/// Returns the whole stroke and parts of it, for requests of a block.
pub fn strokes(disk: &Disk) -> Vec<Stroke> {
    let of = |share: f64| {
        Some(Stroke {
            share,
            seek_s: disk.seek_within_s(share),
            rotation_s: disk.rotation_s(),
            transfer_s: BLOCK_BYTES / (disk.mbps * 1e6),
            iops: disk.iops(BLOCK_BYTES, share).ok()?,
        })
    };
    [1.0, 0.5, 0.25, 0.1].into_iter().filter_map(of).collect()
}

/// Returns scans by allocation unit, on this share of the stroke.
pub fn scans(disk: &Disk, stroke: f64) -> Vec<Scan> {
    let of = |unit_bytes: f64| {
        let mbps = disk.scan_mbps(unit_bytes, stroke).ok()?;
        let disks = disks_of_request(SCAN_BYTES, unit_bytes, BLOCK_BYTES).ok()?;
        Some(Scan { unit_bytes, mbps, disks })
    };
    [0.125, 1.0, 4.0, 16.0].into_iter().filter_map(|mib| of(mib * 1_048_576.0)).collect()
}

/// Returns the mean number of disks that a request of this size touches if it begins at any
/// multiple of `step_bytes`: the larger the allocation unit, the fewer requests are split.
pub fn disks_of_request(
    request_bytes: f64,
    allocation_unit_bytes: f64,
    step_bytes: f64,
) -> Result<f64, HardwareError> {
    super::positive("the request in bytes", request_bytes)?;
    super::positive("the allocation unit in bytes", allocation_unit_bytes)?;
    super::positive("the step in bytes", step_bytes)?;
    Ok(1.0 + (request_bytes - step_bytes.min(request_bytes)) / allocation_unit_bytes)
}

/// Returns the single-block reads that find one row of `rows` by an index with `entries` per block:
/// its levels, and the block of the table.
pub fn reads_by_index(rows: f64, entries: f64) -> Option<u32> {
    if !(rows >= 1.0 && rows.is_finite() && entries >= 2.0) {
        return None;
    }
    let levels = (rows.ln() / entries.ln() - 1e-9).ceil().max(1.0);
    Some(levels as u32 + 1)
}

/// Returns how many of `units` fail per year, from the mean time between failures of a data sheet.
pub fn failures_per_year(units: f64, mtbf_h: f64) -> Option<f64> {
    let failures = units * 8766.0 / mtbf_h;
    (units >= 0.0 && mtbf_h > 0.0 && failures.is_finite()).then_some(failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAS_15K: Disk = Disk { rpm: 15_000.0, seek_s: 0.0035, seek_track_s: 0.0002, mbps: 160.0 };

    #[test]
    fn a_fast_disk_does_about_180_and_a_slow_one_less_than_half() {
        let fast = SAS_15K.iops(8192.0, 1.0).unwrap();
        assert!((178.0..182.0).contains(&fast), "{fast}");
        let slow = Disk { rpm: 7_200.0, seek_s: 0.0086, ..SAS_15K };
        let slow = slow.iops(8192.0, 1.0).unwrap();
        assert!((70.0..85.0).contains(&slow), "{slow}");
    }

    #[test]
    fn short_strokes_and_large_units_help() {
        let disk = SAS_15K;
        let of = |share: f64| strokes(&disk).into_iter().find(|it| it.share <= share).unwrap();
        assert!(of(0.1).seek_s < of(1.0).seek_s / 2.0 && of(0.1).rotation_s >= 0.002);
        assert!(scans(&disk, 1.0).windows(2).all(|it| it[1].mbps > it[0].mbps));
        assert!(disk.iops(8192.0, 0.25).unwrap() > 1.3 * disk.iops(8192.0, 1.0).unwrap());
        let scan = |mib: f64| disk.scan_mbps(mib * 1_048_576.0, 1.0).unwrap();
        assert!(scan(4.0) > scan(1.0) && scan(4.0) < disk.mbps);
        // 1 MiB at steps of 8 KiB on units of 1 MiB: 127 of 128 offsets touch two disks.
        let disks = disks_of_request(1_048_576.0, 1_048_576.0, 8192.0);
        assert_eq!(disks, Ok(1.0 + 127.0 / 128.0));
        assert_eq!(disks_of_request(8192.0, 1_048_576.0, 8192.0), Ok(1.0));
    }

    #[test]
    fn nonsense_is_an_error() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(SAS_15K.iops(bad, 1.0).is_err());
            assert!(SAS_15K.iops(8192.0, bad).is_err());
            assert!(Disk { rpm: bad, ..SAS_15K }.iops(8192.0, 1.0).is_err());
            assert!(disks_of_request(bad, 1.0, 1.0).is_err());
        }
    }
}
