//! Hostile storage for tests, and oracles that say what may be there after it.
//!
//! A [`Machine`] has disks that do whatever real ones may do at a power loss or a fault. The
//! instance lives on them with its real threads, and all that happens is one [`History`], which is
//! recorded once. Then it is explored: cut at many points, with many images of the disks at each,
//! recovered in one thread, the recovery cut at its own operations, and each end held against what
//! was acknowledged ([`Expected`]). What ends badly is a [`Case`]: it is judged the same each time,
//! can be made smaller, kept in a file, and replayed.

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
