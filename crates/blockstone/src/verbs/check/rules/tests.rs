//! Each rule passes, fails and is left open.

mod coherence;
mod direct;
mod durability;
mod order;
