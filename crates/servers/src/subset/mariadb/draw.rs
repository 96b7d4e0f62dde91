//! The number that a row draws, in SQL: a polynomial of the checksums of its identity. Each table
//! has its own, because checksums alone would choose the same numbers in several tables.

use blockstone_subset::Lot;

use super::MariadbSource;
use super::columns::{compared, whole};

/// The largest 32-bit prime: products with a 31-bit factor fit in 64 bits.
const PRIME: u64 = 4_294_967_291;
/// Low bits of a drawn number that the server does not compute.
const BITS: u32 = 32;

/// Returns the SQL for the number that a row draws in the server.
pub fn draw(source: &MariadbSource<'_>, table: usize, lot: Lot) -> String {
    let factor = 1 + lot.seed % ((1 << 31) - 2);
    let begin = lot.seed >> 33;
    let identity = &source.catalogue.tables[table].identity;
    let kinds = &source.known.tables[table].kinds;
    let columns = identity.iter().map(|&column| compared(source, table, column, &kinds[column]));
    let mut columns: Vec<String> = columns.collect();
    if columns.is_empty() {
        columns.push(whole(source, table));
    }
    columns.iter().fold(begin.to_string(), |drawn, column| {
        format!("((({drawn} + CRC32({column})) % {PRIME}) * {factor} + {begin}) % {PRIME}")
    })
}

/// Converts a number drawn in the server to the range that all sources use.
pub fn drawn(text: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(text).ok()?.parse::<u64>().ok()?;
    Some(number << BITS)
}

/// Returns the condition that a row wins.
pub fn wins(source: &MariadbSource<'_>, table: usize, lot: Lot) -> String {
    match lot.below {
        None => "1".to_owned(),
        Some(below) => format!("{} < {}", draw(source, table, lot), below.div_ceil(1 << BITS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_says_the_same_as_the_lot() {
        for percent in [0.0, 0.001, 1.0, 33.3, 99.999] {
            let lot = Lot::new(percent, 7, "a");
            let limit = lot.below.unwrap().div_ceil(1 << BITS);
            for number in [0, 1, limit.saturating_sub(1), limit, limit + 1, PRIME - 1] {
                let number = number.min(PRIME - 1);
                let drawn = drawn(number.to_string().as_bytes()).unwrap();
                assert_eq!(lot.wins(drawn), number < limit, "{percent} {number}");
            }
        }
    }
}
