//! Limits concurrent connections, and chooses the one that gives way to the next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{self, Instant};

/// Minimum time for a connection to send its request. Faster connections wait in the kernel's
/// queue, where their requests arrive: a scraper has sent its request when its turn comes.
const ASKING: Duration = Duration::from_millis(20);
/// Minimum time for a connection that has sent its request.
const ANSWERING: Duration = Duration::from_millis(50);

/// State that a connection shares with [`Slots`].
#[derive(Clone, Debug, Default)]
pub struct Slot(Arc<AtomicBool>);

impl Slot {
    /// Marks that the request has arrived and is being answered.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Taken {
    task: AbortHandle,
    place: Slot,
    since: Instant,
}

/// The open connections, oldest first.
pub struct Places {
    most: usize,
    taken: VecDeque<Taken>,
}

impl Places {
    pub fn new(most: usize) -> Self {
        Self { most, taken: VecDeque::new() }
    }

    pub fn take(&mut self, task: AbortHandle, place: Slot) {
        self.taken.push_back(Taken { task, place, since: Instant::now() });
    }

    /// Waits until there is room for one more, and frees a place once its minimum time has passed.
    pub async fn make_room(&mut self) {
        loop {
            self.taken.retain(|taken| !taken.task.is_finished());
            let Some(index) = self.gives_way().filter(|_| self.taken.len() >= self.most) else {
                return;
            };
            let Taken { place, since, .. } = &self.taken[index];
            let until = *since + if place.has_asked() { ANSWERING } else { ASKING };
            if Instant::now() < until {
                time::sleep_until(until).await;
            } else {
                self.free(index);
            }
        }
    }

    /// Ends one connection immediately.
    pub fn free_one(&mut self) {
        if let Some(index) = self.gives_way() {
            self.free(index);
        }
    }

    fn free(&mut self, index: usize) {
        if let Some(taken) = self.taken.remove(index) {
            taken.task.abort();
        }
    }

    /// Returns the oldest connection that has not sent its request. Those that do not read their
    /// answer may hold half of the places.
    fn gives_way(&self) -> Option<usize> {
        let asked = self.taken.iter().filter(|taken| taken.place.has_asked()).count();
        let too_many_asked = asked > self.most / 2;
        let oldest = self.taken.iter().position(|taken| taken.place.has_asked() == too_many_asked);
        oldest.or((!self.taken.is_empty()).then_some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way_and_neither_kind_takes_all_places() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut places = Places::new(4);
        let mut tasks = Vec::new();
        let mut connect = |asks: bool| {
            runtime.block_on(places.make_room());
            let (task, place) = (runtime.spawn(std::future::pending::<()>()), Slot::default());
            places.take(task.abort_handle(), place.clone());
            if asks {
                place.ask();
            }
            tasks.push(task);
            runtime.block_on(tokio::task::yield_now());
            tasks.iter().map(|task| !task.is_finished()).collect::<Vec<_>>()
        };
        connect(true);
        connect(false);
        connect(false);
        connect(true);
        assert_eq!(connect(false), [true, false, true, true, true], "the oldest that is silent");
        assert_eq!(connect(true), [true, false, false, true, true, true]);
        assert_eq!(connect(false), [false, false, false, true, true, true, true], "three asked");
    }
}
