//! The table of cards spread over cells, database servers that each hold a part, and what the
//! queries of a host read from and move between them.

mod query;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use blockstone_base::hint::Hint;
use blockstone_base::units::Bytes;
use blockstone_measure::claim::{self, ClaimError};
use blockstone_measure::scratch;
use blockstone_servers::SqlError;
use blockstone_servers::cells::{Cells, CellsSpec, Moved, Session};
use blockstone_sys::{child, netns, survey};

use crate::cards::{Cards, SPAN_S, TABLE, sql_columns};
pub use query::Query;

/// Heap bytes per row, rounded up.
const HEAP_ROW_BYTES: u64 = 160;
/// Bytes of a freshly created server, with its log.
const SERVER_BYTES: u64 = 96 << 20;
/// Bytes per message of COPY.
const CHUNK: usize = 256 << 10;
pub const CELLS_MAX: u32 = 64;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory of the servers' files, which are removed at the end.
    pub dir: PathBuf,
    pub cards: Cards,
    /// The numbers of cells to spread the table over, measured one after the other.
    pub cells: Vec<u32>,
    pub programs: Option<PathBuf>,
    pub server_settings: Vec<(String, String)>,
    pub cache: Bytes,
    /// How often each query is run. The fastest run is kept: it was disturbed least.
    pub repeat: u32,
    /// Distinguishes the files of this run from those of other runs.
    pub id: u64,
}

/// Measurement of one query on one number of cells.
#[derive(Clone, Debug)]
pub struct Ran {
    pub cells: u32,
    pub query: Query,
    /// Whether filtering, and counting in a count, was left to the cells.
    pub pushdown: bool,
    pub rows: u64,
    /// Size of the table's files on all cells.
    pub table_bytes: u64,
    /// The statement that the host sends to each cell, from its plan.
    pub remote: String,
    /// Seconds of the query in each round; a round runs each query once.
    pub seconds_of_rounds: Vec<f64>,
    /// Counters of the fastest round.
    pub moved: Moved,
}

/// Bytes of a PostgreSQL block.
pub const BLOCK: u64 = 8192;

impl Ran {
    /// Bytes that the plan requested from the cells: blocks accessed, in their buffers or not.
    pub fn asked_bytes(&self) -> u64 {
        (self.moved.buffer_reads + self.moved.buffer_hits) * BLOCK
    }
}

#[derive(Clone, Debug)]
pub struct Measured {
    /// Version of PostgreSQL as reported by the server.
    pub release: String,
    /// Why the bytes of the sockets were not checked against a network interface of their own;
    /// `None` if they were.
    pub not_apart: Option<String>,
    /// Files left behind by killed runs.
    pub removed: Vec<PathBuf>,
    pub runs: Vec<Ran>,
    /// A signal stopped the measurement early.
    pub interrupted: bool,
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum CellsError {
    #[error(transparent)]
    #[hint(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    #[hint(transparent)]
    Survey(#[from] survey::SurveyError),
    #[error(transparent)]
    #[hint(transparent)]
    Sql(#[from] SqlError),
    #[error("{query} on {cells} cells answered {found} rows, not {expected}")]
    #[hint("please report it, with the version of the database")]
    Answer { query: &'static str, cells: u32, found: String, expected: u64 },
    #[error("start a thread for the servers: {0}")]
    #[hint("raise ulimit -u")]
    Thread(std::io::Error),
}

/// Reports the current step and the share of the work done; returns false to stop.
pub type Tell<'a> = dyn FnMut(f64, &str) -> bool + Send + 'a;

/// Starts the servers, loads the table, runs the queries, and removes the servers. Fails before
/// writing anything if the directory has too little space.
pub fn measure(settings: &Settings, tell: &mut Tell<'_>) -> Result<Measured, CellsError> {
    check_space(settings)?;
    let removed = scratch::remove_orphans(&settings.dir, &[]);
    // The namespace belongs to this thread, and its servers end with it in any case.
    let measured = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("cells".to_owned());
        let working = thread.spawn_scoped(scope, move || {
            let not_apart = enter();
            run(settings, not_apart, tell)
        });
        working.map_err(CellsError::Thread)?.join().unwrap_or_else(|panic| {
            std::panic::resume_unwind(panic);
        })
    });
    let mut measured = measured?;
    measured.removed = removed;
    Ok(measured)
}

/// Enters a new network namespace; returns the reason if that is not possible.
fn enter() -> Option<String> {
    if !child::is_superuser() {
        return Some("a network namespace needs root".to_owned());
    }
    netns::enter().err().map(|error| format!("no network namespace can be made: {error}"))
}

fn check_space(settings: &Settings) -> Result<(), CellsError> {
    let dir = &settings.dir;
    let found = survey::target(Path::new("/"), dir)?;
    claim::directory(dir)?;
    let servers = u64::from(most(settings)) + 1;
    let asked = settings.cards.rows() * HEAP_ROW_BYTES + servers * SERVER_BYTES;
    if found.free_bytes < asked {
        let (asked, free) = (Bytes(asked), Bytes(found.free_bytes));
        return Err(ClaimError::NoSpace { path: dir.clone(), asked, free, less: "--scale" }.into());
    }
    Ok(())
}

fn most(settings: &Settings) -> u32 {
    settings.cells.iter().copied().max().unwrap_or(1)
}

fn run(
    settings: &Settings,
    not_apart: Option<String>,
    tell: &mut Tell<'_>,
) -> Result<Measured, CellsError> {
    let place = |at: u32| {
        let purpose = if at == 0 { "host".to_owned() } else { format!("cell{at}") };
        settings.dir.join(scratch::name(settings.id, &purpose))
    };
    let spec = CellsSpec {
        places: (0..=most(settings)).map(place).collect(),
        programs: settings.programs.clone(),
        settings: settings.server_settings.clone(),
        cache: settings.cache,
        apart: not_apart.is_none(),
    };
    let mut cells = Cells::start(&spec, &mut |text| tell(0.0, &format!("start {text}")))?;
    let mut measured = Measured {
        release: cells.release().to_owned(),
        not_apart: not_apart.or(cells.not_apart().map(str::to_owned)),
        removed: Vec::new(),
        runs: Vec::new(),
        interrupted: false,
    };
    let asked = settings.cells.len() * query::ALL.len();
    let mut loaded_of = 0;
    for &count in &settings.cells {
        let share = measured.runs.len() as f64 / asked as f64;
        let of = |what: &str| format!("{count} cells: {what}");
        let mut go_on =
            |done: f64| tell(share + done * 0.3 / settings.cells.len() as f64, &of("load"));
        let loaded = load(&mut cells, &settings.cards, (count, loaded_of), &mut go_on);
        loaded_of = count;
        let table_bytes = match loaded {
            Err(SqlError::Interrupted) => {
                measured.interrupted = true;
                return Ok(measured);
            }
            loaded => loaded?,
        };
        let mut session = cells.session(count as usize)?;
        let mut go_on = |done: f64, query: Query| {
            tell(share + (0.3 + 0.7 * done) / settings.cells.len() as f64, &of(query.name()))
        };
        let moved = match rounds((&mut session, count), settings.repeat.max(1), &mut go_on) {
            Err(SqlError::Interrupted) => {
                measured.interrupted = true;
                return Ok(measured);
            }
            moved => moved?,
        };
        for (&(query, pushdown), rounds) in query::ALL.iter().zip(moved) {
            let seconds_of_rounds = rounds.iter().map(|it| it.seconds).collect();
            let fastest = rounds.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
            let Some(moved) = fastest else { continue };
            check(&settings.cards, query, count, &moved)?;
            measured.runs.push(Ran {
                cells: count,
                query,
                pushdown,
                rows: settings.cards.rows(),
                table_bytes,
                remote: query::remote(&session.plan(&query.sql(pushdown, count))?),
                seconds_of_rounds,
                moved,
            });
        }
    }
    Ok(measured)
}

/// Spreads the table over the first `count` cells by time and attaches the parts on the host; the
/// first `before` cells held it until now. Returns the size of the table's files in bytes.
fn load(
    cells: &mut Cells,
    cards: &Cards,
    (count, before): (u32, u32),
    go_on: &mut dyn FnMut(f64) -> bool,
) -> Result<u64, SqlError> {
    for at in 0..before {
        cells.on_cell(at as usize, &format!("DROP TABLE {TABLE}"))?;
    }
    let mut bytes = 0;
    for at in 0..u64::from(count) {
        let mut rows = part(cards, (at, u64::from(count)), go_on);
        bytes += cells.fill(at as usize, (TABLE, &sql_columns()), &mut rows)?.1;
    }
    cells.on_host(&query::host_tables(count))?;
    Ok(bytes)
}

/// Returns the rows of part `at` of `count`, ordered by time.
fn part<'a>(
    cards: &'a Cards,
    (at, count): (u64, u64),
    go_on: &'a mut dyn FnMut(f64) -> bool,
) -> impl FnMut(&mut Vec<u8>) -> ControlFlow<bool> + 'a {
    let bound = |at: u64| cards.first_since(at * SPAN_S / count);
    let (mut next, end) = (bound(at), bound(at + 1));
    move |chunk| {
        while chunk.len() < CHUNK && next < end {
            cards.row(next).write('\t', chunk);
            next += 1;
        }
        if !go_on(next as f64 / cards.rows() as f64) {
            return ControlFlow::Break(false);
        }
        if next < end { ControlFlow::Continue(()) } else { ControlFlow::Break(true) }
    }
}

/// Runs each query once per round, so that other load on the machine disturbs all queries alike.
fn rounds(
    (session, cells): (&mut Session<'_>, u32),
    repeat: u32,
    go_on: &mut dyn FnMut(f64, Query) -> bool,
) -> Result<Vec<Vec<Moved>>, SqlError> {
    let mut moved: Vec<Vec<Moved>> = vec![Vec::new(); query::ALL.len()];
    for round in 0..repeat {
        let done = f64::from(round) / f64::from(repeat);
        for (moved, &(query, pushdown)) in moved.iter_mut().zip(&query::ALL) {
            let text = query.sql(pushdown, cells);
            moved.push(session.ask(&text, &mut || go_on(done, query))?);
        }
    }
    Ok(moved)
}

/// Fails if the answer has the wrong number of rows, which would invalidate all counters.
fn check(cards: &Cards, query: Query, cells: u32, moved: &Moved) -> Result<(), CellsError> {
    let expected = if query == Query::Full { cards.rows() } else { cards.own() };
    let found = moved.answer.first().cloned().unwrap_or_default();
    if found == expected.to_string() {
        return Ok(());
    }
    Err(CellsError::Answer { query: query.name(), cells, found, expected })
}
