//! The direct-path matrix: what every read took, beside what a database says about the same reads.

use blockstone_base::units::{format_ns, three_digits};
use blockstone_judge::run::{Scan, ScanEffect, ScanPoint};

use super::{Columns, Style, heading, wrap};
use crate::format::{self, optional, percent};

const EXPLAINED: &str = "Left the reads themselves. Right what the wait interface of a database \
                         reports of the same reads (direct path read): only those that a session \
                         had to wait for, and of these only the rest.";

/// The headline: the most bytes a second, and with what.
pub fn headline(path: &str, scan: &Scan, style: &Style) -> Option<String> {
    // A condemned point is no headline as long as another one stands.
    let key = |point: &&ScanPoint| (point.condemned_by.is_empty(), point.mb_per_s.value);
    let point = scan.points.iter().max_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    let struck = !point.condemned_by.is_empty();
    let text = format!(
        "{} MB/s at most, {} blocks a read, {} {}",
        three_digits(point.mb_per_s.value),
        point.multiblock,
        point.parallel,
        sessions(point.parallel)
    );
    let text = if struck { style.struck(&text) } else { style.bold(&text) };
    let interval = if struck { String::new() } else { format::plus_minus(&point.mb_per_s) };
    Some(format!("{} {text} {}", style.bold(&format!("{path}:")), style.dim(&interval)))
}

/// The matrix as a table, and what it shows.
pub fn lines(scan: &Scan, style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    columns.numbers(heading(
        style,
        &["scan past the cache", "", "", "every read", "", "", "", "as waits"],
    ));
    let words = ["blocks × sessions", "MB/s", "", "reads/s", "mean", "p50", "p99"];
    let reported = ["waits/s", "of reads", "mean", "of a read"];
    columns.numbers(heading(style, &[&words[..], &reported[..]].concat()));
    for point in &scan.points {
        columns.numbers(cells(point, style));
    }
    let mut lines = columns.lines();
    lines.extend(wrap(EXPLAINED, style.width, 2, 2).iter().map(|line| style.dim(line)));
    for effect in &scan.effects {
        lines.extend(wrap(&effect_text(effect), style.width, 2, 4));
    }
    let spreads = scan.spreads.iter().map(|spread| {
        format!(
            "{} {}: {} blocks are {}× as fast as {}",
            spread.parallel,
            sessions(spread.parallel),
            spread.fastest_multiblock,
            three_digits(spread.ratio.value),
            spread.slowest_multiblock
        )
    });
    lines.extend(wrap(&spreads.collect::<Vec<_>>().join(" · "), style.width, 2, 4));
    lines
}

fn cells(point: &ScanPoint, style: &Style) -> Vec<String> {
    let rate = three_digits(point.mb_per_s.value);
    let stands = point.condemned_by.is_empty();
    let waits = &point.waits;
    let waits_per_s = waits.count as f64 * 1e9 / point.window_ns.max(1) as f64;
    vec![
        format!("{} × {}", point.multiblock, point.parallel),
        if stands { style.bold(&rate) } else { style.struck(&rate) },
        style.dim(&format::plus_minus(&point.mb_per_s)),
        three_digits(point.iops.value),
        format_ns(point.io_ns_mean.value),
        format_ns(point.io_ns_p50.value),
        format_ns(point.io_ns_p99.value),
        three_digits(waits_per_s),
        percent(waits.count_ratio),
        optional(waits.ns_mean, format_ns),
        optional(waits.mean_ratio, percent),
    ]
}

/// What changes for the same bytes.
pub(crate) fn effect_text(effect: &ScanEffect) -> String {
    let times = |value: Option<f64>| optional(value, |value| format!("{}×", three_digits(value)));
    format!(
        "{} blocks, {} → {} sessions, same bytes: {} the MB/s, a read takes {}; reported: {} the \
         waits, mean wait {}, wait time {}",
        effect.multiblock,
        effect.from_parallel,
        effect.to_parallel,
        times(effect.mb_per_s.map(|ratio| ratio.value)),
        times(effect.io_ns_mean.map(|ratio| ratio.value)),
        times(effect.waits),
        times(effect.wait_ns_mean),
        times(effect.wait_time)
    )
}

fn sessions(count: u32) -> &'static str {
    if count == 1 { "session" } else { "sessions" }
}
