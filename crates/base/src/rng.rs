//! Seeded random numbers: the same seed produces the same operations and the same data.
//!
//! There are two generators. [`Rng`] (wyrand) picks blocks and arrivals with one multiplication per
//! number. [`fill`] makes block payloads with four parallel xorshift lanes, so that the compiler
//! vectorises the loop and filling a block costs less than writing it.

/// wyrand: 64 bits of state, one 128-bit multiplication per number. Source: Wang Yi, wyhash final 4
/// (public domain description of the constants).
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

const WY_0: u64 = 0xa076_1d64_78bd_642f;
const WY_1: u64 = 0xe703_7ed1_a0b4_28db;

impl Rng {
    /// Returns a generator for `seed`; different `stream`s of one seed are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { state: mix(seed ^ mix(stream.wrapping_add(WY_1))) }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(WY_0);
        let product = u128::from(self.state) * u128::from(self.state ^ WY_1);
        (product >> 64) as u64 ^ product as u64
    }

    /// Returns a number in `0..bound` by multiply-shift (Lemire 2019; the bias is below `bound` /
    /// 2^64). `bound` must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "an empty range has no number");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Mixes 64 bits bijectively (splitmix64's finaliser, Steele et al. 2014).
pub const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Fills `out` with incompressible bytes that depend only on `key`. Four xorshift64 lanes
/// (Marsaglia 2003) are stepped together; a trailing part shorter than 32 bytes is filled too.
pub fn fill(key: u64, out: &mut [u8]) {
    let mut lanes = [mix(key) | 1, mix(key ^ WY_0) | 1, mix(key ^ WY_1) | 1, mix(!key) | 1];
    let mut chunks = out.chunks_exact_mut(32);
    for chunk in &mut chunks {
        step(&mut lanes);
        for (lane, bytes) in lanes.iter().zip(chunk.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&lane.to_le_bytes());
        }
    }
    let rest = chunks.into_remainder();
    step(&mut lanes);
    for (lane, bytes) in lanes.iter().zip(rest.chunks_mut(8)) {
        bytes.copy_from_slice(&lane.to_le_bytes()[..bytes.len()]);
    }
}

#[inline]
fn step(lanes: &mut [u64; 4]) {
    for lane in lanes {
        *lane ^= *lane << 13;
        *lane ^= *lane >> 7;
        *lane ^= *lane << 17;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |stream| {
            let mut rng = Rng::new(42, stream);
            (0..4).map(|_| rng.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn bounded_numbers_cover_their_range_evenly() {
        let mut rng = Rng::new(7, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        // Chi-squared with nine degrees of freedom: 27.9 is the 0.1 % point.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 27.9, "chi-squared {chi}");
    }

    #[test]
    fn payload_is_full_of_entropy_and_fills_every_byte() {
        let mut block = vec![0_u8; 8192 + 13];
        fill(99, &mut block);
        let mut counts = [0_u32; 256];
        for &byte in &block {
            counts[usize::from(byte)] += 1;
        }
        let total = block.len() as f64;
        let entropy: f64 = counts
            .iter()
            .filter(|&&c| c > 0)
            .map(|&c| f64::from(c) / total)
            .map(|p| -p * p.log2())
            .sum();
        assert!(entropy > 7.95, "{entropy} bits a byte");
        let mut other = vec![0_u8; block.len()];
        fill(100, &mut other);
        assert_ne!(block, other);
    }
}
