//! The table of cards in cells, servers of a database that hold a part each, and what queries of
//! the host take of them.

mod engine;
mod query;

use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_measure::claim::{self, ClaimError};
use blockstone_measure::scratch;
use blockstone_sys::{child, netns, survey};
use blockstone_target::SqlError;
use blockstone_target::cells::{CellsSpec, Moved};

use crate::cards::Cards;
use engine::Asker;
pub use engine::Product;
pub use query::Query;

/// What the file of a table takes a row, with some to spare.
const HEAP_ROW_BYTES: u64 = 160;
/// A server that was just made, with its log.
const SERVER_BYTES: u64 = 96 << 20;
/// Bytes of one message of COPY.
const CHUNK: usize = 256 << 10;
pub const CELLS_MAX: u32 = 64;

#[derive(Clone, Debug)]
pub struct Settings {
    pub product: Product,
    /// Where the servers keep their files; they are removed in the end.
    pub dir: PathBuf,
    pub cards: Cards,
    /// How many cells the table is spread over, one measurement after the other.
    pub cells: Vec<u32>,
    pub programs: Option<PathBuf>,
    pub server_settings: Vec<(String, String)>,
    pub cache: Bytes,
    /// How often each query is asked: the fastest is kept, which others disturbed least.
    pub repeat: u32,
    /// Tells the files of this run from those of others.
    pub id: u64,
}

/// What one query took on one number of cells.
#[derive(Clone, Debug)]
pub struct Ran {
    pub product: Product,
    pub cells: u32,
    pub query: Query,
    /// Whether the filter, and for a count the counting, was left to the cells.
    pub pushdown: bool,
    pub rows: u64,
    /// Of the files of all cells.
    pub table_bytes: u64,
    /// What the host sends to each cell, from its plan.
    pub remote: String,
    /// Of each round; in a round each query is asked once.
    pub seconds_of_rounds: Vec<f64>,
    /// Of the fastest.
    pub moved: Moved,
}

/// A block of PostgreSQL.
pub const BLOCK: u64 = 8192;

impl Ran {
    /// What the plan asks of the cells: blocks that PostgreSQL looked at, in its buffers or not; of
    /// ClickHouse all columns of the table.
    pub fn asked_bytes(&self) -> u64 {
        match self.product {
            Product::Postgres => (self.moved.buffer_reads + self.moved.buffer_hits) * BLOCK,
            Product::ClickHouse => self.table_bytes,
        }
    }

    /// Of that, the columns that were not read.
    pub fn skipped_bytes(&self) -> Option<u64> {
        match self.product {
            Product::Postgres => None,
            Product::ClickHouse => Some(self.table_bytes.saturating_sub(self.moved.file_bytes?)),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Measured {
    pub product: Product,
    /// As the server names it.
    pub release: String,
    /// Why the sockets were not compared with an interface of their own; none if they were.
    pub not_apart: Option<String>,
    /// Files that killed runs had left.
    pub removed: Vec<PathBuf>,
    pub runs: Vec<Ran>,
    /// Not all was measured: a signal asked for the end.
    pub interrupted: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum CellsError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Survey(#[from] survey::SurveyError),
    #[error(transparent)]
    Sql(#[from] SqlError),
    #[error(
        "{query} on {cells} cells answered {found} rows, not {expected}\n\
         hint: please report it, with the version of the database"
    )]
    Answer { query: &'static str, cells: u32, found: String, expected: u64 },
    #[error("start a thread for the servers: {0}\nhint: raise ulimit -u")]
    Thread(std::io::Error),
}

/// What is done and what share of all is done; false asks for the end.
pub type Tell<'a> = dyn FnMut(f64, &str) -> bool + Send + 'a;

/// Starts the servers, loads and asks them, and removes them. Fails before anything is written
/// where the directory cannot hold it.
pub fn measure(settings: &Settings, tell: &mut Tell<'_>) -> Result<Measured, CellsError> {
    check_space(settings)?;
    let removed = scratch::remove_orphans(&settings.dir, &[]);
    // The namespace is the thread's; its servers end with it, whatever happens.
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

/// Why this thread is not in a network namespace of its own.
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
    let product = settings.product;
    let mut cells = product.start(&spec, &mut |text| tell(0.0, &format!("start {text}")))?;
    let mut measured = Measured {
        product,
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
        let loaded = cells.load(settings, (count, loaded_of), &mut go_on);
        loaded_of = count;
        let table_bytes = match loaded {
            Err(SqlError::Interrupted) => {
                measured.interrupted = true;
                return Ok(measured);
            }
            loaded => loaded?,
        };
        let mut session = cells.asker(count)?;
        let mut go_on = |done: f64, query: Query| {
            tell(share + (0.3 + 0.7 * done) / settings.cells.len() as f64, &of(query.name()))
        };
        let moved = match rounds(&mut *session, settings.repeat.max(1), &mut go_on) {
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
                product,
                cells: count,
                query,
                pushdown,
                rows: settings.cards.rows(),
                table_bytes,
                remote: session.remote((query, pushdown))?,
                seconds_of_rounds,
                moved,
            });
        }
    }
    Ok(measured)
}

/// What each query took in each round: what else the machine does then disturbs all queries alike.
fn rounds(
    session: &mut dyn Asker,
    repeat: u32,
    go_on: &mut dyn FnMut(f64, Query) -> bool,
) -> Result<Vec<Vec<Moved>>, SqlError> {
    let mut moved: Vec<Vec<Moved>> = vec![Vec::new(); query::ALL.len()];
    for round in 0..repeat {
        let done = f64::from(round) / f64::from(repeat);
        for (moved, &asked) in moved.iter_mut().zip(&query::ALL) {
            moved.push(session.ask(asked, &mut || go_on(done, asked.0))?);
        }
    }
    Ok(moved)
}

/// An answer with another number of rows than the data have makes every count worthless.
fn check(cards: &Cards, query: Query, cells: u32, moved: &Moved) -> Result<(), CellsError> {
    let expected = if query == Query::Full { cards.rows() } else { cards.own() };
    let found = moved.answer.first().cloned().unwrap_or_default();
    if found == expected.to_string() {
        return Ok(());
    }
    Err(CellsError::Answer { query: query.name(), cells, found, expected })
}
