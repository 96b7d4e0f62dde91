//! Storage that filters rows, measured on real engines: what each side reads, sends and computes.
//!
//! [`cards`] is the data set: payment card transactions generated from seed and position alone.
//! [`cells`] queries it on PostgreSQL servers that each hold a part.
//!
//! ```
//! use blockstone_pushdown::cards::Cards;
//!
//! let cards = Cards::of_bytes(1 << 20, 7);
//! let own = (0..cards.rows()).filter(|at| cards.row(*at).is_own()).count() as u64;
//! assert_eq!(own, cards.own());
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod cards;
pub mod cells;
