//! Tests whether a flush makes data durable.
//!
//! Without a cut, [`examine`] follows the chain of devices and times flushes by the amount written
//! before them: a flush that takes longer the more there is moves data out of a volatile cache. If
//! its time does not depend on that, nothing was volatile or the flush did nothing; no test inside
//! the machine can distinguish these.
//!
//! With a cut, [`write`] writes stamped blocks and reports each to a witness on another machine as
//! soon as it is acknowledged. After the cut, [`verify`] compares what is there with what the
//! witness knows. Writers that flush nothing are the controls: a cut that loses nothing of theirs
//! proves nothing.

mod chain;
mod client;
mod cutter;
mod examine;
mod fates;
pub mod findings;
mod found;
mod layout;
mod ledger;
mod medium;
mod slope;
mod stamp;
mod verify;
mod witness;
mod write;

pub use client::testimony;
pub use cutter::Cycles;
pub use examine::{Effort, examine};
pub use ledger::Ledger;
pub use verify::verify;
pub use witness::{Serving, serve};
pub use write::{Writing, write};
