//! Options of a process that is one of several ranks, and what launchers tell it.

use std::str::FromStr;

use anyhow::{Result, bail};
use blockstone_base::units::Nanos;
use blockstone_measure::RankSettings;
use blockstone_record::ranks::RANKS_MAX;
use clap::Args;
use jiff::{SignedDuration, Timestamp};

use crate::failure::Failure;

/// Variables in which a launcher tells a process its rank and the number of all: the innermost
/// launcher first, because mpirun may run within a Slurm job.
const LAUNCHERS: [Launcher; 5] = [
    Launcher { name: "openmpi", rank: "OMPI_COMM_WORLD_RANK", ranks: Some("OMPI_COMM_WORLD_SIZE") },
    Launcher { name: "pmi", rank: "PMI_RANK", ranks: Some("PMI_SIZE") },
    Launcher { name: "slurm", rank: "SLURM_PROCID", ranks: Some("SLURM_STEP_NUM_TASKS") },
    Launcher { name: "flux", rank: "FLUX_TASK_RANK", ranks: Some("FLUX_JOB_SIZE") },
    // A pod of an indexed job is not told how many there are.
    Launcher { name: "kubernetes", rank: "JOB_COMPLETION_INDEX", ranks: None },
];
/// Longest wait for the start: a date beyond it is a mistake.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

struct Launcher {
    name: &'static str,
    rank: &'static str,
    ranks: Option<&'static str>,
}

/// Options that make a process one of several.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Several nodes")]
pub struct RankOptions {
    /// Apply the load with this many processes, the ranks, on this host or on many; each leaves a
    /// recording, and `blockstone merge` adds them up. `auto` takes both numbers from the launcher:
    /// Open MPI, MPICH, Slurm or Flux
    #[arg(long, value_name = "N|auto")]
    pub ranks: Option<Ranks>,
    /// Number of this rank, from 0 on [default: from the launcher, or the index of a job of
    /// Kubernetes]
    #[arg(long, value_name = "K", requires = "ranks")]
    pub rank: Option<u32>,
    /// Begin the load at this time, which is the same for all ranks: seconds since 1970, or as
    /// 2026-11-30T12:00:00Z. Files are written before, so leave time for them
    #[arg(long, value_name = "TIME", requires = "ranks")]
    pub start_at: Option<StartAt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    Of(u32),
    Auto,
}

impl FromStr for Ranks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse::<u32>()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(ranks @ 1..=RANKS_MAX)) => Ok(Self::Of(ranks)),
            _ => {
                Err(format!("`{text}` is not a number of processes, 1 to {RANKS_MAX}, nor `auto`"))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartAt(Timestamp);

impl FromStr for StartAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
        let of_seconds = |seconds: f64| {
            let since = SignedDuration::try_from_secs_f64(seconds).ok()?;
            Timestamp::from_duration(since).ok()
        };
        let found = match seconds {
            Some(seconds) => of_seconds(seconds),
            None => text.parse().ok(),
        };
        found.map(Self).ok_or_else(|| {
            format!(
                "`{text}` is neither seconds since 1970 nor a time such as 2026-11-30T12:00:00Z"
            )
        })
    }
}

impl RankOptions {
    /// Returns what was asked for; `seed` is that of the command line.
    pub fn settings(&self, seed: Option<u64>) -> Result<Option<RankSettings>> {
        self.resolve(seed, Timestamp::now(), &|name| std::env::var(name).ok())
    }

    fn resolve(
        &self,
        seed: Option<u64>,
        now: Timestamp,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<RankSettings>> {
        let Some(asked) = self.ranks else { return Ok(None) };
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
        let told = LAUNCHERS.iter().find_map(|it| Some((it, number(it.rank)?)));
        let of_launcher = told.and_then(|(it, _)| number(it.ranks?));
        let ranks = match (asked, of_launcher) {
            (Ranks::Of(ranks), _) | (Ranks::Auto, Some(ranks)) => ranks,
            (Ranks::Auto, None) => bail!(Failure::new(
                format!(
                    "run as one of several ranks: no launcher says how many ({})",
                    unset(LAUNCHERS.iter().filter_map(|it| it.ranks))
                ),
                "start it with mpirun, srun or flux run, or give --ranks N --rank K"
            )),
        };
        let (rank, launcher) = match (self.rank, told) {
            (Some(rank), _) => (rank, "options"),
            (None, Some((it, rank))) => (rank, it.name),
            (None, None) => bail!(Failure::new(
                format!(
                    "run as one of {ranks} ranks: no launcher says which one ({})",
                    unset(LAUNCHERS.iter().map(|it| it.rank))
                ),
                "give each process its own --rank, from 0 on"
            )),
        };
        if rank >= ranks {
            bail!(Failure::new(
                format!("run as rank {rank} of {ranks}: they are numbered 0 to {}", ranks - 1),
                "give each process its own --rank, from 0 on"
            ));
        }
        let start_at = self.start_at.map(|StartAt(at)| at);
        if let Some(at) = start_at {
            check_start(at, now)?;
        }
        let of_start = start_at.map(|at| at.as_nanosecond() as u64 ^ u64::from(ranks));
        let Some(seed) = seed.or(of_start) else {
            bail!(Failure::new(
                "run as one of several ranks without --seed: ranks draw their seeds from one",
                "give all of them the same --seed, or the same --start-at"
            ));
        };
        Ok(Some(RankSettings { rank, ranks, launcher, seed, start_at }))
    }
}

/// Refuses a time that is over, and one that is too far away to be meant.
fn check_start(at: Timestamp, now: Timestamp) -> Result<()> {
    let left = at.duration_since(now);
    let hint = "--start-at $(date -d '+1 minute' +%s), evaluated once for all ranks";
    let away = Nanos(u64::try_from(left.unsigned_abs().as_nanos()).unwrap_or(u64::MAX));
    if left.is_negative() {
        bail!(Failure::new(format!("start at {at}: that was {away} ago"), hint));
    }
    if left > LONGEST {
        bail!(Failure::new(format!("start at {at}: that is in {away}, more than a day"), hint));
    }
    Ok(())
}

fn unset<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ") + " are not numbers in the environment"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(ranks: &str, rank: Option<u32>, start_at: Option<&str>) -> RankOptions {
        let start_at = start_at.map(|text| text.parse().unwrap());
        RankOptions { ranks: Some(ranks.parse().unwrap()), rank, start_at }
    }

    fn resolve(
        options: &RankOptions,
        seed: Option<u64>,
        variables: &[(&str, &str)],
    ) -> Result<RankSettings> {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        options.resolve(seed, now, &variable).map(|found| found.expect("ranks were asked for"))
    }

    #[test]
    fn launchers_tell_rank_and_number_and_the_innermost_counts() {
        let slurm = [("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "8")];
        let found = resolve(&options("auto", None, None), Some(7), &slurm).unwrap();
        assert_eq!((found.rank, found.ranks, found.launcher), (3, 8, "slurm"));
        let inner = [&slurm[..], &[("PMI_RANK", "1"), ("PMI_SIZE", "2")]].concat();
        let found = resolve(&options("auto", None, None), Some(7), &inner).unwrap();
        assert_eq!((found.rank, found.ranks, found.launcher), (1, 2, "pmi"));
        let pod = [("JOB_COMPLETION_INDEX", "4")];
        let found = resolve(&options("5", None, None), Some(7), &pod).unwrap();
        assert_eq!((found.rank, found.ranks, found.launcher), (4, 5, "kubernetes"));
        let found = resolve(&options("5", Some(0), None), Some(7), &pod).unwrap();
        assert_eq!((found.rank, found.launcher), (0, "options"));
    }

    #[test]
    fn what_is_missing_or_impossible_is_refused() {
        for (options, seed, variables, expected) in [
            (options("auto", None, None), Some(7), &[][..], "no launcher says how many"),
            (options("auto", None, None), Some(7), &[("JOB_COMPLETION_INDEX", "0")], "how many"),
            (options("4", None, None), Some(7), &[], "no launcher says which one"),
            (options("4", None, None), Some(7), &[("PMI_RANK", "x")], "which one"),
            (options("4", Some(4), None), Some(7), &[], "numbered 0 to 3"),
            (options("4", Some(0), None), None, &[], "without --seed"),
            (options("4", Some(0), Some("2026-11-30T11:59:55Z")), None, &[], "5 s ago"),
            (options("4", Some(0), Some("1796126401")), None, &[], "more than a day"),
        ] {
            let error = resolve(&options, seed, variables).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn times_are_seconds_or_dates_and_give_a_seed_to_all() {
        let later = ["1796040030", "2026-11-30T12:00:30Z", "1796040030.0"];
        let seeds =
            later.map(|text| resolve(&options("2", Some(1), Some(text)), None, &[]).unwrap().seed);
        assert!(seeds.iter().all(|seed| *seed == seeds[0]), "{seeds:?}");
        for text in ["soon", "12:00", "NaN", "-", "1e300", "0", "auto,2"] {
            assert!(text.parse::<Ranks>().is_err() && text != "auto", "{text}");
            assert!(text == "0" || text.parse::<StartAt>().is_err(), "{text}");
        }
    }
}
