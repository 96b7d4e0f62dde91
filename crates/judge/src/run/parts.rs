//! The findings of parts of the measured windows, for tables of any part of a run's time.

use blockstone_figures::History;
use blockstone_record::manifest::Manifest;

use super::window::RunWindow;
use super::{RunFindings, counted, latency, time};

/// Returns what was counted in each slice between these edges that is inside a window; `None` for
/// other slices. The slices of one window add up to the window.
pub fn parts(manifest: &Manifest, history: &History, edges_ns: &[u64]) -> Vec<Option<RunFindings>> {
    in_windows(manifest, history, edges_ns, |window, parts| {
        let whole = time::db_time(window);
        let of = |part: &RunWindow| whole.as_ref().and_then(|_| time::db_time(part));
        let mut times: Vec<_> = parts.iter().map(of).collect();
        time::add_up(&mut times, whole.as_ref());
        parts.iter().zip(times).map(|(part, db_time)| counted(part, db_time)).collect()
    })
}

/// Returns only the latencies of the seconds in each of these slices. They are recorded by the
/// second, so slices of other lengths get the seconds whose middles are within them.
pub fn latency_parts(
    manifest: &Manifest,
    history: &History,
    edges_ns: &[u64],
) -> Vec<Option<RunFindings>> {
    let of = |part: &RunWindow| RunFindings {
        latencies: latency::percentiles(part),
        is_part: part.is_part(),
        ..RunFindings::default()
    };
    in_windows(manifest, history, edges_ns, |_, parts| parts.iter().map(of).collect())
}

/// Returns findings of the slices, which `derive` makes from all slices of a window.
fn in_windows(
    manifest: &Manifest,
    history: &History,
    edges_ns: &[u64],
    derive: impl Fn(&RunWindow, &[RunWindow]) -> Vec<RunFindings>,
) -> Vec<Option<RunFindings>> {
    let mut found: Vec<Option<RunFindings>> = (1..edges_ns.len()).map(|_| None).collect();
    for window in RunWindow::all(manifest, history) {
        let inside =
            |at: &usize| edges_ns[*at] >= window.from_ns && edges_ns[*at + 1] <= window.to_ns;
        let places: Vec<usize> = (0..found.len()).filter(inside).collect();
        let part = |at: &usize| window.between(edges_ns[*at], edges_ns[*at + 1]);
        let parts: Vec<RunWindow> = places.iter().map(part).collect();
        for (place, findings) in places.into_iter().zip(derive(&window, &parts)) {
            found[place] = Some(findings);
        }
    }
    found
}
