//! The content of a simulated disk: the image that reads see, the image that a power loss leaves,
//! and between the two the writes that are not yet durable. Sectors of 512 bytes are atomic;
//! nothing larger is.

use std::collections::HashMap;

use blockstone_base::rng::Rng;

/// The unit that a power loss does not tear.
pub const SECTOR_BYTES: usize = 512;

/// Effect of a power loss on the writes that were not durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// Writes that reached the medium in full.
    pub survived_writes: u64,
    /// Writes that reached the medium only in part.
    pub torn_writes: u64,
    /// Writes that left nothing.
    pub lost_writes: u64,
}

#[derive(Clone, Debug)]
struct Sector {
    version: u64,
    data: [u8; SECTOR_BYTES],
}

#[derive(Debug)]
struct Unsynced {
    version: u64,
    first_sector: u64,
    data: Vec<u8>,
    completed_ns: u64,
    /// A flush of this write failed: it may or may not be on the medium, and no later flush changes
    /// that.
    dropped: bool,
}

/// The two images and the writes between them. Sectors never written read as zeros.
#[derive(Debug, Default)]
pub(super) struct Platter {
    volatile: HashMap<u64, Sector>,
    durable: HashMap<u64, Sector>,
    unsynced: Vec<Unsynced>,
    versions: u64,
}

impl Platter {
    pub fn read(&self, offset_bytes: u64, out: &mut [u8]) {
        let first = first_sector(offset_bytes, out.len());
        for (sector, bytes) in (first..).zip(out.chunks_exact_mut(SECTOR_BYTES)) {
            match self.volatile.get(&sector) {
                Some(held) => bytes.copy_from_slice(&held.data),
                None => bytes.fill(0),
            }
        }
    }

    /// Takes a write that completes at `completed_ns`; returns its version. Reads see it from now
    /// on; a power loss may undo it until it is made durable.
    pub fn write(&mut self, offset_bytes: u64, data: &[u8], completed_ns: u64) -> u64 {
        self.versions += 1;
        let (version, first_sector) = (self.versions, first_sector(offset_bytes, data.len()));
        let write =
            Unsynced { version, first_sector, data: data.to_vec(), completed_ns, dropped: false };
        apply(&mut self.volatile, &write, |_| true);
        self.unsynced.push(write);
        version
    }

    /// Makes durable the writes that had completed by `completed_ns`: a flush does not cover those
    /// in flight when it begins.
    pub fn sync(&mut self, completed_ns: u64) {
        self.make_durable(|write| write.completed_ns <= completed_ns && !write.dropped);
    }

    /// Drops the writes that a failed flush had covered. Reads still see them; a power loss may
    /// undo them.
    pub fn drop_unsynced(&mut self, completed_ns: u64) {
        let covered = self.unsynced.iter_mut().filter(|write| write.completed_ns <= completed_ns);
        covered.for_each(|write| write.dropped = true);
    }

    pub fn sync_one(&mut self, version: u64) {
        self.make_durable(|write| write.version == version);
    }

    fn make_durable(&mut self, covered: impl Fn(&Unsynced) -> bool) {
        let durable = &mut self.durable;
        self.unsynced.retain(|write| {
            let covered = covered(write);
            if covered {
                apply(durable, write, |_| true);
            }
            !covered
        });
    }

    /// Cuts the power: each write that is not durable survives, is torn or is lost, independently
    /// of the ones before it, as a volatile cache is written back in any order.
    pub fn power_loss(&mut self, lost: f64, torn: f64, rng: &mut Rng) -> PowerLoss {
        let mut report = PowerLoss::default();
        for write in std::mem::take(&mut self.unsynced) {
            let (fate, sectors) = (rng.unit(), (write.data.len() / SECTOR_BYTES) as u64);
            if fate < lost {
                report.lost_writes += 1;
            } else if fate < lost + torn && sectors > 1 {
                report.torn_writes += 1;
                // One sector always arrives and one never does; each of the others arrives with
                // even odds.
                let arrives = rng.below(sectors);
                let missing = (arrives + 1 + rng.below(sectors - 1)) % sectors;
                apply(&mut self.durable, &write, |sector| {
                    sector == arrives || (sector != missing && rng.below(2) == 0)
                });
            } else {
                report.survived_writes += 1;
                apply(&mut self.durable, &write, |_| true);
            }
        }
        self.volatile.clone_from(&self.durable);
        report
    }
}

/// Writes the sectors of `write` that `arrives` selects (by their number within the write) to
/// `image`, except where it already holds a later write.
fn apply(image: &mut HashMap<u64, Sector>, write: &Unsynced, mut arrives: impl FnMut(u64) -> bool) {
    for (index, bytes) in (0..).zip(write.data.chunks_exact(SECTOR_BYTES)) {
        let held = image
            .entry(write.first_sector + index)
            .or_insert(Sector { version: 0, data: [0; SECTOR_BYTES] });
        if arrives(index) && held.version < write.version {
            held.version = write.version;
            held.data.copy_from_slice(bytes);
        }
    }
}

fn first_sector(offset_bytes: u64, len: usize) -> u64 {
    assert!(
        len.is_multiple_of(SECTOR_BYTES) && offset_bytes.is_multiple_of(SECTOR_BYTES as u64),
        "{len} bytes at {offset_bytes} are not whole sectors"
    );
    offset_bytes / SECTOR_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockstone_base::rng::Rng;
    use proptest::prelude::{
        Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };

    const SECTORS: u64 = 16;

    #[derive(Clone, Debug)]
    enum Step {
        Write { first: u64, sectors: u64 },
        Dsync { first: u64, sectors: u64 },
        Sync,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let range = (0..SECTORS).prop_flat_map(|first| (Just(first), 1..=SECTORS - first));
        let step = prop_oneof![
            4 => range.clone().prop_map(|(first, sectors)| Step::Write { first, sectors }),
            1 => range.prop_map(|(first, sectors)| Step::Dsync { first, sectors }),
            1 => Just(Step::Sync),
        ];
        prop::collection::vec(step, 0..40)
    }

    proptest! {
        /// After a power loss every sector holds a version that a correct disk may leave: the
        /// newest durable one, or one written after it. Nothing durable is ever lost.
        #[test]
        fn a_power_loss_keeps_what_is_durable_and_invents_nothing(
            steps in steps(),
            seed in any::<u64>(),
        ) {
            let mut platter = Platter::default();
            let mut allowed: Vec<Vec<u8>> = vec![vec![0]; SECTORS as usize];
            for (number, step) in (1_u8..).zip(&steps) {
                match *step {
                    Step::Write { first, sectors } | Step::Dsync { first, sectors } => {
                        let data = vec![number; sectors as usize * SECTOR_BYTES];
                        let version = platter.write(first * SECTOR_BYTES as u64, &data, 0);
                        let range = first as usize..(first + sectors) as usize;
                        if matches!(step, Step::Dsync { .. }) {
                            platter.sync_one(version);
                            allowed[range].iter_mut().for_each(|a| *a = vec![number]);
                        } else {
                            allowed[range].iter_mut().for_each(|a| a.push(number));
                        }
                    }
                    Step::Sync => {
                        platter.sync(0);
                        for versions in &mut allowed {
                            versions.drain(..versions.len() - 1);
                        }
                    }
                }
            }
            let unsynced = platter.unsynced.len() as u64;
            let report = platter.power_loss(0.3, 0.4, &mut Rng::new(seed, 0));
            prop_assert_eq!(
                report.survived_writes + report.torn_writes + report.lost_writes, unsynced);
            let mut image = vec![0; SECTORS as usize * SECTOR_BYTES];
            platter.read(0, &mut image);
            for (sector, versions) in image.chunks(SECTOR_BYTES).zip(&allowed) {
                prop_assert!(versions.contains(&sector[0]), "{} not in {versions:?}", sector[0]);
                prop_assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is atomic");
            }
        }
    }

    #[test]
    fn a_write_in_flight_when_the_flush_begins_is_not_covered() {
        let mut platter = Platter::default();
        platter.write(0, &[1; 512], 100);
        platter.write(512, &[2; 512], 300);
        platter.sync(200);
        let report = platter.power_loss(1.0, 0.0, &mut Rng::new(1, 0));
        assert_eq!(report, PowerLoss { lost_writes: 1, ..PowerLoss::default() });
        let mut image = [9; 1024];
        platter.read(0, &mut image);
        assert_eq!((image[0], image[512]), (1, 0));
    }

    #[test]
    fn what_a_failed_flush_covered_is_not_made_durable_by_the_next_one() {
        let mut platter = Platter::default();
        platter.write(0, &[1; 512], 100);
        platter.drop_unsynced(150);
        platter.write(512, &[2; 512], 200);
        platter.sync(300);
        let mut image = [0; 1024];
        platter.read(0, &mut image);
        assert_eq!((image[0], image[512]), (1, 2));
        platter.power_loss(1.0, 0.0, &mut Rng::new(1, 0));
        platter.read(0, &mut image);
        assert_eq!((image[0], image[512]), (0, 2));
    }

    #[test]
    fn a_torn_write_arrives_in_part() {
        for seed in 0..100 {
            let mut platter = Platter::default();
            platter.write(0, &[1; 8192], 0);
            assert_eq!(platter.power_loss(0.0, 1.0, &mut Rng::new(seed, 0)).torn_writes, 1);
            let mut image = [0; 8192];
            platter.read(0, &mut image);
            let arrived = image.chunks(512).filter(|sector| sector[0] == 1).count();
            assert!((1..16).contains(&arrived), "{arrived} of 16 sectors arrived");
        }
    }
}
