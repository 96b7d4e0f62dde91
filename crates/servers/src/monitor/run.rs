//! A run of Blockstone in progress in another process on this host.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use blockstone_base::column::{Reading, Schema, Unmeasured};
use blockstone_base::database::{self, SESSION, SESSIONS};

use super::{Monitor, Server};
use crate::live::{Answer, Asker, Question};
use crate::sql::Member;
use crate::sql::error::SqlError;
use crate::unmeasured::Missing;

/// The series of a run that samples and counts its sessions.
static WITH_SESSIONS: LazyLock<Vec<&Schema>> =
    LazyLock::new(|| database::ALL.iter().chain(database::OF_SESSIONS).copied().collect());

struct Run {
    dir: PathBuf,
    asker: Asker,
    last: Answer,
}

/// Connects to the run that records into the directory `rest`.
pub fn open(rest: &str) -> Result<Box<dyn Monitor>, SqlError> {
    let dir = PathBuf::from(rest);
    let mut asker = Asker::connect(&dir).map_err(|error| over(&dir, &error))?;
    let last = asker.ask(Question::Tick).map_err(|error| over(&dir, &error))?;
    Ok(Box::new(Run { dir, asker, last }))
}

fn over(dir: &Path, error: &io::Error) -> SqlError {
    let server = format!("the run in {}", dir.display());
    let why = match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::UnexpectedEof => "it is not in progress".to_owned(),
        _ => error.to_string(),
    };
    let hint = format!("blockstone watch --replay {} shows what was recorded", dir.display());
    SqlError::Connect { server, why, hint }
}

impl Run {
    /// Appends the wanted series of the answer.
    fn ask(
        &mut self,
        question: Question,
        readings: &mut Vec<Reading>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), SqlError> {
        self.last = self.asker.ask(question).map_err(|error| over(&self.dir, &error))?;
        let rows = self.last.rows.iter().filter(|(probe, ..)| wanted(probe));
        readings.extend(rows.filter_map(|(probe, object, cells)| {
            let schema = schema(probe).filter(|schema| schema.columns.len() == cells.len())?;
            Some(Reading { probe: schema.probe, object: object.clone(), cells: cells.clone() })
        }));
        Ok(())
    }
}

fn is_sample(probe: &str) -> bool {
    [SESSION.probe, SESSIONS.probe].contains(&probe)
}

impl Monitor for Run {
    fn series(&self) -> &'static [&'static Schema] {
        let is_sampled = self.last.rows.iter().any(|(probe, ..)| is_sample(probe));
        if is_sampled { &WITH_SESSIONS } else { database::ALL }
    }

    fn counters(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        self.ask(Question::Counters, readings, |probe| !is_sample(probe))
    }

    /// Returns the run's last samples. The time of each event is exact in its counters.
    fn sessions(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError> {
        self.ask(Question::Tick, readings, is_sample)
    }

    fn unmeasured(&self) -> Missing {
        let known = |(probe, column, why): &(String, String, Unmeasured)| {
            let schema = schema(probe)?;
            let column = schema.columns.iter().find(|known| known.name == column)?;
            Some((schema.probe, column.name, why.clone()))
        };
        self.last.unmeasured.iter().filter_map(known).collect()
    }

    fn describe(&self) -> Server {
        Server {
            address: format!("run:{}", self.dir.display()),
            product: "Blockstone run on".to_owned(),
            family: "blockstone",
            instance: format!("blockstone {}", name(&self.dir)),
            version: self.last.target.clone(),
            settings: Vec::new(),
            is_local: true,
            pid: Some(self.last.pid),
        }
    }

    /// A run's threads are told apart by their names, like those of any run.
    fn processes(&mut self) -> Vec<(Member, String)> {
        Vec::new()
    }

    fn reconnect(&mut self) -> Result<(), SqlError> {
        self.asker = Asker::connect(&self.dir).map_err(|error| over(&self.dir, &error))?;
        Ok(())
    }
}

/// Returns the recording's name, with characters replaced that would break the instance's name.
fn name(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_', "_")
}

fn schema(probe: &str) -> Option<&'static Schema> {
    WITH_SESSIONS.iter().copied().find(|schema| schema.probe == probe)
}
