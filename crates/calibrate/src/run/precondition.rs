//! Preconditioning: a first pass, then rounds until the rate has settled. Everything written up to
//! the time limit or an interruption is recorded.

use blockstone_base::identity::PathKind;
use blockstone_base::stats;
use blockstone_base::units::{Bytes, Nanos};

use super::{EarlyEnd, Run, longest};
use crate::hold::first_sequence;
use crate::plan::{self, Step};

impl Run<'_> {
    /// Writes the whole file once, if requested; the layout is the second pass.
    pub(super) fn fill(&mut self) -> Result<(), EarlyEnd> {
        let Some(asked) = self.prepared.settings.options.preconditioning() else { return Ok(()) };
        let facts = self.prepared.facts;
        if self.prepared.target.kind != PathKind::BlockDevice {
            self.observer.note(
                "preconditioning writes the test file only: how much of the drive beneath the file \
                 system was ever written is not known",
            );
        }
        let begin = self.session.elapsed();
        self.oldest_sequence = first_sequence(self.session.phase());
        self.left.0 += u64::from(plan::ROUNDS_MAX) * asked.round.get();
        let step = plan::fill(self.prepared.settings, facts, asked.limit);
        self.hold_on_main(&step)?;
        self.unlimited_since(begin);
        let done = self.points.last().map_or(0, |point| point.completed_bytes);
        if done >= facts.span.get() {
            self.filled_until = Some(Nanos(begin.get() + asked.limit.get()));
        } else {
            let (done, span) = (Bytes(done), facts.span);
            let text =
                format!("preconditioning wrote {done} of {span}: its time limit was reached");
            self.observer.note(&text);
        }
        Ok(())
    }

    /// Runs rounds of random writes until their rate has settled. `then` is how long the rest
    /// takes.
    pub(super) fn rounds(&mut self, then: Nanos) -> Result<(), EarlyEnd> {
        let (settings, facts) = (self.prepared.settings, self.prepared.facts);
        let Some((asked, end)) = settings.options.preconditioning().zip(self.filled_until) else {
            return Ok(());
        };
        let begin = self.session.elapsed();
        let step = |repeat| plan::round(settings, facts, repeat, asked.round);
        self.left = Nanos(then.get() + u64::from(plan::ROUNDS_MAX) * longest(&step(0)));
        let mut rates = Vec::new();
        for step in (0..plan::ROUNDS_MAX).map(step) {
            if stats::settled(&rates) {
                break;
            }
            if longest(&step) > self.until(end).get() {
                self.observer.note("preconditioning: its time limit was reached");
                break;
            }
            self.hold_on_main(&step)?;
            rates.extend(self.points.last().map(|point| point.iops));
        }
        self.unlimited_since(begin);
        Ok(())
    }

    /// Returns the time left until `end`.
    pub(super) fn until(&self, end: Nanos) -> Nanos {
        Nanos(end.get().saturating_sub(self.session.elapsed().get()))
    }

    /// Adds the time since `begin` to the time limit.
    pub(super) fn unlimited_since(&mut self, begin: Nanos) {
        self.unlimited.0 += self.session.elapsed().get() - begin.get();
    }

    fn hold_on_main(&mut self, step: &Step) -> Result<(), EarlyEnd> {
        let content = self.content(step);
        self.hold(step, self.prepared.files.medium(), content)
    }
}
