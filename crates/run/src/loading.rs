//! Setting up the target and loading its schemas, with progress.

use std::ops::ControlFlow;
use std::sync::Arc;

use blockstone_base::units::{Bytes, Nanos};
use blockstone_measure::{Live, Observer, Rate, Session};
use blockstone_record::manifest::{Group, Phase, Stop};
use blockstone_servers::registry::Entry;
use blockstone_servers::{Loading, Target, TargetSpec, unless};

use crate::error::RunError;
use crate::files::Files;

const SHOW_NS: u64 = 100_000_000;

/// Opens the target and fills its schemas, as the next phase of the recording. From then on `files`
/// owns whatever the target puts on the disks.
pub fn load(
    session: &mut Session,
    observer: &mut dyn Observer,
    entry: &Entry,
    spec: &TargetSpec,
    files: &mut Files,
) -> Result<Arc<dyn Target>, RunError> {
    let phase = session.phase();
    let (start_ns, ()) = session.tick(|_| ())?;
    let (target, set_up_ns) = {
        let mut progress = LoadProgress {
            session,
            observer,
            block: spec.options.block_bytes,
            label: "",
            begin: None,
        };
        progress.begin(if spec.reuse { "open the disks" } else { "set up the disks" });
        files.start();
        let target = (entry.open)(spec, &mut |loading| progress.show(loading))?;
        files.adopt();
        let set_up_ns = progress.session.now_ns();
        progress.begin("load");
        target.load(&mut |loading| progress.show(loading))?;
        (target, set_up_ns)
    };
    let (end_ns, ()) = session.tick(|readings| target.sample(true, readings))?;
    session.recorder().manifest().phases.push(Phase {
        label: "load".to_owned(),
        group: Group::Load,
        repeat: 0,
        load: None,
        background: None,
        start_ns,
        window_start_ns: start_ns,
        window_end_ns: end_ns,
        end_ns,
        stop: Stop::WorkDone,
        settled: None,
        processors: None,
        first_error: None,
        note: None,
    });
    session.recorder().event(set_up_ns, phase, "loading", "the disks are set up")?;
    session.end_phase()?;
    Ok(target)
}

struct LoadProgress<'a> {
    session: &'a mut Session,
    observer: &'a mut dyn Observer,
    block: Bytes,
    label: &'static str,
    /// Times at which this part began and progress was last shown.
    begin: Option<(u64, u64)>,
}

impl LoadProgress<'_> {
    fn begin(&mut self, label: &'static str) {
        self.label = label;
        self.begin = None;
        self.observer.phase(label);
    }

    fn show(&mut self, loading: Loading) -> ControlFlow<()> {
        let now_ns = self.session.now_ns();
        let (begin_ns, shown_ns) = *self.begin.get_or_insert((now_ns, now_ns));
        if now_ns >= shown_ns + SHOW_NS {
            self.begin = Some((begin_ns, now_ns));
            let elapsed_ns = (now_ns - begin_ns).max(1);
            let Loading { done, total } = loading;
            let per_block_ns = elapsed_ns / done.max(1);
            let mb_per_s = (done * self.block.get()) as f64 * 1e3 / elapsed_ns as f64;
            self.observer.tick(&Live {
                label: self.label,
                rates: &[Rate { value: mb_per_s, unit: "MB/s" }],
                elapsed: self.session.elapsed(),
                left: Nanos(total.saturating_sub(done) * per_block_ns),
                is_estimate: false,
            });
        }
        unless(self.observer.interrupted().is_some())
    }
}
