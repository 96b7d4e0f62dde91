//! Hostile storage for tests, and oracles that decide what it may hold afterwards.
//!
//! A [`Machine`] has disks that do anything real ones may do at a power loss or a fault. The
//! instance runs on them with its real threads, and everything that happens becomes one
//! [`History`], which is recorded once. Then it is explored: cut at many points, with many images
//! of the disks at each, recovered in one thread, the recovery cut at its own operations, and each
//! outcome compared with what was acknowledged ([`Expected`]). A bad outcome is a [`Case`]: it is
//! judged the same way each time, can be shrunk, kept in a file, and replayed.

mod campaign;
mod case;
mod codec;
mod explore;
mod history;
mod image;
mod live;
mod machine;
mod oracle;
mod rows;
mod setting;
mod shrink;
mod story;

pub use crate::planted::{Planted, plant};
pub use campaign::{Found, campaign, hunt};
pub use case::{Case, Cut, Hurt, HurtKind};
pub use explore::{Effort, Failure, Tally, explore};
pub use history::{Event, History, Kept, Lost, Playback, Write};
pub use image::{Image, SECTOR_BYTES};
pub use machine::{Faults, HostileDisk, Machine};
pub use oracle::{Expected, Violation};
pub use rows::{Mark, Row, RowState, Step};
pub use setting::{Recovered, Setting};
pub use shrink::shrink;
