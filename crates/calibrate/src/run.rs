//! The run: survey into the manifest, layout, the planned steps, the confirmations, the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_base::Capability;
use blockstone_base::hint::Hint as _;
use blockstone_base::load::{self, LoadSpec};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_engine::{Content, Medium, NoContent, Stamped};
use blockstone_measure::capability::named;
use blockstone_measure::evidence;
use blockstone_measure::{Observer, Opening, Session, SessionSpec};
use blockstone_record::Parameters;
use blockstone_record::manifest::{self, End, Group, Manifest};
use blockstone_record::parameters::CalibrateParameters;
use blockstone_sys::file::BlockFile;
use serde_json::Value;

use crate::buffered;
use crate::confirm;
use crate::cpu;
use crate::error::CalibrateError;
use crate::flush;
use crate::heldfile::HeldFile;
use crate::hold::{Backing, Measured, first_sequence, hold};
use crate::plan::{self, FileRole, LARGE, LOG_SIZE, Step};
use crate::prepare::{Prepared, together};
use crate::testset::AppendSet;

mod precondition;

const TICK: Nanos = Nanos::millis(20);
/// Time to start and stop a phase, in addition to its warm-up and window.
const AROUND_PHASE: Nanos = Nanos::millis(30);
const UNLIMITED: Nanos = Nanos(u64::MAX / 2);

impl Prepared<'_> {
    /// Runs the calibration and returns the directory of its recording. An interruption or an error
    /// after the first measurement is written into the recording and returns like success, so that
    /// nothing measured before it is lost.
    pub fn run(self, observer: &mut dyn Observer) -> Result<PathBuf, CalibrateError> {
        self.run_and_hold(observer).map(|(recording, _)| recording)
    }

    /// Like [`Prepared::run`]; also returns the test file, if this created one and does not keep
    /// it.
    pub fn run_and_hold(
        self,
        observer: &mut dyn Observer,
    ) -> Result<(PathBuf, Option<HeldFile>), CalibrateError> {
        let dir = self.settings.recording.path.clone();
        for orphan in self.remove_orphans() {
            observer.note(&format!("removed {}, left by a killed run", orphan.display()));
        }
        for (one, other, device) in together::sharing_devices(&self.targets) {
            observer.note(&format!("{one} and {other} are on the same device, {device}"));
        }
        let devices = self.target.devices.iter().map(|device| device.name.clone()).collect();
        let mut session = Session::start(SessionSpec {
            dir: &dir,
            manifest: self.manifest(),
            devices,
            series: if self.targets.len() > 1 {
                &[&load::SERIES, &load::FLUSHES, &load::BUFFERED, &load::VISITS, &load::SHARES]
            } else {
                &[&load::SERIES, &load::FLUSHES, &load::BUFFERED, &load::VISITS]
            },
            through_page_cache: false,
            tick: TICK,
        })?;
        for file in self.files.files() {
            session.watch_pages(file.path());
        }
        let mut run = Run {
            prepared: self,
            session,
            observer,
            points: Vec::new(),
            left: Nanos(0),
            skipped: Vec::new(),
            oldest_sequence: 0,
            unlimited: Nanos(0),
            filled_until: None,
        };
        let end = match run.all_phases() {
            Ok(()) => End::Complete,
            Err(EarlyEnd::Interrupted(signal)) => End::Interrupted { signal: signal.to_owned() },
            Err(EarlyEnd::Failed(error)) => End::failed(&error),
        };
        run.keep_skipped();
        let Run { mut prepared, session, observer, .. } = run;
        session.close(end)?;
        if prepared.settings.options.keep {
            match prepared.files.keep() {
                Ok(kept) => kept.iter().for_each(|kept| {
                    observer.note(&format!("kept the test file: {}", kept.display()));
                }),
                Err(error) => observer.note(&error.told()),
            }
        }
        Ok((dir, prepared.files.into_created().map(HeldFile::new)))
    }

    fn manifest(&self) -> Manifest {
        let manifest = Opening {
            id: &self.settings.recording.id,
            verb: "calibrate",
            argv: &self.settings.argv,
            settings: self.stored(),
            seed: self.settings.seed,
            rank: None,
            host: &self.host,
            target: &self.target,
            capabilities: &self.capabilities,
        }
        .manifest();
        let several =
            self.targets.iter().zip(self.files.files()).filter(|_| self.facts.targets > 1);
        let targets = several.map(|(target, file)| manifest::Measured {
            target: target.clone(),
            direct: file.direct.clone(),
            file: None,
        });
        Manifest { targets: targets.collect(), ..manifest }
    }

    /// Returns the options, and how much of the file is visited.
    fn stored(&self) -> BTreeMap<String, Value> {
        let span = CalibrateParameters { size_bytes: Some(self.facts.span), ..Default::default() };
        self.settings.options.settings().into_iter().chain(span.settings()).collect()
    }
}

enum EarlyEnd {
    Interrupted(&'static str),
    Failed(CalibrateError),
}

impl<E: Into<CalibrateError>> From<E> for EarlyEnd {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

struct Run<'a> {
    prepared: Prepared<'a>,
    session: Session,
    observer: &'a mut dyn Observer,
    points: Vec<Measured>,
    left: Nanos,
    /// Labels of steps that were skipped for lack of time.
    skipped: Vec<String>,
    /// Sequence number of the layout's first write: a block with the same ID and a lower sequence
    /// is not from this run.
    oldest_sequence: u64,
    /// Time taken by preconditioning, the layout of a size given with `--size`, steps that were
    /// asked for and visits of cached blocks; added to the time limit.
    unlimited: Nanos,
    /// Time at which preconditioning must end, once its first pass has written the whole file.
    filled_until: Option<Nanos>,
}

impl Run<'_> {
    fn all_phases(&mut self) -> Result<(), EarlyEnd> {
        let settings = self.prepared.settings;
        let overhead = plan::overhead(settings);
        self.left = self.expected(&plan::steps(settings, self.prepared.facts));
        let (medium, content) = (Medium::Nothing, Arc::new(NoContent));
        self.hold(&overhead, medium, content)?;
        if settings.options.cpu {
            self.visit_cached()?;
        }
        if self.prepared.files.needs_layout() {
            self.fill()?;
            self.lay_out()?;
        }
        self.keep_evidence()?;
        let log = self.prepared.facts.has_log.then(|| self.lay_out_log()).transpose()?;
        let steps = plan::steps(settings, self.prepared.facts);
        self.rounds(self.expected(&steps))?;
        self.left = self.expected(&steps);
        for step in &steps {
            self.take(step, log.as_ref())?;
        }
        self.confirm(log.as_ref())
    }

    /// Runs before anything else needs memory, and while the processors are as quiet as possible.
    fn visit_cached(&mut self) -> Result<(), EarlyEnd> {
        let begin = self.session.elapsed();
        let seed = self.prepared.settings.seed;
        let processors = self.prepared.host.cpus_allowed_milli.div_ceil(1000).max(1);
        let interrupted = cpu::measure(&mut self.session, self.observer, processors, seed)?;
        self.unlimited_since(begin);
        interrupted.map_or(Ok(()), |signal| Err(EarlyEnd::Interrupted(signal)))
    }

    /// Returns the longest time that `steps` and the confirmations may take.
    fn expected(&self, steps: &[Step]) -> Nanos {
        let thoroughness = self.prepared.settings.options.thoroughness();
        let steps: u64 = steps.iter().map(longest).sum();
        Nanos(steps + plan::confirm_limit(thoroughness).get())
    }

    fn take(&mut self, step: &Step, log: Option<&AppendSet>) -> Result<(), EarlyEnd> {
        if self.out_of_time(step) {
            self.skipped.push(step.label.clone());
            self.observer.note(&format!("skipped {}: no time left", step.label));
            return Ok(());
        }
        // Lives until the end of the phase; dropping it removes the file.
        let mut append = None;
        let medium = match step.file {
            FileRole::None => Medium::Nothing,
            FileRole::Main => self.prepared.files.medium(),
            FileRole::BufferedCold => self.prepared.files.buffered(Bytes(0))?,
            FileRole::BufferedWarm => self.prepared.files.buffered(Bytes(step.load.span_bytes))?,
            FileRole::Log => log.map_or(Medium::Nothing, AppendSet::medium),
            FileRole::Append => {
                let made = append.insert(self.prepared.files.appendable("append")?);
                made.paths().for_each(|path| self.session.watch_pages(path));
                made.medium()
            }
            FileRole::Buffered(reserved) => {
                let made = self.prepared.files.reserved("store", Bytes(reserved))?;
                let made = append.insert(made);
                made.paths().for_each(|path| self.session.watch_pages(path));
                made.medium()
            }
        };
        let content = self.content(step);
        if let (Group::FlushSlope | Group::BufferedWrite, Medium::File(file)) =
            (step.group, &medium)
        {
            return self.one_by_one(step, file, &content);
        }
        let begin = self.session.elapsed();
        let held = self.hold(step, medium, content);
        if plan::is_asked_for(step, &self.prepared.settings.options) {
            self.unlimited_since(begin);
        }
        if let Some(append) = &append {
            append.paths().for_each(|path| self.session.forget_pages(path));
        }
        held
    }

    /// Runs a step that times its own operations.
    fn one_by_one(
        &mut self,
        step: &Step,
        file: &BlockFile,
        content: &Arc<dyn Content>,
    ) -> Result<(), EarlyEnd> {
        let left = self.left;
        self.left = Nanos(self.left.get().saturating_sub(longest(step)));
        let observer = &mut *self.observer;
        let session = &mut self.session;
        let interrupted = if step.group == Group::FlushSlope {
            flush::measure(session, observer, step, (file, content), left)?
        } else {
            let layout = self.points.iter().rfind(|point| point.group == Group::Layout);
            let rate = layout.map_or(0.0, |point| point.iops * point.load.block_bytes as f64);
            let step = plan::sized(step, rate);
            let begin = session.elapsed();
            let interrupted = buffered::measure(session, observer, &step, (file, content), left)?;
            self.unlimited_since(begin);
            interrupted
        };
        interrupted.map_or(Ok(()), |signal| Err(EarlyEnd::Interrupted(signal)))
    }

    /// Records skipped steps as a degraded capability, which reports show.
    fn keep_skipped(&mut self) {
        let capability = match self.skipped.as_slice() {
            [] => Capability::Full,
            labels => Capability::degraded(format!(
                "skipped because the time limit was reached: {}",
                labels.join(", ")
            )),
        };
        self.session.recorder().manifest().capabilities.push(named("all-phases", capability));
    }

    /// Returns whether the step would exceed the time limit, which `unlimited` extends. When phases
    /// take longer than planned, confirmations keep their time because the headlines depend on
    /// them, and reference points because drift is computed from them.
    fn out_of_time(&self, step: &Step) -> bool {
        let settings = self.prepared.settings;
        let limit = plan::budget(settings.options.thoroughness()).run;
        if plan::is_asked_for(step, &settings.options) {
            return false;
        }
        let confirmations = match step.group {
            Group::Confirm | Group::Reference => 0,
            _ => plan::confirm_limit(settings.options.thoroughness()).get(),
        };
        let after = plan::CONCLUSION.get() + confirmations;
        limit
            .map(|limit| limit.get() + self.unlimited.get())
            .is_some_and(|limit| self.session.elapsed().get() + longest(step) + after > limit)
    }

    fn hold(
        &mut self,
        step: &Step,
        medium: Medium,
        content: Arc<dyn Content>,
    ) -> Result<(), EarlyEnd> {
        if let Some(signal) = self.observer.interrupted() {
            return Err(EarlyEnd::Interrupted(signal));
        }
        self.left = Nanos(self.left.get().saturating_sub(longest(step)));
        let left = Nanos(self.left.get() + longest(step));
        let targets = self.prepared.targets.iter().map(|target| target.path.clone()).collect();
        let backing = Backing { medium, content, targets };
        let point = hold(&mut self.session, self.observer, step, &backing, left)?;
        let interrupted = point.interrupted;
        self.points.push(point);
        if let Some(path) = self.prepared.files.vanished().map(Path::to_owned) {
            return Err(CalibrateError::Vanished { label: step.label.clone(), path }.into());
        }
        interrupted.map_or(Ok(()), |signal| Err(EarlyEnd::Interrupted(signal)))
    }

    /// Returns stamps if Blockstone wrote the data in this block size; unverified content
    /// otherwise.
    fn content(&self, step: &Step) -> Arc<dyn Content> {
        let stamped = self.prepared.files.ours() && step.file != FileRole::None;
        if !stamped {
            return Arc::new(NoContent);
        }
        let unit = self.prepared.settings.options.block_bytes.get().min(step.load.block_bytes);
        Arc::new(Stamped::new(self.prepared.files.file_id(), unit, self.oldest_sequence))
    }

    /// Writes the whole test file, or as much as the time allows; the rest is truncated.
    fn lay_out(&mut self) -> Result<(), EarlyEnd> {
        let settings = self.prepared.settings;
        let facts = self.prepared.facts;
        let (load, limit) = match (self.filled_until, settings.options.asked_size_bytes) {
            (Some(end), _) => (plan::pass(settings, facts), self.until(end)),
            (None, asked) => (
                plan::layout(settings, facts.span, facts.direct, facts.uring),
                asked.map_or(plan::budget(settings.options.thoroughness()).layout, |_| UNLIMITED),
            ),
        };
        if self.filled_until.is_none() {
            self.oldest_sequence = first_sequence(self.session.phase());
        }
        let begin = self.session.elapsed();
        self.hold_layout("layout", load, self.prepared.files.medium(), limit)?;
        if settings.options.asked_size_bytes.is_some() || self.filled_until.is_some() {
            self.unlimited_since(begin);
        }
        let done = match self.filled_until {
            Some(_) => facts.span.get(),
            None => self.points.last().map_or(0, |point| point.completed_bytes),
        };
        let unit = LARGE.get() * facts.targets;
        let span = Bytes(done.min(facts.span.get()) / unit * unit);
        if span < facts.span {
            self.prepared.files.cut(span)?;
            self.observer.note(&format!(
                "the test {} instead of {}: the time limit of the layout was reached",
                if facts.targets > 1 {
                    format!("files have {span}")
                } else {
                    format!("file has {span}")
                },
                facts.span
            ));
            self.prepared.facts.span = span;
            let cut = CalibrateParameters { size_bytes: Some(span), ..Default::default() };
            self.session.recorder().manifest().set_parameters(&cut);
        }
        Ok(self.prepared.files.flush()?)
    }

    /// Lays out a redo log next to the test file: small and fully written, so that a commit
    /// overwrites.
    fn lay_out_log(&mut self) -> Result<AppendSet, EarlyEnd> {
        let facts = self.prepared.facts;
        let log = self.prepared.files.appendable("log")?;
        log.paths().for_each(|path| self.session.watch_pages(path));
        let load = plan::layout(self.prepared.settings, LOG_SIZE, facts.direct, facts.uring);
        self.hold_layout("layout-log", load, log.medium(), UNLIMITED)?;
        log.flush()?;
        Ok(log)
    }

    fn hold_layout(
        &mut self,
        label: &str,
        load: LoadSpec,
        medium: Medium,
        limit: Nanos,
    ) -> Result<(), EarlyEnd> {
        let step = Step::new(label.to_owned(), Group::Layout, load, limit);
        let content = self.content(&step);
        self.hold(&step, medium, content)
    }

    /// Records the file's extents and a sample of its data before anything is read.
    fn keep_evidence(&mut self) -> Result<(), EarlyEnd> {
        let (facts, settings) = (self.prepared.facts, self.prepared.settings);
        let offset = settings.options.offset_bytes.get();
        let visited = offset..offset + facts.span.get() / facts.targets;
        for (at, file) in self.prepared.files.files().iter().enumerate() {
            let (main, visited) = (file.main(), visited.clone());
            let evidence = Some(evidence::examine(main, file.ours(), visited, settings.seed)?);
            let manifest = self.session.recorder().manifest();
            match manifest.targets.get_mut(at) {
                Some(target) => target.file = evidence,
                None => manifest.file = evidence,
            }
        }
        Ok(())
    }

    /// Measures the best points longer, chosen from all earlier measurements.
    fn confirm(&mut self, log: Option<&AppendSet>) -> Result<(), EarlyEnd> {
        let settings = self.prepared.settings;
        if let Some(load) = confirm::knee_probe(&self.points, settings) {
            let mark = if load.engine == "psync" { 'x' } else { 'd' };
            let label = format!("random-read/{}/{mark}{}", load.engine, load.in_flight());
            let step = plan::confirm(settings, "knee", load, 1);
            self.take(&Step { label, group: Group::RandomRead, ..step }, None)?;
        }
        let max_iops = confirm::max_iops(&self.points, settings);
        let knee = max_iops.as_ref().and_then(|m| confirm::knee(&self.points, settings, &m.load));
        let max_mbps = confirm::max_mbps(&self.points, settings);
        let max_write_iops = confirm::max_write_iops(&self.points, settings);
        let max_commits = confirm::max_commits(&self.points, settings).map(|step| {
            let file = plan::commit_file(step.load.access, self.prepared.facts.has_log);
            Step { file, ..step }
        });
        let headlines = [max_iops.clone(), knee, max_mbps, max_write_iops, max_commits];
        let mixes = max_iops.iter().flat_map(|headline| plan::mixes(settings, headline));
        let mixes: Vec<Step> = mixes.collect();
        let streams = plan::streams(settings, self.prepared.facts);
        let headlines: Vec<Step> =
            headlines.into_iter().flatten().chain(mixes).chain(streams).collect();
        for step in plan::spaced(settings, &headlines) {
            // A headline from a shorter window is better than one that was not confirmed.
            let step = if self.out_of_time(&step) { plan::usual(settings, &step) } else { step };
            self.take(&step, log)?;
        }
        Ok(())
    }
}

fn longest(step: &Step) -> u64 {
    // A pass ends when everything is written, at a time that depends on its rate.
    let window = if step.is_pass() { 0 } else { step.window.1.get() };
    step.warm_up.get() + window + AROUND_PHASE.get()
}
