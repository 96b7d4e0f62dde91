//! The instance as a whole: sessions and background processes on disks that fail and lose power.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod bad_input;
mod durability;
mod faults;
mod kill;
mod load;
mod mirrors;
mod power;
mod recovery;
mod running;
mod slow;
mod waits;
mod world;
