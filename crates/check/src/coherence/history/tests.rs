use std::collections::HashSet;
use std::time::Instant;

use blockstone_base::rng::Rng;

use super::*;

fn write(rank: u32, value: u64, start_ns: u64, end_ns: u64) -> Operation {
    Operation { rank, register: 0, is_write: true, value, start_ns, end_ns }
}

fn read(rank: u32, value: u64, start_ns: u64, end_ns: u64) -> Operation {
    Operation { is_write: false, ..write(rank, value, start_ns, end_ns) }
}

/// Returns whether some order of all acknowledged operations explains the history, by trying all.
/// `precedes` returns whether its first operation must come before its second.
fn explained(history: &[Operation], precedes: &dyn Fn(usize, usize) -> bool) -> bool {
    fn search(
        history: &[Operation],
        precedes: &dyn Fn(usize, usize) -> bool,
        state: (u32, u64),
        seen: &mut HashSet<(u32, u64)>,
    ) -> bool {
        let (done, value) = state;
        let left = |at: usize| done & (1 << at) == 0;
        if (0..history.len()).all(|at| !left(at) || history[at].end_ns == NEVER) {
            return true;
        }
        if !seen.insert(state) {
            return false;
        }
        (0..history.len()).filter(|&at| left(at)).any(|at| {
            let operation = history[at];
            let first = (0..history.len()).all(|it| it == at || !left(it) || !precedes(it, at));
            let legal = operation.is_write || operation.value == value;
            let next = if operation.is_write { operation.value } else { value };
            first && legal && search(history, precedes, (done | 1 << at, next), seen)
        })
    }
    search(history, precedes, (0, INITIAL), &mut HashSet::new())
}

/// Returns a history of up to eight operations of three ranks, each of which performs one after the
/// other.
fn random_history(rng: &mut Rng) -> Vec<Operation> {
    let mut history = Vec::new();
    let mut value = 0;
    for rank in 0..=rng.below(3) as u32 {
        let mut now = 1 + rng.below(6);
        for _ in 0..rng.below(4) {
            let start_ns = now + rng.below(3);
            let end_ns = start_ns + rng.below(6);
            now = end_ns + 1 + rng.below(3);
            if rng.below(2) == 0 {
                value += 1;
                history.push(write(rank, value, start_ns, end_ns));
            } else {
                history.push(read(rank, 0, start_ns, end_ns));
            }
        }
        let is_cut = rng.below(6) == 0;
        if let Some(last) = history.last_mut().filter(|it| is_cut && it.is_write) {
            last.end_ns = NEVER;
        }
    }
    for operation in history.iter_mut().filter(|it| !it.is_write) {
        operation.value = rng.below(value + 1);
    }
    history
}

#[test]
fn it_agrees_with_trying_all_orders() {
    let mut rng = Rng::new(17, 3);
    let mut counts = [0; 4];
    for number in 0..20_000 {
        let history = random_history(&mut rng);
        let real_time = |a: usize, b: usize| history[a].end_ns < history[b].start_ns;
        let linearizable = explained(&history, &real_time);
        let found = contradiction(&history);
        assert_eq!(found.is_none(), linearizable, "{number}: {found:?} {history:#?}");
        // Ranks perform their operations in the order of the list.
        let program = |a: usize, b: usize| history[a].rank == history[b].rank && a < b;
        let sequential = explained(&history, &program);
        let found = regression(&history);
        assert_eq!(found.is_none(), sequential, "{number}: {found:?} {history:#?}");
        counts[usize::from(linearizable)] += 1;
        counts[2 + usize::from(sequential)] += 1;
    }
    assert!(counts.iter().all(|&count| count > 1_000), "both answers are tried: {counts:?}");
}

/// Returns a linearizable history of several registers: operations take effect at ascending times,
/// which are between their start and their end.
fn legal(operations: usize, seed: u64) -> Vec<Operation> {
    let mut rng = Rng::new(seed, 0);
    let mut values = [INITIAL; 4];
    let mut free_at = [1_u64; 8];
    let mut history = Vec::with_capacity(operations);
    let mut now = 100;
    for number in 0..operations {
        now += 1 + rng.below(10);
        let rank = (0..8).min_by_key(|&it| (free_at[it] + rng.below(50), it)).unwrap();
        if free_at[rank] >= now {
            now = free_at[rank] + 1;
        }
        let register = rng.below(4);
        let is_write = rng.below(3) == 0;
        let at = register as usize;
        if is_write {
            values[at] = number as u64 + 1;
        }
        let start_ns = free_at[rank].max(now.saturating_sub(40)) + 1;
        let start_ns = start_ns.min(now);
        let end_ns = now + rng.below(40);
        free_at[rank] = end_ns;
        let (rank, register) = (rank as u32, register as u32);
        history.push(Operation { rank, register, is_write, value: values[at], start_ns, end_ns });
    }
    history
}

#[test]
fn every_planted_fault_is_found_and_named() {
    for seed in 0..200 {
        let history = legal(400, seed);
        assert_eq!(contradiction(&history), None, "{seed}");
        assert_eq!(regression(&history), None, "{seed}");
        let late = 399 - history.iter().rev().position(|it| !it.is_write).unwrap();
        let planted = |value: u64| {
            let mut history = history.clone();
            history[late].value = value;
            contradiction(&history)
        };
        // A write to the same register that was replaced long ago.
        let same = |it: &&Operation| it.register == history[late].register && it.is_write;
        let old = history.iter().find(same).unwrap();
        let found = planted(old.value).unwrap();
        assert_eq!(
            (found.fault, found.second),
            (Fault::Stale, Operation { value: old.value, ..history[late] })
        );
        assert!(found.first.end_ns < found.second.start_ns && found.first.value != old.value);
        assert_eq!(planted(INITIAL).unwrap().fault, Fault::Stale, "lost");
        assert_eq!(planted(1 << 40).unwrap().fault, Fault::Invented, "torn");
        let other = |it: &&Operation| it.register != history[late].register && it.is_write;
        let misplaced = history.iter().find(other).unwrap().value;
        assert_eq!(planted(misplaced).unwrap().fault, Fault::Invented, "of another address");

        let mut early = history.clone();
        let at = early.iter().position(|it| !it.is_write).unwrap();
        let register = early[at].register;
        let last = early.iter().rev().find(|it| it.is_write && it.register == register);
        early[at].value = last.unwrap().value;
        assert_eq!(contradiction(&early).unwrap().fault, Fault::FromFuture);

        let mut twice = history.clone();
        let of_same = |it: &&mut Operation| it.is_write && it.register == register;
        let mut writes = twice.iter_mut().filter(of_same);
        let (first, second) = (writes.next().unwrap(), writes.next().unwrap());
        second.value = first.value;
        assert_eq!(contradiction(&twice).unwrap().fault, Fault::Ambiguous);
    }
}

#[test]
fn the_counterexample_is_the_acknowledged_write_and_the_read_that_missed_it() {
    let history = [
        write(0, 40, 10, 20),
        read(1, 40, 21, 25),
        write(0, 41, 30, 40),
        read(1, 40, 100, 110),
        read(1, 41, 120, 130),
    ];
    let found = contradiction(&history).unwrap();
    assert_eq!((found.first, found.second), (history[2], history[3]));
    assert_eq!(found.gap_ns(), 60);
    assert_eq!(regression(&history), None, "late, but never back");
    let mut back = history.to_vec();
    back.push(read(1, 40, 140, 150));
    let found = regression(&back).unwrap();
    assert_eq!((found.first.value, found.second), (41, back[5]));
    // While a write is under way, and if it never ends, both values may be read.
    let open = [write(0, 1, 1, NEVER), read(1, 0, 5, 6), read(1, 1, 7, 8), read(2, 1, 9, 9)];
    assert_eq!(contradiction(&open), None);
    let back = [open[0], open[2], read(2, 0, 9, 9)];
    assert_eq!(contradiction(&back).unwrap().second, back[2], "a read showed it before");
    let swapped = [read(0, 5, 1, 2), write(0, 5, 3, 4)];
    assert_eq!(regression(&swapped).unwrap().fault, Fault::FromFuture);
    assert_eq!(contradiction(&[]), None);
}

#[test]
fn clocks_that_differ_accuse_the_innocent_until_their_bound_is_granted() {
    // The clock of rank 1 is 5 ms ahead.
    let mut history = vec![write(0, 1, 1_000_000, 1_100_000)];
    history.push(read(1, 0, 900_000 + 5_000_000, 950_000 + 5_000_000));
    assert!(contradiction(&history).is_some());
    for operation in &mut history {
        operation.start_ns = operation.start_ns.saturating_sub(2_500_000).max(1);
        operation.end_ns += 2_500_000;
    }
    assert_eq!(contradiction(&history), None);
}

#[test]
fn a_million_operations_are_checked_in_one_go() {
    let count = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let mut history = legal(count, 1);
    let began = Instant::now();
    assert_eq!(contradiction(&history), None);
    assert_eq!(regression(&history), None);
    let taken = began.elapsed();
    let at = history.len() - 1 - history.iter().rev().position(|it| !it.is_write).unwrap();
    history[at].value =
        history.iter().find(|it| it.register == history[at].register && it.is_write).unwrap().value;
    assert_eq!(contradiction(&history).unwrap().second, history[at]);
    eprintln!("{count} operations, both orders: {taken:?}");
}
