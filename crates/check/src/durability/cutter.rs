//! Power cuts that a witness makes, one after the other: while a run is under way, and again after
//! it was verified.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::process::Stdio;
use std::time::{Duration, Instant};

use blockstone_base::rng::Rng;
use blockstone_measure::Observer;
use blockstone_sys::child::{Child, Program, Signal};

use super::ledger::{CONCLUSIVE, LOST, Ledger};

/// Cuts that the witness makes.
#[derive(Clone, Debug)]
pub struct Cycles {
    pub count: u64,
    /// A program that cuts the power of the writing machine and turns it on again, and its
    /// arguments.
    pub cut: Vec<OsString>,
    /// Minimum and maximum time that writers write before a cut.
    pub before: (Duration, Duration),
}

impl Cycles {
    pub const BEFORE: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(13));
}

/// Time that the command may take, then the machine to start and verify, and then to write again.
const RETURN: Duration = Duration::from_mins(15);

#[derive(Debug)]
pub struct Cutter<'a> {
    cycles: &'a Cycles,
    rng: Rng,
    made: u64,
    verified: u64,
    /// The last run that must not be cut: it is an earlier one, or its writers are gone.
    last: u64,
    state: Cutting,
    /// Time that each step of a cut may take.
    patience: Duration,
}

#[derive(Debug)]
enum Cutting {
    /// Waits for a run to begin; after a cut, until this time at most.
    Waiting(Option<Instant>),
    At(u64, Instant),
    /// Waits for the command to end. Connections are served meanwhile, because it may end long
    /// after the machine has started.
    Running(u64, Command, Instant),
    /// Waits for the run to be verified.
    Returning(u64, Instant),
}

/// Command of a cut, with everything that it started; ended when this is dropped.
#[derive(Debug)]
struct Command(Option<Child>);

impl Command {
    fn start(words: &[OsString]) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut program = Program::typed(program);
        program.args(arguments).stderr(Stdio::inherit()).group();
        program.spawn().map(|child| Self(Some(child)))
    }

    /// Returns how it ended, once it has.
    fn ended(&mut self) -> Option<Result<(), String>> {
        let has_ended = self.0.as_ref()?.has_ended();
        if matches!(has_ended, Ok(false)) {
            return None;
        }
        Some(match self.0.take()?.wait() {
            Ok(ended) if ended.status.success() => Ok(()),
            Ok(ended) => Err(ended.status.to_string()),
            Err(error) => Err(error.to_string()),
        })
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if let Some(child) = &self.0 {
            let _ = child.signal_group(Signal::KILL);
        }
    }
}

impl<'a> Cutter<'a> {
    pub fn new(cycles: &'a Cycles, seed: u64, ledger: &Ledger) -> Self {
        let last = ledger.last().map_or(0, |run| run.id);
        let (rng, state) = (Rng::new(seed, 0), Cutting::Waiting(None));
        Self { cycles, rng, made: 0, verified: 0, last, state, patience: RETURN }
    }

    /// Returns the number of requested cuts that were not made or not verified.
    pub fn missed(&self) -> u64 {
        self.cycles.count - self.verified
    }

    /// Does what is due. Breaks when everything is done, with the reason if it failed.
    pub fn step(
        &mut self,
        ledger: &Ledger,
        observer: &mut dyn Observer,
    ) -> ControlFlow<Option<String>> {
        let now = Instant::now();
        let failed = |why: &str| ControlFlow::Break(Some(format!("The cut failed: {why}.")));
        match &mut self.state {
            Cutting::Waiting(_) if self.made >= self.cycles.count => {
                let why = format!("{} cuts were not verified.", self.missed());
                return ControlFlow::Break((self.missed() > 0).then_some(why));
            }
            Cutting::Waiting(until) => {
                let run = ledger.last().filter(|run| run.points > 0 && run.outcome.is_none());
                if let Some(run) = run.filter(|run| run.id != self.last) {
                    let (least, most) = self.cycles.before;
                    let more = most.saturating_sub(least).mul_f64(self.rng.unit());
                    self.state = Cutting::At(run.id, now + least + more);
                } else if until.is_some_and(|until| now > until) {
                    let why = "The machine did not begin to write again within 15 minutes.";
                    return ControlFlow::Break(Some(why.to_owned()));
                }
            }
            Cutting::At(run, _) if !is_under_way(ledger, *run) => {
                self.state = Cutting::Waiting((self.made > 0).then(|| now + self.patience));
            }
            Cutting::At(run, at) if now >= *at => {
                self.made += 1;
                observer.note(&format!("cut {} of {}", self.made, self.cycles.count));
                self.last = *run;
                match Command::start(&self.cycles.cut) {
                    Ok(cut) => self.state = Cutting::Running(*run, cut, now + self.patience),
                    Err(error) => return failed(&error.to_string()),
                }
            }
            Cutting::At(..) => {}
            Cutting::Running(run, cut, until) => match cut.ended() {
                Some(Ok(())) => self.state = Cutting::Returning(*run, now + self.patience),
                Some(Err(why)) => return failed(&why),
                None if now > *until => return failed("it did not end within 15 minutes"),
                None => {}
            },
            Cutting::Returning(run, until) => {
                if let Some(outcome) = ledger.find(*run).and_then(|run| run.outcome) {
                    observer.note(&format!("cut {}: {}", self.made, said(outcome)));
                    self.verified += 1;
                    self.state = Cutting::Waiting(Some(now + self.patience));
                } else if !is_under_way(ledger, *run) {
                    let what = "not verified: the machine writes again";
                    observer.note(&format!("cut {}: {what}", self.made));
                    self.state = Cutting::Waiting(Some(now + self.patience));
                } else if now > *until {
                    let why = "The machine did not come back to verify within 15 minutes.";
                    return ControlFlow::Break(Some(why.to_owned()));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn said(outcome: u64) -> &'static str {
    match (outcome & CONCLUSIVE, outcome & LOST) {
        (0, _) => "proves nothing",
        (_, 0) => "lost nothing that was flushed",
        _ => "lost what was flushed",
    }
}

/// Returns whether it is the last run, and not verified.
fn is_under_way(ledger: &Ledger, run: u64) -> bool {
    ledger.last().is_some_and(|last| last.id == run && last.outcome.is_none())
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use crate::durability::findings::{Description, Method, Pattern, Stream};

    use super::*;
    use crate::meet::{Frame, Kind};

    struct Quiet;

    impl Observer for Quiet {}

    fn begin(ledger: &mut Ledger, run: u64) {
        let streams = vec![Stream { method: Method::Fsync, pattern: Pattern::Append }];
        let (host, path) = ("db1".to_owned(), "/data".to_owned());
        let description = Description { host, path, device_bytes: None, streams };
        ledger.begin(run, &serde_json::to_string(&description).unwrap()).unwrap();
        ledger.point(run, &Frame { kind: Kind::Point, stream: 0, a: 1, b: 7 }).unwrap();
    }

    fn cycles(count: u64, cut: &str) -> Cycles {
        let cut = ["sh", "-c", cut].map(OsString::from).to_vec();
        Cycles { count, cut, before: (Duration::ZERO, Duration::ZERO) }
    }

    /// Steps until it waits for the command.
    fn to_the_cut(cutter: &mut Cutter<'_>, ledger: &Ledger) {
        for _ in 0..2 {
            assert!(cutter.step(ledger, &mut Quiet).is_continue());
        }
        assert!(matches!(cutter.state, Cutting::Running(..)), "{cutter:?}");
    }

    #[test]
    fn each_run_is_cut_once_and_the_next_after_it_was_verified() {
        let cycles = cycles(3, "sleep 0.1");
        let mut ledger = Ledger::default();
        begin(&mut ledger, 4);
        let mut cutter = Cutter::new(&cycles, 1, &ledger);
        assert!(cutter.step(&ledger, &mut Quiet).is_continue());
        assert!(matches!(cutter.state, Cutting::Waiting(_)), "its writers are gone");
        for run in [5, 6, 7] {
            begin(&mut ledger, run);
            to_the_cut(&mut cutter, &ledger);
            // The machine may verify before the command has ended, or write again without
            // verifying.
            if run == 6 {
                begin(&mut ledger, 60);
            } else {
                ledger.outcome(&Frame::new(Kind::Outcome, run, 1)).unwrap();
            }
            while !matches!(cutter.state, Cutting::Waiting(_)) {
                assert!(cutter.step(&ledger, &mut Quiet).is_continue());
                sleep(Duration::from_millis(10));
            }
        }
        let ControlFlow::Break(Some(why)) = cutter.step(&ledger, &mut Quiet) else {
            panic!("{cutter:?}");
        };
        assert_eq!((cutter.missed(), why.as_str()), (1, "1 cuts were not verified."));
    }

    #[test]
    fn a_machine_that_does_not_write_again_ends_it() {
        let cycles = cycles(2, "true");
        let mut ledger = Ledger::default();
        let mut cutter = Cutter::new(&cycles, 1, &ledger);
        begin(&mut ledger, 5);
        to_the_cut(&mut cutter, &ledger);
        ledger.outcome(&Frame::new(Kind::Outcome, 5, 1)).unwrap();
        cutter.patience = Duration::from_millis(20);
        let ended = (0..500).find_map(|_| {
            sleep(Duration::from_millis(2));
            cutter.step(&ledger, &mut Quiet).break_value()
        });
        let why = "The machine did not begin to write again within 15 minutes.";
        assert_eq!(ended, Some(Some(why.to_owned())), "{cutter:?}");
        assert_eq!(cutter.missed(), 1);
    }

    #[test]
    fn a_run_that_ended_meanwhile_is_not_cut() {
        let mut cycles = cycles(1, "exit 7");
        cycles.before = (Duration::from_hours(1), Duration::from_hours(1));
        let mut ledger = Ledger::default();
        let mut cutter = Cutter::new(&cycles, 1, &ledger);
        begin(&mut ledger, 5);
        assert!(cutter.step(&ledger, &mut Quiet).is_continue());
        assert!(matches!(cutter.state, Cutting::At(5, _)), "{cutter:?}");
        ledger.outcome(&Frame::new(Kind::Outcome, 5, 1)).unwrap();
        assert!(cutter.step(&ledger, &mut Quiet).is_continue());
        assert!(matches!(cutter.state, Cutting::Waiting(_)), "{cutter:?}");
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let cut = format!("sleep 60 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let cycles = cycles(1, &cut);
        let mut ledger = Ledger::default();
        let mut cutter = Cutter::new(&cycles, 1, &ledger);
        begin(&mut ledger, 5);
        to_the_cut(&mut cutter, &ledger);
        while !file.exists() {
            assert!(cutter.step(&ledger, &mut Quiet).is_continue());
            sleep(Duration::from_millis(10));
        }
        assert_eq!(cutter.missed(), 1);
        drop(cutter);
        let pid = std::fs::read_to_string(&file).unwrap();
        // It may still exist as a zombie.
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        let gone = || state().map_or(true, |text| text.contains(") Z "));
        for _ in 0..100 {
            if gone() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        panic!("{:?}", state());
    }
}
