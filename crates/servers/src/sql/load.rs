//! Loads the tables: several loaders each take one chunk after another, and report progress.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use blockstone_sys::thread::scoped;

use super::Database;
use super::content::Content;
use super::error::SqlError;
use crate::target::{Loading, Progress, unless};

const TELL: Duration = Duration::from_millis(50);

/// Fills all tables of `content`. Fails with the first error of a loader, or with
/// [`SqlError::Interrupted`] if `progress` stopped it.
pub fn fill<D: Database>(
    database: &D,
    content: &Content,
    progress: &mut Progress<'_>,
) -> Result<(), SqlError> {
    let border = database.border();
    let (loaders, most) = database.loaders();
    let chunks = content.chunks(most);
    let (next, done, end) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let load = || -> Result<(), SqlError> {
        let mut tell = |rows| {
            done.fetch_add(rows, Ordering::Relaxed);
            unless(end.load(Ordering::Relaxed))
        };
        while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
            if end.load(Ordering::Relaxed) {
                return Err(SqlError::Interrupted);
            }
            if let Err(error) = border.cross(|| database.fill(chunk, &mut tell)) {
                // Stops the other loaders.
                end.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let count = loaders.clamp(1, chunks.len().max(1));
        let started = (0..count).map(|_| scoped(scope, "loader", load));
        let started = started.collect::<io::Result<Vec<_>>>().inspect_err(|_| {
            // Loaders that did start stop at the next opportunity.
            end.store(true, Ordering::Relaxed);
        });
        let threads = started.map_err(|error| SqlError::no_thread(&error))?;
        let total = content.all_rows();
        let mut told = |flow: ControlFlow<()>| {
            let loading = Loading { done: done.load(Ordering::Relaxed), total };
            if flow.is_continue() && progress(loading).is_break() {
                end.store(true, Ordering::Relaxed);
                return ControlFlow::Break(());
            }
            flow
        };
        let mut flow = told(ControlFlow::Continue(()));
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(TELL);
            flow = told(flow);
        }
        // An interrupted loader may be a consequence of the first error.
        let (mut result, mut interrupted) = (Ok(()), flow.is_break());
        for thread in threads {
            match thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Err(SqlError::Interrupted) => interrupted = true,
                ended => result = result.and(ended),
            }
        }
        result.and(if interrupted { Err(SqlError::Interrupted) } else { Ok(()) })
    })
}
