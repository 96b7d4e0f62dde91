//! Contents of the miniature instance's disks: headers and maps of the group, control file, redo,
//! blocks; and the stamps of test files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use blockstone_base::Bytes;
use blockstone_engine::stamp;
use blockstone_instance::block::{self, Fill, Identity, Table};
use blockstone_instance::disk::{Disk, DiskError};
use blockstone_instance::group::{DiskGroup, Member, Redundancy};
use blockstone_instance::redo::{REDO_BLOCK_BYTES, REDO_HEADER_BYTES, Record, RedoHeader, records};
use blockstone_instance::{Instance, InstanceSpec, Lsn, OpenSpec, RedoStress};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::seal::put;

const PAGE: usize = 4096;
const DISK_BYTES: u64 = 64 << 20;
const INSTANCE: u64 = 0x1d;
/// Bytes of a map slot that are fuzzed; the map of these few files is shorter.
const MAP_BYTES: usize = 4096;
/// Meaningful bytes of a copy of the control file; zeros and a checksum follow.
const CONTROL_BYTES: usize = 160;

type Content = BTreeMap<u64, Box<[u8]>>;

/// A disk in memory: written pages, over those of an image, over zeros.
#[derive(Debug, Default)]
struct MemoryDisk {
    image: Arc<Content>,
    written: Mutex<Content>,
}

impl MemoryDisk {
    fn content(&self) -> Content {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut content = (*self.image).clone();
        content.extend(written.iter().map(|(at, page)| (*at, page.clone())));
        content
    }

    fn check(&self, offset: u64, len: usize) -> Result<(), DiskError> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= DISK_BYTES => Ok(()),
            _ => Err(DiskError::short(self, "use", offset)),
        }
    }
}

impl Disk for MemoryDisk {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        self.check(offset, out.len())?;
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, part) in (offset..).step_by(PAGE).zip(out.chunks_mut(PAGE)) {
            match written.get(&at).or_else(|| self.image.get(&at)) {
                Some(page) => part.copy_from_slice(&page[..part.len()]),
                None => part.fill(0),
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.check(offset, data.len())?;
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, part) in (offset..).step_by(PAGE).zip(data.chunks(PAGE)) {
            written.insert(at, part.into());
        }
        Ok(())
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.write_at(offset, data)
    }

    fn sync(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn size_bytes(&self) -> u64 {
        DISK_BYTES
    }

    fn name(&self) -> &'static str {
        "memory"
    }
}

fn spec() -> InstanceSpec {
    InstanceSpec {
        block: Bytes::kib(4),
        schemas: 1,
        rows: 64,
        scan_blocks: 0,
        redo_logs: 2,
        redo: Bytes::kib(256),
        seed: 42,
        random_percent: 100,
    }
}

fn open_spec() -> OpenSpec {
    OpenSpec { cache: Bytes::mib(1), log_buffer: Bytes::kib(128), ..OpenSpec::default() }
}

/// Returns a disk with an instance that was not shut down: redo is waiting.
fn image() -> &'static Arc<Content> {
    static IMAGE: OnceLock<Arc<Content>> = OnceLock::new();
    IMAGE.get_or_init(|| Arc::new(make_image().expect("an instance fits into memory")))
}

fn make_image() -> Result<Content, Box<dyn std::error::Error>> {
    let disk = Arc::new(MemoryDisk::default());
    let member = Member { disk: Arc::<MemoryDisk>::clone(&disk), failure_group: "a".to_owned() };
    let (unit, files) = (Bytes::mib(1), spec().files()?);
    let group = DiskGroup::create_on(vec![member], Redundancy::External, unit, &files)?;
    Instance::create(&spec(), &group)?;
    let instance = Instance::open(&group, &open_spec())?;
    instance.load(1, &mut |_, _| {})?;
    let mut session = instance.session(0)?;
    for row in [3, 9, 3] {
        session.update(0, row, 2, RedoStress::Lite)?;
        session.commit()?;
    }
    Ok(disk.content())
}

fn disk() -> Arc<MemoryDisk> {
    Arc::new(MemoryDisk { image: Arc::clone(image()), written: Mutex::default() })
}

fn open(disk: Arc<MemoryDisk>) -> Option<DiskGroup> {
    DiskGroup::open_on(vec![disk]).ok()
}

/// Returns a header, and a map as it is in a slot.
pub fn groups() -> Vec<Vec<u8>> {
    let mut seed = vec![0; PAGE + MAP_BYTES];
    disk().read_at(0, &mut seed[..PAGE]).expect("the disk is larger");
    // Both slots hold a map; the newer one is in the slot of its sequence.
    let slots: Vec<u64> = image().keys().copied().filter(|at| is_map(&image()[at])).collect();
    let newest = slots.into_iter().max_by_key(|at| image()[at][32]).unwrap_or(PAGE as u64);
    disk().read_at(newest, &mut seed[PAGE..]).expect("the disk is larger");
    vec![seed]
}

fn is_map(page: &[u8]) -> bool {
    page.starts_with(b"BLKSTMAP")
}

/// Opens a disk with another header and map, and reads a block of each file.
pub fn group(input: &[u8]) -> bool {
    let mut bytes = input.to_vec();
    bytes.resize(PAGE + MAP_BYTES, 0);
    let (header, map) = bytes.split_at_mut(PAGE);
    seal_frame(header);
    seal_frame(map);
    let disk = disk();
    let _ = disk.write_at(0, header).and_then(|()| disk.write_at(DISK_BYTES - PAGE as u64, header));
    for at in image().keys().filter(|at| is_map(&image()[at])) {
        let _ = disk.write_at(*at, map);
    }
    let Some(group) = open(disk) else { return false };
    for name in group.file_names() {
        let Ok(file) = group.file(&name) else { continue };
        let (size, block) = (file.size(), file.block_bytes());
        let mut memory = vec![0; PAGE];
        for offset in [0, size / 2 / 4096 * 4096, size.saturating_sub(block)] {
            let _ = file.read_if_whole(offset, &mut memory, &|_, _| true);
        }
    }
    true
}

/// Recomputes the checksum of the content that follows a frame of magic, version, length and
/// checksum.
fn seal_frame(bytes: &mut [u8]) {
    let len = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
    if let Some(content) = bytes.get(24..24_usize.saturating_add(len)) {
        put(bytes, 16, xxh3_64(content));
    }
}

/// Returns a copy of the control file.
pub fn controls() -> Vec<Vec<u8>> {
    let control = open(disk()).and_then(|group| group.file("control").ok());
    let control = control.expect("the image has an instance");
    let mut copies = vec![0; 4 * PAGE];
    control.read_if_whole(0, &mut copies, &|_, _| true).expect("it is as long");
    copies.chunks(PAGE).map(|copy| copy[..CONTROL_BYTES].to_vec()).collect()
}

pub fn control(input: &[u8]) -> bool {
    let Some(group) = with_control(input) else { return false };
    Instance::inspect(&group).is_ok()
}

/// Returns the group with this control file in every copy: of different ones the newest would be
/// taken.
fn with_control(input: &[u8]) -> Option<DiskGroup> {
    let group = open(disk())?;
    let mut copy = input.to_vec();
    copy.resize(PAGE, 0);
    let sum = xxh3_64(&copy[..PAGE - 8]);
    put(&mut copy, PAGE - 8, sum);
    group.file("control").ok()?.write(0, &copy.repeat(4), true).ok()?;
    Some(group)
}

/// Returns the control file followed by blocks of redo, and the control file alone.
pub fn logs() -> Vec<Vec<u8>> {
    let log = open(disk()).and_then(|group| group.file("redo-0").ok());
    let log = log.expect("the image has an instance");
    let mut redo = vec![0; 12 * REDO_BLOCK_BYTES];
    log.read_if_whole(0, &mut redo, &|_, _| true).expect("it is as long");
    let both = controls().into_iter().map(|control| [control, redo.clone()].concat());
    both.chain(controls()).collect()
}

/// Recovers an instance and reads a row.
pub fn recovery(input: &[u8]) -> bool {
    let (control, redo) = input.split_at(input.len().min(CONTROL_BYTES));
    let Some(group) = with_control(control) else { return false };
    let id =
        control.get(16..24).map_or(0, |id| u64::from_le_bytes(id.try_into().unwrap_or([0; 8])));
    let Ok(log) = group.file("redo-0") else { return false };
    for (at, block) in (0..).step_by(REDO_BLOCK_BYTES).zip(redo.chunks(REDO_BLOCK_BYTES)) {
        let mut block = block.to_vec();
        block.resize(REDO_BLOCK_BYTES, 0);
        seal_redo(id, &mut block);
        let _ = log.write(at, &block, true);
    }
    let Ok(instance) = Instance::open(&group, &open_spec()) else { return false };
    if let Ok(mut session) = instance.session(0) {
        let _ = session.select(0, 3, 2);
    }
    let _ = instance.shutdown();
    true
}

fn seal_redo(id: u64, block: &mut [u8]) {
    put(block, 0, u64::from_le_bytes(*b"bstnredo") ^ id);
    let sum = xxh3_64_with_seed(&block[REDO_HEADER_BYTES..], xxh3_64(&block[..40]));
    put(block, 40, sum);
}

/// Returns a redo block with three kinds of records.
pub fn redo_blocks() -> Vec<Vec<u8>> {
    let row = blocks().swap_remove(0);
    let mut records = Vec::new();
    blockstone_instance::redo::encode_commit(3, 7, &mut records);
    let value = |_: usize, out: &mut [u8]| out.fill(7);
    blockstone_instance::redo::Change::encode(&row, 1, &[0, 5, 18], value, &mut records);
    blockstone_instance::redo::encode_commit(3, 8, &mut records);
    let mut image = Vec::new();
    blockstone_instance::redo::encode_image(&row, &mut image);
    let sealed = |records: &[u8]| {
        let mut block = vec![0; REDO_HEADER_BYTES + records.len().max(PAGE - REDO_HEADER_BYTES)];
        block[REDO_HEADER_BYTES..][..records.len()].copy_from_slice(records);
        // An image continues in the next block.
        let payload_bytes = records.len().min(PAGE - REDO_HEADER_BYTES);
        let header = RedoHeader { address: 0, first: Lsn(1), index: 0, blocks: 1, payload_bytes };
        header.seal(INSTANCE, &mut block);
        block
    };
    vec![sealed(&records), sealed(&image)]
}

/// Reads a redo block, and applies all its bytes as records to a block.
pub fn redo(input: &[u8]) -> bool {
    let mut block = input.to_vec();
    block.resize(block.len().max(REDO_BLOCK_BYTES), 0);
    seal_redo(INSTANCE, &mut block[..REDO_BLOCK_BYTES]);
    let whole = RedoHeader::read(INSTANCE, &block[..REDO_BLOCK_BYTES]);
    let mut row = blocks().swap_remove(0);
    for (lsn, record) in records(&block[REDO_HEADER_BYTES..], Lsn(77)).flatten() {
        if let Record::Change(change) = record {
            change.apply(&mut row, lsn);
        }
    }
    whole.is_some()
}

/// Returns blocks of both tables.
pub fn blocks() -> Vec<Vec<u8>> {
    [Table::Rows, Table::Scan]
        .map(|table| {
            let mut block = vec![0; PAGE];
            let identity = Identity { instance: INSTANCE, number: 7, schema: 3, table, key: 11 };
            block::format(&mut block, &identity, &Fill::new(5, 100), 99);
            block
        })
        .into()
}

pub fn block(input: &[u8]) -> bool {
    let mut bytes = input.to_vec();
    bytes.resize(PAGE, 0);
    block::seal(&mut bytes);
    let sound = block::check(&bytes, INSTANCE, 7).is_ok();
    block::number(&bytes);
    block::scn(&bytes);
    block::key(&bytes);
    block::version(&bytes);
    let fill = Fill::new(5, 100);
    for index in 0..block::COLUMNS {
        fill.is_whole(7, index, block::column(&bytes, index));
    }
    sound
}

/// Returns a stamped block of a test file.
pub fn stamps() -> Vec<Vec<u8>> {
    let mut block = vec![0; PAGE];
    stamp::seal(&mut block, 0xf11e, 0, 3);
    vec![block]
}

pub fn stamp(input: &[u8]) -> bool {
    stamp::identify(input);
    stamp::file_of(input);
    let mut bytes = input.to_vec();
    bytes.resize(input.len().max(stamp::STAMP_BYTES), 0);
    let expected = stamp::Expected { file_id: 0xf11e, offset_bytes: 0, sequence: 0..=9 };
    let _ = stamp::check(&bytes, &expected, true);
    stamp::check(&bytes, &expected, false).is_ok()
}
