//! The instance as a whole: sessions and background processes on disks that are simulated, fail
//! when they are told to, and lose their power.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod bad_input;
mod doomed;
mod faults;
mod kill;
mod load;
mod power;
mod running;
mod slow;
mod waits;
mod world;
