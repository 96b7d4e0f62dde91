//! The run: survey into the manifest, layout, the planned steps, the confirmations, the end.

use std::path::PathBuf;
use std::sync::Arc;

use blockstone_base::Capability;
use blockstone_base::load::{self, LoadSpec};
use blockstone_base::units::{Bytes, Nanos};
use blockstone_engine::{Content, Medium, NoContent, Stamped};
use blockstone_measure::capability::named;
use blockstone_measure::evidence;
use blockstone_measure::{Observer, Opening, Session, SessionSpec};
use blockstone_record::Parameters;
use blockstone_record::manifest::{End, Group, Manifest};
use blockstone_record::parameters::CalibrateParameters;
use blockstone_sys::file::BlockFile;

use crate::confirm;
use crate::error::CalibrateError;
use crate::flush;
use crate::hold::{Backing, Measured, first_sequence, hold};
use crate::plan::{self, FileRole, LARGE, LOG_SIZE, Step};
use crate::prepare::Prepared;
use crate::testfile::AppendFile;

mod precondition;

const TICK: Nanos = Nanos::millis(20);
/// How long starting and stopping a phase takes beside its warm-up and window.
const AROUND_PHASE: Nanos = Nanos::millis(30);
const UNLIMITED: Nanos = Nanos(u64::MAX / 2);

impl Prepared<'_> {
    /// Runs the calibration and returns the directory of its recording. An interruption or an
    /// error after the first measurement is written into the recording and returns like success:
    /// what was measured until then is not lost.
    pub fn run(self, observer: &mut dyn Observer) -> Result<PathBuf, CalibrateError> {
        let dir = self.settings.recording.path.clone();
        for orphan in &self.removed_orphans {
            observer.note(&format!("removed {}, left by a killed run", orphan.display()));
        }
        let devices = self.target.devices.iter().map(|device| device.name.clone()).collect();
        let mut session = Session::start(SessionSpec {
            dir: &dir,
            manifest: self.manifest(),
            devices,
            series: &[&load::SERIES, &load::FLUSHES],
            tick: TICK,
        })?;
        session.watch_pages(self.file.path());
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
            Err(EarlyEnd::Failed(error)) => End::Failed { error: error.to_string() },
        };
        run.keep_skipped();
        let Run { mut prepared, session, observer, .. } = run;
        session.close(end)?;
        if prepared.settings.keep {
            observer.note(&match prepared.file.keep() {
                Ok(kept) => format!("kept the test file: {}", kept.display()),
                Err(error) => error.to_string(),
            });
        }
        Ok(dir)
    }

    fn manifest(&self) -> Manifest {
        Opening {
            id: &self.settings.recording.id,
            verb: "calibrate",
            argv: &self.settings.argv,
            settings: self.parameters().settings(),
            seed: self.settings.seed,
            host: &self.host,
            target: &self.target,
            capabilities: &self.capabilities,
        }
        .manifest()
    }

    fn parameters(&self) -> CalibrateParameters {
        let settings = self.settings;
        CalibrateParameters {
            block_bytes: Some(settings.block),
            max_latency_ns: Some(settings.max_latency),
            buffered: Some(settings.buffered),
            read_only: Some(settings.read_only),
            keep: Some(settings.keep),
            matrix: Some(settings.matrix),
            asked_span_bytes: settings.span.map(Some),
            offset_bytes: Some(self.facts.offset).filter(|offset| offset.get() > 0),
            streams: Some(settings.streams.clone()).filter(|streams| !streams.is_empty()),
            mixes_read_pct: Some(settings.mixes.clone()).filter(|mixes| !mixes.is_empty()),
            thoroughness: Some(settings.thoroughness.name().to_owned()),
            size_bytes: Some(self.facts.span),
            asked_size_bytes: Some(settings.size),
            rate_per_s: settings.open_loop.map(|open| open.rate_per_s),
            poisson: settings.open_loop.map(|open| open.poisson),
            link_bytes_per_s: settings.link_mb_per_s.map(|link| link * 1e6),
            precondition: Some(settings.precondition.is_some()),
            precondition_limit_ns: settings.precondition.map(|asked| asked.limit),
            precondition_round_ns: settings.precondition.map(|asked| asked.round),
        }
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
    /// Labels of steps for which no time was left.
    skipped: Vec<String>,
    /// Of the layout's first write: a block with the same id and a lower sequence is not from this
    /// run.
    oldest_sequence: u64,
    /// How long preconditioning took, the layout of a size given with `--size`, and mixes; added
    /// to the time limit.
    unlimited: Nanos,
    /// When preconditioning must end, once its first pass has written all of the file.
    filled_until: Option<Nanos>,
}

impl Run<'_> {
    fn all_phases(&mut self) -> Result<(), EarlyEnd> {
        let settings = self.prepared.settings;
        let overhead = plan::overhead(settings);
        self.left = self.expected(&plan::steps(settings, self.prepared.facts));
        self.hold(&overhead, &Backing { medium: Medium::Nothing, content: Arc::new(NoContent) })?;
        if self.prepared.file.needs_layout() {
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

    /// The longest that `steps` and the confirmations may take.
    fn expected(&self, steps: &[Step]) -> Nanos {
        let thoroughness = self.prepared.settings.thoroughness;
        let steps: u64 = steps.iter().map(longest).sum();
        Nanos(steps + plan::confirm_limit(thoroughness).get())
    }

    fn take(&mut self, step: &Step, log: Option<&AppendFile>) -> Result<(), EarlyEnd> {
        if self.out_of_time(step) {
            self.skipped.push(step.label.clone());
            self.observer.note(&format!("skipped {}: no time left", step.label));
            return Ok(());
        }
        // Lives until the end of the phase; dropping it removes the file.
        let mut append = None;
        let file = match step.file {
            FileRole::None => None,
            FileRole::Main => Some(Arc::clone(self.prepared.file.main())),
            FileRole::BufferedCold | FileRole::BufferedWarm => Some(self.buffered(step)?),
            FileRole::Log => log.map(|log| Arc::clone(&log.0)),
            FileRole::Append => {
                let made = append.insert(self.prepared.file.appendable("append")?);
                self.session.watch_pages(made.0.path());
                Some(Arc::clone(&made.0))
            }
        };
        let content = self.content(step);
        if let (Group::FlushSlope, Some(file)) = (step.group, &file) {
            return self.flushes(step, file, &content);
        }
        let medium = file.map_or(Medium::Nothing, Medium::File);
        let begin = self.session.elapsed();
        let held = self.hold(step, &Backing { medium, content });
        if step.group == Group::Mix {
            self.unlimited_since(begin);
        }
        if let Some(append) = &append {
            self.session.forget_pages(append.0.path());
        }
        held
    }

    fn flushes(
        &mut self,
        step: &Step,
        file: &BlockFile,
        content: &Arc<dyn Content>,
    ) -> Result<(), EarlyEnd> {
        let left = self.left;
        self.left = Nanos(self.left.get().saturating_sub(longest(step)));
        let observer = &mut *self.observer;
        let interrupted = flush::measure(&mut self.session, observer, step, (file, content), left)?;
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

    /// Whether the step would exceed the time limit, which excludes preconditioning, mixes and the
    /// layout of a size given with `--size`. When phases take longer than planned, confirmations
    /// keep their time because the headlines come from them, and reference points because drift
    /// is computed from them.
    fn out_of_time(&self, step: &Step) -> bool {
        let settings = self.prepared.settings;
        let limit = plan::budget(settings.thoroughness).run;
        let confirmations = match step.group {
            Group::Mix => return false,
            Group::Confirm | Group::Reference => 0,
            _ => plan::confirm_limit(settings.thoroughness).get(),
        };
        let after = plan::CONCLUSION.get() + confirmations;
        limit
            .map(|limit| limit.get() + self.unlimited.get())
            .is_some_and(|limit| self.session.elapsed().get() + longest(step) + after > limit)
    }

    fn hold(&mut self, step: &Step, backing: &Backing) -> Result<(), EarlyEnd> {
        if let Some(signal) = self.observer.interrupted() {
            return Err(EarlyEnd::Interrupted(signal));
        }
        self.left = Nanos(self.left.get().saturating_sub(longest(step)));
        let left = Nanos(self.left.get() + longest(step));
        let point = hold(&mut self.session, self.observer, step, backing, left)?;
        let interrupted = point.interrupted;
        self.points.push(point);
        if !self.prepared.file.path().exists() {
            let path = self.prepared.file.path().to_owned();
            return Err(CalibrateError::Vanished { label: step.label.clone(), path }.into());
        }
        interrupted.map_or(Ok(()), |signal| Err(EarlyEnd::Interrupted(signal)))
    }

    /// Stamps if Blockstone wrote the data in this block size; unverified content otherwise.
    fn content(&self, step: &Step) -> Arc<dyn Content> {
        let stamped = self.prepared.file.ours() && step.file != FileRole::None;
        if !stamped {
            return Arc::new(NoContent);
        }
        let unit = self.prepared.settings.block.get().min(step.load.block_bytes);
        Arc::new(Stamped::new(self.prepared.file.file_id, unit, self.oldest_sequence))
    }

    /// Writes the whole test file, or as much as the time allows; the rest is truncated.
    fn lay_out(&mut self) -> Result<(), EarlyEnd> {
        let settings = self.prepared.settings;
        let facts = self.prepared.facts;
        let (load, limit) = match (self.filled_until, settings.size) {
            (Some(end), _) => (plan::pass(settings, facts), self.until(end)),
            (None, asked) => (
                plan::layout(settings, facts.span, facts.direct, facts.uring),
                asked.map_or(plan::budget(settings.thoroughness).layout, |_| UNLIMITED),
            ),
        };
        if self.filled_until.is_none() {
            self.oldest_sequence = first_sequence(self.session.phase());
        }
        let begin = self.session.elapsed();
        self.hold_layout("layout", load, Arc::clone(self.prepared.file.main()), limit)?;
        if settings.size.is_some() || self.filled_until.is_some() {
            self.unlimited_since(begin);
        }
        let done = match self.filled_until {
            Some(_) => facts.span.get(),
            None => self.points.last().map_or(0, |point| point.completed_bytes),
        };
        let span = Bytes(done.min(facts.span.get()) / LARGE.get() * LARGE.get());
        if span < facts.span {
            self.prepared.file.cut(span)?;
            self.observer.note(&format!(
                "the test file has {span} instead of {}: the time limit of the layout was reached",
                facts.span
            ));
            self.prepared.facts.span = span;
            let cut = CalibrateParameters { size_bytes: Some(span), ..Default::default() };
            self.session.recorder().manifest().set_parameters(&cut);
        }
        Ok(self
            .prepared
            .file
            .main()
            .fsync()
            .map_err(|errno| self.prepared.file.io_error("flush", errno))?)
    }

    /// A redo log beside the test file: small, fully written, so that a commit overwrites.
    fn lay_out_log(&mut self) -> Result<AppendFile, EarlyEnd> {
        let facts = self.prepared.facts;
        let log = self.prepared.file.appendable("log")?;
        self.session.watch_pages(log.0.path());
        let load = plan::layout(self.prepared.settings, LOG_SIZE, facts.direct, facts.uring);
        self.hold_layout("layout-log", load, Arc::clone(&log.0), UNLIMITED)?;
        log.0.fsync().map_err(|errno| self.prepared.file.io_error("flush", errno))?;
        Ok(log)
    }

    fn hold_layout(
        &mut self,
        label: &str,
        load: LoadSpec,
        file: Arc<BlockFile>,
        limit: Nanos,
    ) -> Result<(), EarlyEnd> {
        let step = Step::new(label.to_owned(), Group::Layout, load, limit);
        let content = self.content(&step);
        self.hold(&step, &Backing { medium: Medium::File(file), content })
    }

    /// Records the file's extents and a sample of its data before anything is read.
    fn keep_evidence(&mut self) -> Result<(), EarlyEnd> {
        let (file, facts) = (&self.prepared.file, self.prepared.facts);
        let visited = facts.offset.get()..facts.offset.get() + facts.span.get();
        let seed = self.prepared.settings.seed;
        let evidence = evidence::examine(file.path(), file.ours(), visited, seed)?;
        self.session.recorder().manifest().file = Some(evidence);
        Ok(())
    }

    /// The file through the page cache: evicted first, or with the step's span read into it.
    fn buffered(&mut self, step: &Step) -> Result<Arc<BlockFile>, EarlyEnd> {
        let file = self.prepared.file.buffered()?;
        file.drop_cached()?;
        if step.file == FileRole::BufferedWarm {
            let mut block = vec![0; LARGE.get() as usize];
            for offset in (0..step.load.span_bytes).step_by(block.len()) {
                file.read_at(offset, &mut block)
                    .map_err(|errno| self.prepared.file.io_error("read", errno))?;
            }
        }
        Ok(file)
    }

    /// Longer measurements of the best points, chosen from what was measured before them.
    fn confirm(&mut self, log: Option<&AppendFile>) -> Result<(), EarlyEnd> {
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
        let headlines: Vec<Step> = headlines.into_iter().flatten().chain(mixes).collect();
        for step in plan::spaced(settings, &headlines) {
            self.take(&step, log)?;
        }
        Ok(())
    }
}

fn longest(step: &Step) -> u64 {
    // A pass ends when all is written: its rate tells when.
    let window = if step.is_pass() { 0 } else { step.window.1.get() };
    step.warm_up.get() + window + AROUND_PHASE.get()
}
