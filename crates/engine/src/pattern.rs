//! Which block comes next: the same seed gives every worker the same sequence of offsets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blockstone_base::load::{Access, LoadSpec, Op};
use blockstone_base::rng::Rng;

use crate::load::Length;

#[derive(Debug)]
pub(crate) struct Pattern {
    order: Order,
    block_bytes: u64,
    left: Option<u64>,
}

#[derive(Debug)]
enum Order {
    Random {
        rng: Rng,
        blocks: u64,
    },
    /// Random among every `lanes`-th block from the slot's own: two writes in flight never meet.
    Lanes {
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
    /// Worker `index`'s share of `spec`; `cursor` is the end of the appended file in blocks, shared
    /// by all workers of the load.
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
        // The end of an append is where its cursor meets the span, wherever each worker is then.
        let left = left.filter(|_| spec.access != Access::Append || length != Length::Once);
        Self { order, block_bytes: spec.block_bytes, left }
    }

    /// Byte offset of the next operation, which will use `slot`; none when the work is done.
    #[inline]
    pub fn next(&mut self, slot: usize) -> Option<u64> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        let block = match &mut self.order {
            Order::Random { rng, blocks } => rng.below(*blocks),
            Order::Lanes { rng, rows, lanes, first_lane } => {
                rng.below(*rows) * *lanes + *first_lane + slot as u64
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
        Some(block * self.block_bytes)
    }
}

impl Order {
    /// Reads go anywhere. Two writes of one block in flight together may be torn by any device:
    /// that would be our own doing, so each slot of each worker has blocks of its own, unless the
    /// span has fewer blocks than there are slots.
    fn random(spec: &LoadSpec, index: u32, blocks: u64) -> Self {
        let rng = Rng::new(spec.seed, u64::from(index));
        let lanes = u64::from(spec.in_flight());
        if spec.op == Op::Read || blocks < lanes {
            return Self::Random { rng, blocks };
        }
        let first_lane = u64::from(index) * u64::from(spec.depth_per_worker);
        Self::Lanes { rng, rows: blocks / lanes, lanes, first_lane }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockstone_base::load::Pacing;

    fn offsets(access: Access, length: Length, workers: u32, take: usize) -> Vec<Vec<u64>> {
        let spec = LoadSpec {
            engine: "null".into(),
            op: Op::Write,
            access,
            block_bytes: 512,
            workers,
            depth_per_worker: 1,
            span_bytes: 512 * 10 + 100,
            sync: None,
            direct: true,
            pacing: Pacing::Closed,
            seed: 4,
        };
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
    fn random_offsets_repeat_by_seed_stay_in_the_span_and_differ_by_worker() {
        let draw = || offsets(Access::Random, Length::Operations(100), 2, usize::MAX);
        let first = draw();
        assert_eq!(first, draw());
        assert_ne!(first[0], first[1]);
        assert!(first.concat().iter().all(|offset| offset % 512 == 0 && *offset < 5120));
    }

    #[test]
    fn no_two_slots_ever_write_the_same_block() {
        let spec = LoadSpec {
            engine: "null".into(),
            op: Op::Write,
            access: Access::Random,
            block_bytes: 512,
            workers: 3,
            depth_per_worker: 4,
            span_bytes: 512 * 100,
            sync: None,
            direct: true,
            pacing: Pacing::Closed,
            seed: 4,
        };
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

    #[test]
    fn appends_of_all_workers_share_one_end_and_stop_at_the_span() {
        for length in [Length::Endless, Length::Once] {
            let all = offsets(Access::Append, length, 2, 6).concat();
            assert_eq!(all, (0..10).map(|block| block * 512).collect::<Vec<_>>());
        }
    }
}
