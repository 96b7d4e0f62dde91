use std::sync::atomic::{AtomicI64, Ordering};

use blockstone_base::Bytes;

use super::*;
use crate::disk::{Disk, DiskError};
use crate::group::{DiskGroup, FileSpec, Member, Redundancy};

const EIO: i32 = 5;
const FOREVER: i64 = i64::MAX / 2;
const SECTOR_BYTES: usize = 512;

/// A disk in memory that loses power at a write, together with all other disks of its machine: one
/// sector of that write is there, and the rest is garbage.
#[derive(Debug)]
struct Ram {
    name: &'static str,
    bytes: Mutex<Vec<u8>>,
    writes_left: Arc<AtomicI64>,
}

impl Ram {
    fn check(&self, left: i64, what: &'static str, offset: u64) -> Result<(), DiskError> {
        if left > 0 { Ok(()) } else { Err(DiskError::new(self, what, offset, EIO)) }
    }
}

impl Disk for Ram {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        self.check(self.writes_left.load(Ordering::Relaxed), "read", offset)?;
        out.copy_from_slice(&self.bytes.lock()[offset as usize..offset as usize + out.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        let left = self.writes_left.fetch_sub(1, Ordering::Relaxed);
        let place = offset as usize..offset as usize + data.len();
        match left {
            1.. => self.bytes.lock()[place].copy_from_slice(data),
            0 => {
                let torn = &mut self.bytes.lock()[place];
                torn.fill(0xAA);
                torn[..SECTOR_BYTES].copy_from_slice(&data[..SECTOR_BYTES]);
            }
            _ => {}
        }
        self.check(left, "write", offset)
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.write_at(offset, data)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.check(self.writes_left.load(Ordering::Relaxed), "sync", 0)
    }

    fn size_bytes(&self) -> u64 {
        self.bytes.lock().len() as u64
    }

    fn name(&self) -> &str {
        self.name
    }
}

type Images = [Vec<u8>; 2];

/// Returns two disks of a machine that loses power after `writes` writes.
fn machine(images: &Images, writes: &Arc<AtomicI64>) -> [Arc<Ram>; 2] {
    [("a", &images[0]), ("b", &images[1])].map(|(name, image)| {
        let (bytes, writes_left) = (Mutex::new(image.clone()), Arc::clone(writes));
        Arc::new(Ram { name, bytes, writes_left })
    })
}

fn images(disks: &[Arc<Ram>; 2]) -> Images {
    [0, 1].map(|number| disks[number].bytes.lock().clone())
}

fn open_on(disks: &[Arc<Ram>]) -> Control {
    let disks = disks.iter().map(|disk| Arc::clone(disk) as Arc<dyn Disk>).collect();
    let group = DiskGroup::open_on(disks).unwrap();
    Control::open(group.file("control").unwrap()).unwrap()
}

/// Returns the disks of a mirrored control file after four writes, and after five.
fn written() -> (Images, Images) {
    let disks = machine(&[vec![0; 4 << 20], vec![0; 4 << 20]], &Arc::new(AtomicI64::new(FOREVER)));
    let member = |disk: &Arc<Ram>| {
        let disk = Arc::clone(disk) as Arc<dyn Disk>;
        Member { failure_group: disk.name().to_owned(), disk }
    };
    let file = FileSpec {
        name: "control".into(),
        size: Bytes(CONTROL_BYTES as u64),
        block: Bytes(COPY_BYTES as u64),
        fine: false,
    };
    let members = disks.iter().map(member).collect();
    let group = DiskGroup::create_on(members, Redundancy::Normal, Bytes::mib(1), &[file]).unwrap();
    let spec = InstanceSpec {
        block: Bytes::kib(8),
        schemas: 1,
        rows: 100,
        scan_blocks: 0,
        redo_logs: 2,
        redo: Bytes::mib(1),
        seed: 1,
        random_percent: 0,
    };
    let mark = Mark { first: Lsn(1), place: RedoAddress { sequence: 1, offset: 0 } };
    let state = State {
        sequence: 0,
        checkpoint: Lsn(1),
        mark,
        loaded: 0,
        protection: TornProtection::None,
        writers: 0,
    };
    let file = group.file("control").unwrap();
    Control::create(file.clone(), Identity { id: 7, spec }, state).unwrap();
    let control = Control::open(file).unwrap();
    (0..2).for_each(|_| control.write(|_| {}).unwrap());
    let four = images(&disks);
    control.write(|_| {}).unwrap();
    (four, images(&disks))
}

/// Damages the copies of the half with this sequence.
fn damage(image: &mut [u8], sequence: u64, copies: usize) {
    let is_newest = |copy: &[u8]| {
        let found = is_whole(copy).then(|| decode(copy).ok().flatten()).flatten();
        found.is_some_and(|(_, state)| state.sequence == sequence)
    };
    let found = image.chunks_mut(COPY_BYTES).filter(|copy| is_newest(copy));
    assert_eq!(found.take(copies).map(|copy| copy[9] ^= 1).count(), copies);
}

/// One mirror has lost the newest half, or its copies have rotted, and power is lost at each of the
/// writes that follow. Then the other mirror dies.
#[test]
fn the_newest_half_is_on_all_mirrors_before_the_older_one_is_overwritten() {
    let (four, five) = written();
    let [rotten, half_rotten] = [2, 1].map(|copies| {
        let mut image = five[1].clone();
        damage(&mut image, 5, copies);
        image
    });
    for (what, image) in
        [("lost", four[1].clone()), ("rotten", rotten), ("half rotten", half_rotten)]
    {
        for (victim, mirrors) in
            [(0, [five[0].clone(), image.clone()]), (1, [image.clone(), five[0].clone()])]
        {
            let mut is_complete = false;
            for writes in 0_i64.. {
                let left = Arc::new(AtomicI64::new(FOREVER));
                let disks = machine(&mirrors, &left);
                let control = open_on(&disks);
                assert_eq!(control.state().sequence, 5, "{what}: the newest of all mirrors");
                left.store(writes, Ordering::Relaxed);
                is_complete = control.write(|_| {}).is_ok();
                left.store(FOREVER, Ordering::Relaxed);
                let survivor = open_on(&[Arc::clone(&disks[1 - victim])]);
                let found = survivor.state().sequence;
                let least = if what == "half rotten" { 5 } else { 4 };
                assert!(found >= least, "{what}: state {found} after {writes} writes");
                if is_complete {
                    assert_eq!(found, 6);
                    break;
                }
            }
            assert!(is_complete);
        }
    }
}

#[test]
fn a_state_that_is_whole_everywhere_is_not_written_again() {
    let (_, five) = written();
    let left = Arc::new(AtomicI64::new(FOREVER));
    let disks = machine(&five, &left);
    open_on(&disks).write(|_| {}).unwrap();
    assert_eq!(left.load(Ordering::Relaxed), FOREVER - 2, "one write to each mirror");
}

#[test]
fn a_state_that_no_instance_gets_to_is_none() {
    let spec = InstanceSpec {
        block: Bytes::kib(8),
        schemas: 2,
        rows: 1000,
        scan_blocks: 0,
        redo_logs: 2,
        redo: Bytes::mib(1),
        seed: 42,
        random_percent: 100,
    };
    let mark = Mark { first: Lsn(77), place: RedoAddress { sequence: 3, offset: 4096 } };
    let (protection, loaded) = (TornProtection::FullPage, 2);
    let state = State { sequence: 5, checkpoint: Lsn(99), mark, loaded, protection, writers: 1 };
    let known = |spec: InstanceSpec, state: State| {
        let mut copy = vec![0; COPY_BYTES];
        encode(&Identity { id: 9, spec }, &state, &mut copy);
        decode(&copy).unwrap().is_some()
    };
    assert!(known(spec, state));
    for forged in [
        InstanceSpec { block: Bytes(0), ..spec },
        InstanceSpec { rows: u64::MAX, ..spec },
        InstanceSpec { rows: 1 << 50, ..spec },
        InstanceSpec { redo: Bytes(0), ..spec },
        InstanceSpec { redo_logs: 0, ..spec },
    ] {
        assert!(!known(forged, state), "{forged:?}");
    }
    let at = |sequence, offset| Mark { place: RedoAddress { sequence, offset }, ..mark };
    for forged in [
        State { sequence: u64::MAX, ..state },
        State { checkpoint: Lsn(u64::MAX), ..state },
        State { mark: at(1 << 43, 0), ..state },
        State { mark: at(3, 2 << 20), ..state },
        State { mark: at(3, 100), ..state },
        State { loaded: 3, ..state },
        State { writers: 17, ..state },
    ] {
        assert!(!known(spec, forged), "{forged:?}");
    }
}
