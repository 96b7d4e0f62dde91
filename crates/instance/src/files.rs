//! The files of an instance in its disk group, and the writing of blocks to them.

use blockstone_base::Bytes;

use crate::control::{CONTROL_BYTES, COPY_BYTES};
use crate::error::InstanceError;
use crate::group::{BatchInfo, BatchWrite, DiskGroup, FileSpec, GroupFile};
use crate::planted::{Planted, planted};
use crate::redo::REDO_BLOCK_BYTES;
use crate::spec::{InstanceSpec, TornProtection, WRITERS_MAX};

pub(crate) const BATCH_BLOCKS: usize = 128;

#[derive(Debug)]
pub(crate) struct Files {
    pub data: GroupFile,
    pub control: GroupFile,
    pub double_write: GroupFile,
    pub redo: Vec<GroupFile>,
}

impl InstanceSpec {
    /// Returns the files that the disk group must have. Fails if a parameter has an invalid value.
    pub fn files(&self) -> Result<Vec<FileSpec>, InstanceError> {
        self.check()?;
        let redo_block = Bytes(REDO_BLOCK_BYTES as u64);
        let file =
            |name: &str, size, block, fine| FileSpec { name: name.into(), size, block, fine };
        let double_write = u64::from(WRITERS_MAX) * BATCH_BLOCKS as u64 * self.block.get();
        let mut files = vec![
            file("control", Bytes(CONTROL_BYTES as u64), Bytes(COPY_BYTES as u64), false),
            file("double-write", Bytes(double_write), self.block, false),
        ];
        files.extend(
            (0..self.redo_logs).map(|log| file(&redo_name(log), self.redo, redo_block, true)),
        );
        files.push(file("data", Bytes(self.blocks() * self.block.get()), self.block, false));
        Ok(files)
    }
}

impl Files {
    pub fn open(group: &DiskGroup, redo_logs: u32) -> Result<Self, InstanceError> {
        let redo = (0..redo_logs).map(|log| group.file(&redo_name(log)));
        Ok(Self {
            data: group.file("data")?,
            control: group.file("control")?,
            double_write: group.file("double-write")?,
            redo: redo.collect::<Result<_, _>>()?,
        })
    }

    /// Refuses a control file that describes other files than these.
    pub fn check(&self, spec: &InstanceSpec) -> Result<(), InstanceError> {
        let data = (spec.blocks() * spec.block.get(), spec.block.get());
        let fits = (self.data.size(), self.data.block_bytes()) == data
            && self.redo.iter().all(|log| log.size() == spec.redo.get());
        if fits { Ok(()) } else { Err(InstanceError::ControlDamaged) }
    }

    /// Writes blocks so that a torn write can be repaired: with double writes, first durably to
    /// area `area` of the double-write file, then to their places, which are made durable before
    /// the area is used again.
    pub fn write_blocks(
        &self,
        protection: TornProtection,
        area: u32,
        writes: &[BatchWrite<'_>],
    ) -> Result<BatchInfo, InstanceError> {
        if protection != TornProtection::DoubleWrite {
            return Ok(self.data.write_batch(writes)?);
        }
        let block_bytes = self.data.block_bytes();
        let start = u64::from(area) * BATCH_BLOCKS as u64 * block_bytes;
        let copies: Vec<BatchWrite<'_>> = (0..)
            .zip(writes)
            .map(|(index, write)| BatchWrite {
                offset: start + index * block_bytes,
                data: write.data,
            })
            .collect();
        self.double_write.write_batch(&copies)?;
        if !planted(Planted::CopiesNotSynced) {
            self.double_write.sync()?;
        }
        let info = self.data.write_batch(writes)?;
        if !planted(Planted::PlacesNotSynced) {
            self.data.sync()?;
        }
        Ok(info)
    }
}

fn redo_name(log: u32) -> String {
    format!("redo-{log}")
}
