//! Predictions of the response time after a change, each with its assumptions.

use crate::model::{Component, Statement, Trace};

#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Description of the change.
    pub change: String,
    pub now_ns: f64,
    pub predicted_ns: f64,
    pub assumes: &'static str,
}

/// Time of the whole trace if this statement fetched `rows` rows per call.
pub fn array_size(trace: &Trace, statement: &Statement, rows: u32) -> Option<Prediction> {
    let fetch = statement.parts.iter().find(|part| part.name == "fetch")?;
    let trips = statement.round_trips?;
    let executions = statement.executions.max(1.0);
    if rows == 0 || fetch.rows <= 0.0 || fetch.calls <= executions {
        return None;
    }
    // The last fetch of an execution finds that there are no more rows.
    let calls = executions * ((fetch.rows / executions / f64::from(rows)).floor() + 1.0);
    let saved_trips = (fetch.calls - calls).min(trips.calls);
    let each_ns = trips.gap_ns / trips.calls;
    let now_ns = trace.span_ns?;
    let size = fetch.rows / fetch.calls;
    Some(Prediction {
        change: format!("{rows} rows a fetch instead of {size:.0}: {calls:.0} round trips"),
        now_ns,
        predicted_ns: now_ns - saved_trips * each_ns,
        assumes: "a round trip takes as long with more rows in it",
    })
}

/// Time if the average wait for the client were `wait_ns`.
pub fn round_trip(trace: &Trace, wait_ns: f64) -> Option<Prediction> {
    let trips = trace.round_trips.filter(|it| it.wait_ns > 0.0)?;
    let now_ns = trace.span_ns?;
    let factor = wait_ns / (trips.wait_ns / trips.calls);
    (factor.is_finite() && factor >= 0.0).then(|| Prediction {
        change: format!("{:.3} ms a round trip, {:.0} times", wait_ns / 1e6, trips.calls),
        now_ns,
        predicted_ns: now_ns - trips.gap_ns * (1.0 - factor),
        assumes: "all time between calls changes with the round trip, the client's own time too",
    })
}

/// Time if reads of single blocks took this fraction of their current time.
pub fn single_block_reads(trace: &Trace, factor: f64) -> Option<Prediction> {
    let (calls, ns) = single_blocks(trace)?;
    let now_ns = trace.span_ns?;
    Some(Prediction {
        change: format!(
            "{:.3} ms a single-block read instead of {:.3}",
            ns * factor / calls / 1e6,
            ns / calls / 1e6
        ),
        now_ns,
        predicted_ns: now_ns - ns * (1.0 - factor),
        assumes: "the session waits for one read after the other",
    })
}

/// Time if this share of single-block reads were found in memory, at a cost for each.
pub fn cache_hits(trace: &Trace, share: f64, memory_cost_ns: f64) -> Option<Prediction> {
    let (calls, ns) = single_blocks(trace)?;
    let now_ns = trace.span_ns?;
    Some(Prediction {
        change: format!("{:.0} % of {calls:.0} single-block reads in memory", share * 100.0),
        now_ns,
        predicted_ns: now_ns - share * (ns - calls * memory_cost_ns),
        assumes: "blocks that are found in memory would have taken the mean time to read",
    })
}

/// Number of single-block reads, and their time.
fn single_blocks(trace: &Trace) -> Option<(f64, f64)> {
    let single = |component: &Component| match component {
        Component::Wait(event) => {
            event == "db file sequential read"
                || event.starts_with("cell single block physical read")
        }
        _ => false,
    };
    let reads = trace.components.iter().filter(|(component, _)| single(component));
    let (calls, ns) = reads.fold((0.0, 0.0), |sum, (_, it)| (sum.0 + it.calls, sum.1 + it.ns));
    (calls > 0.0).then_some((calls, ns))
}
