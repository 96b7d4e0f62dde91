//! Turns of visits of cached blocks → visits per second of processor time, for one session and for
//! one session on each processor.

use blockstone_base::column::Cell;
use blockstone_base::load::VISITS;
use blockstone_base::stats::{self, Estimate};
use blockstone_record::manifest::Figure;
use blockstone_record::{RecordError, Recording, SeriesRow};
use serde::Serialize;

/// Name of the headline figure.
pub(crate) const FIGURE: &str = "visits_per_core_s";

/// Visits of blocks in the buffer cache of the miniature instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CachedVisits {
    /// Blocks per second of processor time of one session alone.
    pub per_core_s: Estimate,
    /// One session on each processor at the same time; null if there is only one processor.
    pub together: Option<Together>,
}

/// Sessions on all processors at the same time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Together {
    /// Number of sessions: the processors that this process may use.
    pub sessions: u64,
    /// Blocks per second of the processor time of all sessions.
    pub per_core_s: Estimate,
    /// Ratio to the rate of one session alone.
    pub ratio: Estimate,
    /// Share of the sessions' time in which they had a processor; the rest went to other processes
    /// and to the hypervisor.
    pub on_processor_ratio: f64,
}

/// Fewest turns for which there is an interval.
const ENOUGH: usize = 3;

struct Turn {
    sessions: u64,
    visits: f64,
    cpu_ns: f64,
    elapsed_ns: f64,
}

/// Reads the visits of a recording. `None` if they were not measured, or in too few turns.
pub fn read(recording: &Recording) -> Result<Option<CachedVisits>, RecordError> {
    if !recording.manifest.probes.iter().any(|info| info.probe == VISITS.probe) {
        return Ok(None);
    }
    let series = recording.series(VISITS.probe)?;
    let place = |name: &str| series.columns().iter().position(|column| column.name == name);
    let names = ["sessions", "visits", "cpu_ns", "elapsed_ns"];
    let [Some(sessions), Some(visits), Some(cpu), Some(elapsed)] = names.map(place) else {
        return Ok(None);
    };
    let turn = |row: SeriesRow<'_>| {
        let of = |column| match row.cell(column) {
            Cell::Value(value) => Some(value as f64),
            _ => None,
        };
        let (sessions, visits) = (of(sessions)? as u64, of(visits)?);
        Some(Turn { sessions, visits, cpu_ns: of(cpu)?, elapsed_ns: of(elapsed)? })
    };
    Ok(of(&series.rows().filter_map(turn).collect::<Vec<_>>()))
}

fn of(turns: &[Turn]) -> Option<CachedVisits> {
    let most = turns.iter().map(|turn| turn.sessions).max()?;
    let of = |sessions: u64| turns.iter().filter(move |turn| turn.sessions == sessions);
    let rates = |sessions| -> Vec<f64> {
        of(sessions).map(|turn| turn.visits * 1e9 / turn.cpu_ns.max(1.0)).collect()
    };
    let estimate = |values: &[f64], sessions: u64| {
        let estimate = stats::mean(values).filter(|_| values.len() >= ENOUGH)?.not_negative();
        let duration_ns = of(sessions).map(|turn| turn.cpu_ns).sum::<f64>() as u64;
        Some(Estimate { duration_ns, ..estimate })
    };
    let alone = rates(1);
    let together = || {
        let all = rates(most);
        let ratios: Vec<f64> =
            all.iter().zip(&alone).map(|(all, alone)| all / alone.max(1.0)).collect();
        let cpu_ns: f64 = of(most).map(|turn| turn.cpu_ns).sum();
        let elapsed_ns: f64 = of(most).map(|turn| turn.elapsed_ns).sum();
        Some(Together {
            sessions: most,
            per_core_s: estimate(&all, most)?,
            ratio: estimate(&ratios, most)?,
            on_processor_ratio: cpu_ns / elapsed_ns.max(1.0),
        })
    };
    Some(CachedVisits {
        per_core_s: estimate(&alone, 1)?,
        together: if most > 1 { together() } else { None },
    })
}

impl CachedVisits {
    pub fn figure(&self) -> (String, Figure) {
        let figure = Figure {
            title: "Cached blocks visited per CPU-second".to_owned(),
            unit: "blocks/s".to_owned(),
            estimate: self.per_core_s,
            phase: "cached-visits".to_owned(),
            condemned_by: Vec::new(),
        };
        (FIGURE.to_owned(), figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(sessions: u64, visits: f64) -> Turn {
        let elapsed_ns = sessions as f64 * 1e9;
        Turn { sessions, visits, cpu_ns: elapsed_ns * 0.9, elapsed_ns }
    }

    #[test]
    fn one_session_is_compared_with_one_on_each_processor() {
        let turns: Vec<Turn> = [2.7e6, 2.8e6, 2.6e6]
            .into_iter()
            .flat_map(|visits| [turn(1, visits), turn(4, 3.0 * visits)])
            .collect();
        let found = of(&turns).unwrap();
        assert!((found.per_core_s.value - 3e6).abs() < 1.0, "{found:?}");
        assert!(found.per_core_s.low < 3e6 && found.per_core_s.samples == 3);
        assert_eq!(found.per_core_s.duration_ns, 2_700_000_000);
        let together = found.together.unwrap();
        assert_eq!(together.sessions, 4);
        assert!((together.per_core_s.value - 2.25e6).abs() < 1.0, "{together:?}");
        assert!((together.ratio.value - 0.75).abs() < 1e-9, "{together:?}");
        assert!((together.on_processor_ratio - 0.9).abs() < 1e-9);
    }

    #[test]
    fn one_processor_has_nothing_to_compare_with_and_two_turns_are_too_few() {
        let turns = [1.0, 2.0, 3.0].map(|visits| turn(1, visits));
        assert_eq!(of(&turns).unwrap().together, None);
        assert_eq!(of(&turns[..2]), None);
        assert_eq!(of(&[]), None);
    }
}
