//! Loading: blocks are written to their places in physical order, bypassing cache and redo, like a
//! direct path load. A schema counts as loaded when all of it is durable.

use std::sync::atomic::Ordering;

use blockstone_base::Bytes;
use blockstone_sys::buffer::Arena;

use super::Instance;
use crate::block::{self, Identity, Table};
use crate::error::InstanceError;
use crate::group::BatchWrite;
use crate::shared::Shared;
use crate::spec::InstanceSpec;

const BATCH: Bytes = Bytes::mib(4);

pub type LoadProgress<'a> = &'a mut dyn FnMut(u64, u64);

impl Instance {
    /// Fills those of the first `schemas` schemas that have no data yet. Fails if there are fewer
    /// schemas, or the disks fail; schemas that are complete stay loaded.
    pub fn load(&self, schemas: u32, progress: LoadProgress<'_>) -> Result<(), InstanceError> {
        let shared = &*self.shared;
        let spec = self.spec();
        shared.health.check()?;
        if schemas > spec.schemas {
            let what = format!("load {schemas} schemas of {}", spec.schemas);
            return Err(InstanceError::parameter(what, "create the instance with more"));
        }
        let loaded = shared.loaded.load(Ordering::Acquire);
        let total = u64::from(schemas.saturating_sub(loaded)) * spec.schema_blocks();
        let mut done = 0;
        for schema in loaded..schemas {
            load_schema(shared, &spec, schema, &mut |blocks| {
                done += blocks;
                progress(done, total);
            })?;
            shared.files.data.sync()?;
            shared.control.write(|state| state.loaded = schema + 1)?;
            shared.loaded.store(schema + 1, Ordering::Release);
        }
        Ok(())
    }

    /// Aborts a load, from within its `progress` or from another thread. This ends the instance:
    /// every later call fails because it is stopped.
    pub fn abandon(&self) {
        self.shared.stop();
    }

    /// Returns the number of schemas that have their data, from the first.
    pub fn loaded(&self) -> u32 {
        self.shared.loaded.load(Ordering::Acquire)
    }
}

fn load_schema(
    shared: &Shared,
    spec: &InstanceSpec,
    schema: u32,
    written: &mut dyn FnMut(u64),
) -> Result<(), InstanceError> {
    let block_bytes = spec.block.get();
    let first = u64::from(schema) * spec.schema_blocks();
    let instance = shared.control.identity().id;
    let scn = shared.log.durable().0;
    let order = &shared.orders[schema as usize];
    let batch_blocks = (BATCH.get() / block_bytes).min(spec.schema_blocks());
    let mut slots = Arena::new(batch_blocks as usize, block_bytes as usize)?.into_slots();
    for start in (0..spec.schema_blocks()).step_by(batch_blocks as usize) {
        let end = (start + batch_blocks).min(spec.schema_blocks());
        for (at, slot) in (start..end).zip(&mut slots) {
            let (table, key) = match at.checked_sub(spec.rows) {
                None => (Table::Rows, order.origin(at)),
                Some(index) => (Table::Scan, index),
            };
            let identity = Identity { instance, number: first + at, schema, table, key };
            block::format(slot, &identity, &shared.fill, scn);
        }
        shared.health.check()?;
        let writes: Vec<BatchWrite<'_>> = (start..end)
            .zip(&slots)
            .map(|(at, slot)| BatchWrite { offset: (first + at) * block_bytes, data: slot })
            .collect();
        shared.files.data.write_batch(&writes)?;
        written(end - start);
    }
    Ok(())
}
