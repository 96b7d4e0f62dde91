//! A target for any [`Database`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::capability::Capability;
use blockstone_base::column::{Cell, Column, Reading};
use blockstone_base::database::{INSTANCE, SQL};
use blockstone_base::load::Op;
use parking_lot::Mutex;

use super::border::Border;
use super::content::Content;
use super::session::{Counts, SqlSession};
use super::watch::{Behind, Watch};
use super::{CounterValues, Database, Link, load};
use crate::spec::TargetSpec;
use crate::target::{Description, Latencies, Progress, Target, TargetError, TargetSession};

/// Commit latency as seen by the sessions.
const COMMIT: &str = "session/commit";
/// Maximum time to wait for sessions to publish the counts they hold back.
const HAND_OVER: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct SqlTarget<D: Database> {
    database: D,
    content: Arc<Content>,
    counts: Arc<Counts>,
    watch: Mutex<Option<Watch>>,
    border: Border,
}

impl<D: Database> SqlTarget<D> {
    pub fn open(
        spec: &TargetSpec,
        _progress: &mut Progress<'_>,
    ) -> Result<Arc<dyn Target>, TargetError> {
        let content = Content::new(spec);
        let database = D::open(spec, content.clone())?;
        let (content, counts) = (Arc::new(content), Arc::default());
        let border = database.border();
        Ok(Arc::new(Self { database, content, counts, watch: Mutex::new(None), border }))
    }

    /// Asks all sessions for the counts that they hold back, and waits for them briefly.
    fn collect_counts(&self) {
        let counts = &self.counts;
        counts.handed_over.store(0, Ordering::Relaxed);
        counts.asked.fetch_add(1, Ordering::Relaxed);
        let until = Instant::now() + HAND_OVER;
        let waiting = || {
            counts.handed_over.load(Ordering::Relaxed) < counts.connected.load(Ordering::Relaxed)
        };
        while waiting() && Instant::now() < until {
            thread::sleep(Duration::from_micros(500));
        }
    }

    fn look(&self, exact: bool) -> CounterValues {
        let watch = self.watch.lock();
        watch.as_ref().map(|watch| watch.look(exact)).unwrap_or_default()
    }

    /// Returns the cells of `columns`: the counts of the sessions if they have the column,
    /// otherwise those of the database.
    fn cells(&self, columns: &[Column], seen: &CounterValues) -> Vec<Cell> {
        let counted = |name: &str| {
            Some(match name {
                "commits" => &self.counts.commits,
                "db_time_ns" => &self.counts.db_time_ns,
                "retries" => &self.counts.retries,
                "commit_ns" => &self.counts.commit_ns,
                _ => return None,
            })
        };
        let cell = |column: &Column| {
            if let Some(count) = counted(column.name) {
                return Cell::from(count.load(Ordering::Relaxed));
            }
            let said = seen.statistics.iter().find(|(name, _)| *name == column.name);
            Cell::from(said.map(|(_, value)| *value))
        };
        columns.iter().map(cell).collect()
    }
}

impl<D: Database> Target for SqlTarget<D> {
    fn load(&self, progress: &mut Progress<'_>) -> Result<(), TargetError> {
        let filled = load::fill(&self.database, &self.content, progress);
        filled
            .and_then(|()| self.border.cross(|| self.database.settle()))
            .map_err(|error| self.database.explained(error))?;
        let watcher = self.border.cross(|| self.database.watcher())?;
        let watcher = Box::new(Behind { border: self.border.clone(), watcher });
        let watch = Watch::start(watcher, Arc::clone(&self.counts))?;
        *self.watch.lock() = Some(watch);
        Ok(())
    }

    fn session(&self, index: u32) -> Result<Box<dyn TargetSession>, TargetError> {
        let link = self.border.cross(|| self.database.link())?;
        let (content, counts) = (Arc::clone(&self.content), Arc::clone(&self.counts));
        Ok(Box::new(SqlSession::new(link, index, content, counts, self.border.clone())))
    }

    fn sample(&self, exact: bool, readings: &mut Vec<Reading>) {
        if exact && D::Link::HOLDS_COUNTS {
            self.collect_counts();
        }
        let seen = self.look(exact);
        for schema in [&INSTANCE, &SQL] {
            let cells = self.cells(schema.columns, &seen);
            readings.push(Reading { probe: schema.probe, object: String::new(), cells });
        }
        readings.extend(seen.readings);
        if D::Link::BLOCKS_HERE {
            readings.extend(self.counts.blocked.readings(self.content.copied_rows() > 0));
        }
    }

    fn take_latencies(&self) -> Vec<Latencies> {
        let histogram = self.counts.commit_latency.take();
        if histogram.count() == 0 {
            return Vec::new();
        }
        vec![Latencies { name: COMMIT.to_owned(), op: Op::Commit, histogram }]
    }

    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        self.database.capabilities()
    }

    fn describe(&self) -> Result<Description, TargetError> {
        Ok(self.border.cross(|| self.database.describe())?)
    }

    fn shutdown(&self) -> Result<(), TargetError> {
        if let Some(watch) = self.watch.lock().take() {
            watch.end();
        }
        Ok(self.border.cross(|| self.database.tear_down())?)
    }
}
