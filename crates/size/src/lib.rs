//! From the load that was measured to the hardware that it needs.
//!
//! [`Observation`]s come from a history, whatever filled it. [`Need`](need) makes percentiles of
//! them, weighted by time; [`hardware`] holds the need against what units of hardware can do, and
//! names the ceiling that binds. Pure: no I/O, no clock.

pub mod hardware;
pub mod need;
pub mod observation;

pub use observation::Observation;
