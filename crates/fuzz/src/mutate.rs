//! Inputs made from seeds: the same number gives the same input.
//!
//! Bytes are flipped, cut, moved and overwritten with numbers that parsers stumble over; texts get
//! words from other seeds and odd numbers; in JSON documents single values are exchanged, so that
//! the result is still JSON.

mod json;

use blockstone_base::rng::Rng;
use serde_json::Value as Json;

/// Maximum length of an input; seeds may be longer.
const INPUT_BYTES_MAX: usize = 256 << 10;

/// Numbers as texts write them: zero, limits, values beyond limits, and texts that are not numbers.
pub const ODD_NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "7",
    "63",
    "64",
    "65",
    "127",
    "128",
    "255",
    "256",
    "4095",
    "4096",
    "32767",
    "32768",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0.0",
    "0.5",
    "1e-320",
    "1e9",
    "1e18",
    "1e19",
    "1e20",
    "1e308",
    "1e400",
    "-1e308",
    "NaN",
    "inf",
    "-inf",
    "0x7f",
    "00000000000000000001",
    "1_000",
    "",
];

/// Odd numbers for bytes, in the widths that formats have.
const ODD_WORDS: &[u64] = &[
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    31,
    32,
    63,
    64,
    127,
    128,
    255,
    256,
    512,
    1023,
    1024,
    4095,
    4096,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fff0,
    u64::MAX,
];

/// Pieces that texts of several formats contain.
const ODD_WORDS_OF_TEXTS: &[&str] = &[
    "\n",
    "\r\n",
    "\t",
    " ",
    ",",
    ":",
    "=",
    "/",
    "\\",
    "\"",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "-",
    "+",
    ".",
    "..",
    "../",
    "%",
    "@",
    "#",
    "\0",
    "\u{7f}",
    "\u{feff}",
    "é",
    "\u{1f4be}",
    "null",
    "true",
    "\u{1b}[31m",
    "<b>",
    "&",
    "K",
    "M",
    "G",
    "ns",
    "ms",
    "s",
];

/// Seeds of a target, prepared for mutation.
pub struct Corpus {
    seeds: Vec<Vec<u8>>,
    /// The JSON document of each seed that is one, by the seed's index.
    documents: Vec<Option<Json>>,
    words: Vec<Vec<u8>>,
}

impl Corpus {
    pub fn new(seeds: Vec<Vec<u8>>) -> Self {
        let text = |seed: &Vec<u8>| std::str::from_utf8(seed).is_ok();
        let document = |seed: &Vec<u8>| match serde_json::from_slice(seed) {
            Ok(document @ (Json::Object(_) | Json::Array(_))) => Some(document),
            _ => None,
        };
        let documents = seeds.iter().map(document).collect();
        let mut words: Vec<Vec<u8>> =
            seeds.iter().filter(|seed| text(seed)).flat_map(|seed| words(seed)).collect();
        words.sort_unstable();
        words.dedup();
        Self { seeds, documents, words }
    }

    pub fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    /// Returns input `number` of the run `seed`. The first inputs are the unchanged seeds.
    pub fn input(&self, seed: u64, number: u64) -> Vec<u8> {
        if let Some(input) = self.seeds.get(number as usize) {
            return input.clone();
        }
        let mut rng = Rng::new(seed, number);
        let at = rng.below(self.seeds.len() as u64) as usize;
        let mut input = match &self.documents[at] {
            // One in four is mutated as bytes, after which it is no longer JSON.
            Some(document) if rng.below(4) > 0 => {
                let other = self.documents[rng.below(self.seeds.len() as u64) as usize].as_ref();
                return json::mutated(document, other.unwrap_or(document), &mut rng);
            }
            _ => self.seeds[at].clone(),
        };
        // Mostly few changes: with many, nothing behind the first one that is noticed gets tested.
        let most = 1 << rng.below(5);
        for _ in 0..=rng.below(most) {
            self.step(&mut input, &mut rng);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn step(&self, input: &mut Vec<u8>, rng: &mut Rng) {
        let is_text = input.len() < 64 << 10 && std::str::from_utf8(input).is_ok();
        if is_text && rng.below(3) > 0 {
            return self.text_step(input, rng);
        }
        let at = below(rng, input.len() + 1);
        match rng.below(10) {
            0 | 1 if at < input.len() => input[at] ^= 1 << rng.below(8),
            2 if at < input.len() => input[at] = rng.next_u64() as u8,
            3 | 4 => put_word(input, at, pick(rng, ODD_WORDS), rng),
            5 => add_to_word(input, at, rng),
            6 => input.truncate(at),
            7 => {
                let len = length(rng, input.len() - at);
                input.drain(at..at + len);
            }
            8 => {
                let from = below(rng, input.len() + 1);
                let piece = input[from..from + length(rng, input.len() - from)].to_vec();
                input.splice(at..at, piece);
            }
            _ => {
                let other = &self.seeds[below(rng, self.seeds.len())];
                let from = below(rng, other.len() + 1);
                let piece = &other[from..from + length(rng, other.len() - from)];
                let end = at + length(rng, input.len() - at);
                input.splice(at..end, piece.iter().copied());
            }
        }
    }

    /// Replaces a word or a number, or moves lines.
    fn text_step(&self, input: &mut Vec<u8>, rng: &mut Rng) {
        match rng.below(8) {
            0..=2 => {
                let number = pick(rng, ODD_NUMBERS).as_bytes();
                replace_run(input, rng, number, |byte| byte.is_ascii_digit() || byte == b'.');
            }
            3 if !self.words.is_empty() => {
                let word = &self.words[below(rng, self.words.len())];
                replace_run(input, rng, word, |byte| byte.is_ascii_alphanumeric());
            }
            4 => {
                let at = below(rng, input.len() + 1);
                let word = pick(rng, ODD_WORDS_OF_TEXTS).bytes();
                input.splice(at..at, word);
            }
            5 => {
                let (from, to) = line_at(input, below(rng, input.len() + 1));
                input.drain(from..to);
            }
            6 => {
                let (from, to) = line_at(input, below(rng, input.len() + 1));
                let line = input[from..to].to_vec();
                let (at, _) = line_at(input, below(rng, input.len() + 1));
                (0..=rng.below(3)).for_each(|_| drop(input.splice(at..at, line.clone())));
            }
            _ => input.truncate(below(rng, input.len() + 1)),
        }
    }
}

fn below(rng: &mut Rng, bound: usize) -> usize {
    rng.below(bound.max(1) as u64) as usize
}

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[below(rng, of.len())]
}

/// Returns a length up to `most`, mostly short.
fn length(rng: &mut Rng, most: usize) -> usize {
    let up_to = 1_usize << rng.below(13);
    below(rng, most.min(up_to) + 1)
}

fn put_word(input: &mut [u8], at: usize, word: u64, rng: &mut Rng) {
    let width = 1 << rng.below(4);
    if let Some(place) = input.get_mut(at..at + width) {
        place.copy_from_slice(&word.to_le_bytes()[..width]);
        if rng.below(4) == 0 {
            place.reverse();
        }
    }
}

/// Adds a small number to the little-endian word at `at`, to make lengths that are nearly right.
fn add_to_word(input: &mut [u8], at: usize, rng: &mut Rng) {
    let width = 1 << rng.below(4);
    let by = rng.below(33).wrapping_sub(16);
    if let Some(place) = input.get_mut(at..at + width) {
        let mut word = [0; 8];
        word[..width].copy_from_slice(place);
        let word = u64::from_le_bytes(word).wrapping_add(by).to_le_bytes();
        place.copy_from_slice(&word[..width]);
    }
}

/// Replaces the run of bytes that satisfy `is_of` next to a random place.
fn replace_run(input: &mut Vec<u8>, rng: &mut Rng, by: &[u8], is_of: impl Fn(u8) -> bool) {
    let start = below(rng, input.len() + 1);
    let Some(from) = (start..input.len()).find(|&at| is_of(input[at])) else { return };
    let from = (0..from).rev().find(|&at| !is_of(input[at])).map_or(0, |at| at + 1);
    let to = (from..input.len()).find(|&at| !is_of(input[at])).unwrap_or(input.len());
    input.splice(from..to, by.iter().copied());
}

/// Returns the range of the line around a place, including its line feed.
fn line_at(input: &[u8], at: usize) -> (usize, usize) {
    let from = input[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let to = input[at..].iter().position(|&byte| byte == b'\n').map_or(input.len(), |n| at + n + 1);
    (from, to)
}

fn words(text: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",:={}[]\"".contains(byte);
    text.split(is_end).filter(|word| (1..=64).contains(&word.len())).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_gives_the_same_input_and_others_differ() {
        let corpus = Corpus::new(vec![b"a 1\nb 22\n".to_vec(), br#"{"a":[1,2]}"#.to_vec()]);
        let inputs: Vec<Vec<u8>> = (0..500).map(|number| corpus.input(7, number)).collect();
        let again: Vec<Vec<u8>> = (0..500).map(|number| corpus.input(7, number)).collect();
        assert_eq!(inputs, again);
        assert_eq!(inputs[..2], corpus.seeds()[..]);
        let distinct: std::collections::BTreeSet<_> = inputs.iter().collect();
        assert!(distinct.len() > 300, "{} of 500 differ", distinct.len());
    }

    #[test]
    fn documents_stay_documents_mostly() {
        let corpus = Corpus::new(vec![br#"{"a":[1,{"b":"text"}],"c":null}"#.to_vec()]);
        let inputs = (1..1000).map(|number| corpus.input(1, number));
        let json = inputs.filter(|input| serde_json::from_slice::<Json>(input).is_ok()).count();
        assert!(json > 600, "{json} of 999 are JSON");
    }
}
