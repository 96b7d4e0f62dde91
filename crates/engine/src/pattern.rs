//! The order in which blocks are visited: the same seed gives every worker the same sequence of
//! offsets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blockstone_base::load::{Access, LoadSpec, Op};
use blockstone_base::rng::Rng;

use crate::load::Length;

#[derive(Debug)]
pub(crate) struct Pattern {
    order: Order,
    block_bytes: u64,
    offset_bytes: u64,
    left: Option<u64>,
}

#[derive(Debug)]
enum Order {
    Random {
        rng: Rng,
        blocks: u64,
    },
    /// Random among the blocks of the slot, one from each row of `lanes` blocks: two writes in
    /// flight never touch the same block.
    Dealt {
        rng: Rng,
        rows: u64,
        lanes: u64,
        first_lane: u64,
    },
    Sequential {
        first: u64,
        end: u64,
        next: u64,
    },
    Append {
        cursor: Arc<AtomicU64>,
        blocks: u64,
    },
}

impl Pattern {
    /// Returns the share of worker `index` in `spec`; `cursor` is the end of the appended file in
    /// blocks, shared by all workers of the load.
    pub fn new(spec: &LoadSpec, length: Length, index: u32, cursor: &Arc<AtomicU64>) -> Self {
        let blocks = spec.span_bytes / spec.block_bytes;
        let part = |worker: u32| blocks * u64::from(worker) / u64::from(spec.workers);
        let (first, end) = (part(index), part(index + 1));
        let order = match spec.access {
            Access::Random => Order::random(spec, index, blocks),
            Access::Sequential => Order::Sequential { first, end, next: first },
            Access::Append => Order::Append { cursor: Arc::clone(cursor), blocks },
        };
        let left = match length {
            Length::Endless => None,
            Length::Once => Some(end - first),
            Length::Operations(each) => Some(each),
        };
        // An append ends where its cursor reaches the end of the span, wherever each worker is
        // then.
        let left = left.filter(|_| spec.access != Access::Append || length != Length::Once);
        Self { order, block_bytes: spec.block_bytes, offset_bytes: spec.offset_bytes, left }
    }

    /// Returns the byte offset of the next operation, which will use `slot`; `None` when the work
    /// is done.
    #[inline]
    pub fn next(&mut self, slot: usize) -> Option<u64> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        let block = match &mut self.order {
            Order::Random { rng, blocks } => rng.below(*blocks),
            Order::Dealt { rng, rows, lanes, first_lane } => {
                let row = rng.below(*rows);
                row * *lanes + dealt(row, *lanes, *first_lane + slot as u64)
            }
            Order::Sequential { first, end, next } => {
                let block = *next;
                *next = if block + 1 == *end { *first } else { block + 1 };
                block
            }
            Order::Append { cursor, blocks } => {
                let block = cursor.fetch_add(1, Ordering::Relaxed);
                if block >= *blocks {
                    return None;
                }
                block
            }
        };
        Some(self.offset_bytes + block * self.block_bytes)
    }
}

impl Order {
    /// Reads go anywhere. Any device may tear two writes of the same block that are in flight
    /// together, and that would be our own doing, so each slot of each worker has its own blocks,
    /// unless the span has fewer blocks than there are slots. They are spread over the span: blocks
    /// at a fixed distance would all be on one disk of a striped volume, and every disk would have
    /// the same number of writes in flight at all times.
    fn random(spec: &LoadSpec, index: u32, blocks: u64) -> Self {
        let rng = Rng::new(spec.seed, u64::from(index));
        let lanes = u64::from(spec.in_flight());
        if spec.op == Op::Read || blocks < lanes {
            return Self::Random { rng, blocks };
        }
        let first_lane = u64::from(index) * u64::from(spec.depth_per_worker);
        Self::Dealt { rng, rows: blocks / lanes, lanes, first_lane }
    }
}

/// Returns which of the `lanes` blocks of `row` belongs to `lane`: a rotation by the fraction of
/// row × golden ratio. Its multiples are equidistributed, also among the rows of any residue class
/// (H. Weyl, 1916), so every lane has an equal share of every stripe, however wide stripes are.
#[inline]
fn dealt(row: u64, lanes: u64, lane: u64) -> u64 {
    /// 2⁶⁴ ÷ golden ratio, to the nearest odd number.
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let turn = (u128::from(row.wrapping_mul(GOLDEN)) * u128::from(lanes)) >> 64;
    let turned = lane + turn as u64;
    if turned < lanes { turned } else { turned - lanes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockstone_base::load::Pacing;

    fn random_writes(blocks: u64) -> LoadSpec {
        LoadSpec {
            engine: "null".into(),
            op: Op::Write,
            read_pct: None,
            access: Access::Random,
            block_bytes: 512,
            workers: 1,
            depth_per_worker: 1,
            span_bytes: 512 * blocks,
            offset_bytes: 0,
            sync: None,
            flush_alone: false,
            direct: true,
            pacing: Pacing::Closed,
            seed: 4,
        }
    }

    fn offsets(access: Access, length: Length, workers: u32, take: usize) -> Vec<Vec<u64>> {
        let spec = LoadSpec { access, workers, span_bytes: 512 * 10 + 100, ..random_writes(10) };
        let cursor = Arc::default();
        (0..workers)
            .map(|index| {
                let mut pattern = Pattern::new(&spec, length, index, &cursor);
                std::iter::from_fn(|| pattern.next(0)).take(take).collect()
            })
            .collect()
    }

    #[test]
    fn sequential_workers_cover_the_span_once_and_then_wrap() {
        let once = offsets(Access::Sequential, Length::Once, 3, usize::MAX);
        let all: Vec<u64> = once.concat();
        assert_eq!(all, (0..10).map(|block| block * 512).collect::<Vec<_>>());
        assert_eq!(offsets(Access::Sequential, Length::Endless, 5, 3)[1], [1024, 1536, 1024]);
    }

    #[test]
    fn a_span_begins_where_its_offset_is() {
        for access in [Access::Random, Access::Sequential] {
            let spec = LoadSpec { access, offset_bytes: 1 << 20, ..random_writes(10) };
            let mut pattern = Pattern::new(&spec, Length::Endless, 0, &Arc::default());
            let visited: Vec<u64> = (0..100).filter_map(|_| pattern.next(0)).collect();
            assert_eq!(visited.iter().min(), Some(&(1 << 20)));
            assert_eq!(visited.iter().max(), Some(&((1 << 20) + 9 * 512)));
        }
    }

    #[test]
    fn random_offsets_repeat_by_seed_stay_in_the_span_and_differ_by_worker() {
        let draw = || offsets(Access::Random, Length::Operations(100), 2, usize::MAX);
        let first = draw();
        assert_eq!(first, draw());
        assert_ne!(first[0], first[1]);
        assert!(first.concat().iter().all(|offset| offset % 512 == 0 && *offset < 5120));
    }

    #[test]
    fn no_two_slots_ever_write_the_same_block() {
        let spec = LoadSpec { workers: 3, depth_per_worker: 4, ..random_writes(100) };
        let mut owner = std::collections::BTreeMap::new();
        for index in 0..3 {
            let mut pattern = Pattern::new(&spec, Length::Endless, index, &Arc::default());
            for slot in (0..4).cycle().take(400) {
                let offset = pattern.next(slot).unwrap();
                assert!(offset < 512 * 100);
                assert_eq!(*owner.entry(offset).or_insert((index, slot)), (index, slot));
            }
        }
        assert!(owner.len() > 80, "{} blocks of 96 were written", owner.len());
    }

    /// Returns Pearson's statistic of how often each slot visits each of `stripes` disks that hold
    /// `unit` blocks in turn, compared with equal shares: its mean is slots × (stripes − 1).
    fn unevenness(workers: u32, depth: u32, (stripes, unit): (u64, u64)) -> f64 {
        const DRAWS: u32 = 6_000;
        let spec = LoadSpec { workers, depth_per_worker: depth, ..random_writes(1 << 20) };
        let expected = f64::from(DRAWS) / stripes as f64;
        let mut sum = 0.0;
        for index in 0..workers {
            let mut pattern = Pattern::new(&spec, Length::Endless, index, &Arc::default());
            for slot in 0..depth as usize {
                let mut visits = vec![0_u32; stripes as usize];
                for _ in 0..DRAWS {
                    let block = pattern.next(slot).unwrap() / spec.block_bytes;
                    visits[(block / unit % stripes) as usize] += 1;
                }
                sum += visits.iter().map(|n| (f64::from(*n) - expected).powi(2)).sum::<f64>();
            }
        }
        sum / expected
    }

    #[test]
    fn every_slot_writes_to_all_stripes_alike() {
        for (workers, depth) in [(4, 1), (16, 1), (1, 16), (3, 5), (8, 4)] {
            for layout in [(4, 1), (4, 2), (4, 8), (4, 128), (3, 1), (8, 1), (17, 1), (16, 16)] {
                let freedom = f64::from(workers * depth) * (layout.0 - 1) as f64;
                // Five standard deviations of chi-square with this many degrees of freedom.
                let limit = freedom + 5.0 * (2.0 * freedom).sqrt();
                let found = unevenness(workers, depth, layout);
                assert!(
                    found < limit,
                    "{workers} workers × {depth}, stripes and unit {layout:?}: chi-square \
                     {found:.0} of {freedom} degrees of freedom"
                );
            }
        }
    }

    #[test]
    fn appends_of_all_workers_share_one_end_and_stop_at_the_span() {
        for length in [Length::Endless, Length::Once] {
            let all = offsets(Access::Append, length, 2, 6).concat();
            assert_eq!(all, (0..10).map(|block| block * 512).collect::<Vec<_>>());
        }
    }
}
