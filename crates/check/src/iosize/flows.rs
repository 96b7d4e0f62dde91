//! Derives flows, a file in one direction each, from what the kernel counted by exact size.

use std::collections::{BTreeMap, HashMap};

use crate::iosize::findings::{Calls, Class, Direction, Flow, Size, Transfer};
use blockstone_sys::bpf::iosize::{IoObject, Layer, OfSize, Sum};

use super::classify::classify;

const PAGE_BYTES: u64 = 4096;

/// Groups by place and direction, those with most bytes first.
pub fn by_place(sizes: &[OfSize], names: &HashMap<IoObject, String>) -> Vec<Flow> {
    let mut groups: BTreeMap<(IoObject, bool), Vec<OfSize>> = BTreeMap::new();
    for size in sizes {
        groups.entry((size.place, size.is_write)).or_default().push(*size);
    }
    let mut flows: Vec<Flow> = groups
        .into_iter()
        .map(|((place, is_write), sizes)| {
            let name = names.get(&place).cloned().unwrap_or_default();
            flow(name, is_write, &sizes)
        })
        .collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.asked_bytes.max(flow.device_bytes)));
    flows
}

/// Sums all places, for each direction with any I/O.
pub fn of_all(sizes: &[OfSize], name: &str) -> Vec<Flow> {
    let of = |is_write| {
        let sizes: Vec<OfSize> =
            sizes.iter().filter(|size| size.is_write == is_write).copied().collect();
        (!sizes.is_empty()).then(|| flow(name.to_owned(), is_write, &sizes))
    };
    [false, true].into_iter().filter_map(of).collect()
}

fn flow(path: String, is_write: bool, sizes: &[OfSize]) -> Flow {
    let of = |layer| sizes.iter().filter(move |size| size.layer == layer);
    let sum = |layer, number: fn(&OfSize) -> u64| of(layer).map(number).sum::<u64>();
    let mut flow = Flow {
        path,
        direction: if is_write { Direction::Write } else { Direction::Read },
        class: Class::Unknown,
        evidence: String::new(),
        calls: calls(of(Layer::Asked)),
        moved: sum(Layer::Asked, |size| size.sum.moved),
        asked_bytes: sum(Layer::Asked, |size| size.sum.bytes),
        sequential: sum(Layer::Asked, |size| size.sum.sequential),
        aligned: sum(Layer::Asked, |size| size.sum.aligned),
        added_pages: sum(Layer::Cache, |size| size.sum.bytes) / PAGE_BYTES,
        device: commonest(of(Layer::Device)),
        device_requests: sum(Layer::Device, |size| size.sum.calls),
        device_bytes: sum(Layer::Device, |size| size.sum.bytes),
        transfers: transfers(of(Layer::Asked)),
    };
    classify(&mut flow);
    flow
}

/// Groups by kind of call, most bytes first.
fn calls<'a>(sizes: impl Iterator<Item = &'a OfSize>) -> Vec<Calls> {
    let mut kinds: BTreeMap<&'static str, Vec<&OfSize>> = BTreeMap::new();
    for size in sizes {
        kinds.entry(size.call).or_default().push(size);
    }
    let calls = |(kind, sizes): (&'static str, Vec<&OfSize>)| Calls {
        kind,
        calls: sizes.iter().map(|size| size.sum.calls).sum(),
        failed: sizes.iter().map(|size| size.sum.failed).sum(),
        bytes: sizes.iter().map(|size| size.sum.bytes).sum(),
        sizes: commonest(sizes.into_iter()),
    };
    let mut calls: Vec<Calls> = kinds.into_iter().map(calls).collect();
    calls.sort_by_key(|calls| std::cmp::Reverse(calls.bytes));
    calls
}

/// Kinds of calls that copy data. The others move it within the kernel, or map it.
const COPYING: [&str; 10] =
    ["read", "pread", "readv", "preadv", "write", "pwrite", "writev", "pwritev", "io_uring", "aio"];

/// Groups calls that copied data by requested size.
fn transfers<'a>(sizes: impl Iterator<Item = &'a OfSize>) -> Vec<Transfer> {
    let mut found: BTreeMap<u64, Transfer> = BTreeMap::new();
    for size in sizes.filter(|size| COPYING.contains(&size.call) && size.sum.moved > 0) {
        let transfer = found.entry(size.size_bytes).or_insert(Transfer { calls: 0, bytes: 0 });
        transfer.calls += size.sum.moved;
        transfer.bytes += size.sum.bytes;
    }
    found.into_values().collect()
}

fn commonest<'a>(sizes: impl Iterator<Item = &'a OfSize>) -> Vec<Size> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for size in sizes {
        *counts.entry(size.size_bytes).or_default() += size.sum.calls + size.sum.failed;
    }
    let mut sizes: Vec<Size> =
        counts.into_iter().map(|(size_bytes, count)| Size { size_bytes, count }).collect();
    sizes.sort_by_key(|size| std::cmp::Reverse((size.count, size.size_bytes)));
    sizes
}

/// Returns what was counted between two samples.
pub fn since(after: &[OfSize], before: &[OfSize]) -> Vec<OfSize> {
    let key = |size: &OfSize| {
        (size.place, size.tgid, size.layer, size.is_write, size.call, size.size_bytes)
    };
    let known: HashMap<_, Sum> = before.iter().map(|size| (key(size), size.sum)).collect();
    let of = |size: &OfSize| {
        let old = known.get(&key(size)).copied().unwrap_or_default();
        let sum = Sum {
            calls: size.sum.calls - old.calls,
            moved: size.sum.moved - old.moved,
            failed: size.sum.failed - old.failed,
            bytes: size.sum.bytes - old.bytes,
            sequential: size.sum.sequential - old.sequential,
            aligned: size.sum.aligned - old.aligned,
        };
        OfSize { sum, ..*size }
    };
    after.iter().map(of).filter(|size| size.sum != Sum::default()).collect()
}
