//! Estimates the cost of writing a plan from a few rows of each table, which are read and
//! discarded.

use std::io::Read;
use std::time::Instant;

use crate::postgres::Client;
use blockstone_subset::Plan;

use super::PostgresSource;
use super::export::{Job, Wanted, copy, is_at, places};
use super::rows::io_error;
use crate::sql::error::{During, SqlError};
use crate::subset::source::Expected;

/// Rows of a table to read, in sequence and by place.
const TRIED: u64 = 20_000;
const TRIED_BY_PLACE: usize = 2_000;

struct Trial {
    rows: u64,
    bytes: u64,
    seconds: f64,
}

fn trial(link: &mut Client, job: &Job<'_>) -> Result<Trial, SqlError> {
    let query = match &job.rows {
        Wanted::All | Wanted::Where(_) => format!("{} LIMIT {TRIED}", job.select()),
        Wanted::Many(..) => format!("{} LIMIT {TRIED}", job.select_with_places()),
        Wanted::Few(rows, part) => {
            let all = rows.range(places(*part)).count();
            // Neighbours in the middle, which are about as close to each other as all rows.
            let before = all.saturating_sub(TRIED_BY_PLACE) / 2;
            let tried: Vec<u64> =
                rows.range(places(*part)).skip(before).take(TRIED_BY_PLACE).collect();
            format!("{} WHERE {}", job.select(), is_at(&tried))
        }
    };
    let what = format!("read rows of {}", job.relation);
    let began = Instant::now();
    let mut answer = Vec::new();
    let mut reader = link.copy_out(&copy(&query)).during(&what)?;
    reader.read_to_end(&mut answer).map_err(|error| io_error(&what, &error))?;
    let seconds = began.elapsed().as_secs_f64();
    let rows = answer.iter().map(|&byte| u64::from(byte == b'\n')).sum();
    Ok(Trial { rows, bytes: answer.len() as u64, seconds })
}

impl PostgresSource<'_> {
    /// Estimates the bytes and seconds for the rows of `plan`.
    pub fn expect(&mut self, plan: &Plan, readers: usize) -> Result<Expected, SqlError> {
        let jobs = self.jobs(plan);
        let (mut bytes, mut times) = (0.0, Vec::new());
        for (table, planned) in plan.tables.iter().enumerate().filter(|(_, it)| it.rows() > 0) {
            let name = self.catalogue.tables[table].name.clone();
            self.told(&format!("a few rows of {name}"), 0)?;
            for job in jobs.iter().filter(|job| job.table == table) {
                let tried = trial(&mut self.link, job)?;
                if tried.rows == 0 {
                    continue;
                }
                let each = 1.0 / tried.rows as f64;
                let is_few = matches!(job.rows, Wanted::Few(..));
                let read = if is_few { planned.rows() } else { planned.source_rows };
                bytes += planned.rows() as f64 * tried.bytes as f64 * each;
                times.push(read as f64 * tried.seconds * each);
                break;
            }
        }
        let readers = if self.is_parallel() { readers.max(1) } else { 1 };
        let longest = times.iter().copied().fold(0.0, f64::max);
        let seconds = longest.max(times.iter().sum::<f64>() / readers as f64);
        Ok(Expected { bytes: bytes as u64, seconds })
    }
}
