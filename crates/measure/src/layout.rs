//! Progress of data that is written once before it is measured.

use blockstone_base::units::Nanos;

use crate::{Live, Observer, Rate, Session};

/// Writing of a known amount, for an unknown time.
pub struct Layout<'a> {
    session: &'a Session,
    label: &'static str,
    begin_ns: u64,
}

impl<'a> Layout<'a> {
    /// Starts now; `label` says what is written.
    pub fn begin(session: &'a Session, observer: &mut dyn Observer, label: &'static str) -> Self {
        observer.phase(label);
        Self { session, label, begin_ns: session.now_ns() }
    }

    /// Shows the progress; returns whether to go on.
    pub fn shown(&self, observer: &mut dyn Observer, written: u64, total: u64) -> bool {
        let elapsed_ns = (self.session.now_ns() - self.begin_ns).max(1) as f64;
        let left_ns = total.saturating_sub(written) as f64 * elapsed_ns / written.max(1) as f64;
        observer.tick(&Live {
            label: self.label,
            rates: &[Rate { value: written as f64 * 1e3 / elapsed_ns, unit: "MB/s" }],
            elapsed: self.session.elapsed(),
            left: Nanos(left_ns as u64),
            is_estimate: true,
        });
        observer.interrupted().is_none()
    }
}
