//! Processes that the programs follow, by their IDs in the initial PID namespace, with their future
//! children.

use std::collections::BTreeSet;

use super::load::Loaded;
use super::table::Table;
use super::{BpfError, on, open};

/// Needed so that a followed process is forgotten when it ends; attached first.
pub(super) const PROGRAMS: [&str; 2] = ["sched_process_exit", "sched_process_fork"];

#[derive(Debug)]
pub(super) struct Followed(Table<u32, u8>);

impl Followed {
    pub(super) fn open(loaded: &Loaded) -> Result<Self, BpfError> {
        open(loaded, "wanted").map(Self)
    }

    /// Follows these processes too. Fails when there is no room for that many.
    pub(super) fn want<'a>(
        &self,
        tgids: impl IntoIterator<Item = &'a u32>,
    ) -> Result<(), BpfError> {
        let mut tgids = tgids.into_iter();
        tgids.try_for_each(|tgid| self.0.set(tgid, &1)).map_err(on("write", "wanted"))
    }

    /// Stops following these processes; the children that they already have are still followed.
    pub(super) fn forget<'a>(
        &self,
        tgids: impl IntoIterator<Item = &'a u32>,
    ) -> Result<(), BpfError> {
        let mut tgids = tgids.into_iter();
        tgids.try_for_each(|tgid| self.0.remove(tgid)).map_err(on("write", "wanted"))
    }

    /// Returns the followed processes that have not ended.
    pub(super) fn living(&mut self) -> Result<BTreeSet<u32>, BpfError> {
        let mut living = BTreeSet::new();
        let each = self.0.each(|tgid, _| {
            living.insert(*tgid);
        });
        each.map_err(on("read", "wanted"))?;
        Ok(living)
    }
}
