//! Each rule passes, fails and is inconclusive.

mod coherence;
mod direct;
mod durability;
mod order;
