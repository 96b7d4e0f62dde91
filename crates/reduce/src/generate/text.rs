//! Rows like those of exports: a key, an amount, words, a meaningless token.

use blockstone_base::rng::Rng;

use super::{Distinct, Kind, Shape};

pub static KIND: Kind = Kind {
    name: "text",
    doc: "rows of text, each with a unique key and token: compresses between 2:1 and 3:1",
    block,
    distinct: Some(|shape| Distinct::unmasked(shape.blocks())),
    quarters: None,
};

const WORDS: &str = "order invoice customer delivered pending north south returned blue green \
                     small large account payment the of and with without paid open closed address \
                     street monthly yearly discount shipping express standard damaged complete";

fn block(shape: &Shape, file: u32, block: u64, out: &mut [u8]) {
    rows(shape.key(file, block), out);
}

/// Fills `out` with rows; the last one is truncated.
pub(super) fn rows(seed: u64, out: &mut [u8]) {
    let mut rng = Rng::new(seed, 1);
    let known: Vec<&str> = WORDS.split(' ').collect();
    let mut rest = out;
    while !rest.is_empty() {
        let words = [0; 6].map(|_: u8| known[rng.below(known.len() as u64) as usize]).join(" ");
        let (token, key, cents) = (rng.next_u64() >> 16, rng.below(1_000_000), rng.below(100_000));
        let row = format!("{key:06};{}.{:02};{words};{token:x}\n", cents / 100, cents % 100);
        let (part, behind) = rest.split_at_mut(row.len().min(rest.len()));
        part.copy_from_slice(&row.as_bytes()[..part.len()]);
        rest = behind;
    }
}
