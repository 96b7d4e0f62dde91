//! Seeded trials of an estimate: streams of 64 GiB with a known number of distinct blocks, counted
//! within little memory. Reports in how many the truth is inside the interval that is printed.
//!
//! `reduce_trials TRIALS GIB MEMORY_MIB` prints one JSON document.

use blockstone_base::Bytes;
use blockstone_base::rng::{Rng, mix};
use blockstone_reduce::counter::Counter;
use blockstone_reduce::digest::Fingerprint;
use blockstone_reduce::findings::Findings;
use blockstone_reduce::hash::{Hashed, Prints, SEGMENT_BYTES};
use blockstone_reduce::model::Model;
use blockstone_reduce::plan::{Compress, Plan};

const BLOCK_BYTES: u64 = 8192;
const SECTORS: u64 = BLOCK_BYTES / 512;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<u64> =
        std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let [trials, gib, memory_mib] = numbers[..] else {
        return Err("usage: reduce_trials TRIALS GIB MEMORY_MIB".into());
    };
    let (mut inside, mut width, mut share) = (0, 0.0, 1.0_f64);
    for seed in 0..trials {
        let trial = trial(seed, gib << 30, Bytes(memory_mib << 20))?;
        inside += u64::from((trial.low..=trial.high).contains(&trial.truth));
        width += (trial.high - trial.low) / trial.truth / 2.0 / trials as f64;
        share = share.min(trial.share);
    }
    let document = serde_json::json!({
        "trials": trials,
        "inside": inside,
        "mean_half_width": width,
        "smallest_share": share,
        "memory_bytes": blockstone_sys::usage::peak_memory_bytes(),
    });
    let mut out = std::io::stdout().lock();
    Ok(std::io::Write::write_all(&mut out, format!("{document}\n").as_bytes())?)
}

struct Trial {
    truth: f64,
    low: f64,
    high: f64,
    share: f64,
}

/// Draws the contents of blocks, a few of them often and most seldom, and records in a bit each
/// which of them occurred.
fn trial(seed: u64, bytes: u64, memory: Bytes) -> Result<Trial, Box<dyn std::error::Error>> {
    let mut plan = Plan::new(&[Bytes(BLOCK_BYTES)], &[0], Bytes(BLOCK_BYTES))?;
    plan.compress = Compress::Not;
    plan.chunks = false;
    plan.codecs.clear();
    plan.memory_bytes = blockstone_scan::table_bytes(memory, 8, &plan)?;
    let blocks = bytes / BLOCK_BYTES;
    let mut rng = Rng::new(seed, 0);
    let contents = 1 + rng.below(blocks);
    let skew = 1.0 + 3.0 * rng.unit();
    let mut occurred = vec![0_u64; contents as usize / 64 + 1];
    let mut counter = Counter::new(plan);
    counter.begin_file(bytes);
    for _ in 0..bytes / SEGMENT_BYTES as u64 {
        let mut sectors: Vec<Fingerprint> = Vec::with_capacity(SEGMENT_BYTES / 512);
        for _ in 0..SEGMENT_BYTES as u64 / BLOCK_BYTES {
            let content = (contents as f64 * rng.unit().powf(skew)) as u64;
            occurred[content as usize / 64] |= 1 << (content % 64);
            sectors.extend((0..SECTORS).map(|sector| sector_of(seed, content, sector)));
        }
        let prints = Prints {
            len_bytes: SEGMENT_BYTES as u64,
            sectors: sectors.into(),
            ..Prints::default()
        };
        counter.feed(&Hashed::Data(prints), &mut Vec::new());
    }
    counter.end_file(&mut Vec::new());
    let different: u64 = occurred.iter().map(|bits| u64::from(bits.count_ones())).sum();
    let model = Model { codec: None, ..Model::built_in("generic")? };
    let findings = Findings::new(&counter, &[], &model);
    let ratio = findings.primary().dedup_ratio.ok_or("nothing was counted")?;
    let truth = blocks as f64 / different as f64;
    Ok(Trial { truth, low: ratio.low, high: ratio.high, share: findings.primary().share })
}

/// Stands in for the fingerprint of a sector: as good as a digest of bytes that are never produced.
fn sector_of(seed: u64, content: u64, sector: u64) -> Fingerprint {
    let high = mix(content ^ mix(seed ^ mix(sector)));
    u128::from(high) << 64 | u128::from(mix(high))
}
