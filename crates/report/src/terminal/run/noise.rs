//! The same sessions without and with noise beside them.

use blockstone_base::units::{format_ns, three_digits};
use blockstone_judge::Change;
use blockstone_judge::run::{Noise, NoiseEffect};

use super::{Columns, Style, heading, wrap};
use crate::format::{self, block_size, number, optional, percent};

/// Both windows side by side.
pub fn lines(noise: &Noise, style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    let words = ["noise", "quiet", "", "noisy", "", "noisy ÷ quiet", "", ""];
    columns.numbers(heading(style, &words));
    for row in &noise.effect {
        columns.numbers(cells(row, style));
    }
    let mut lines = columns.lines();
    let text = format!("{}. What follows is the window without it.", itself(noise));
    lines.extend(wrap(&text, style.width, 2, 4).iter().map(|line| style.dim(line)));
    lines
}

fn cells(row: &NoiseEffect, style: &Style) -> Vec<String> {
    let says = match row.outcome {
        Change::Condemned => format!("condemned: {}", row.condemned_by.join(", ")),
        other => other.words().to_owned(),
    };
    let says = match row.outcome {
        Change::Slower => style.warning(&says),
        _ => style.dim(&says),
    };
    let (quiet, noisy) = (&row.quiet, &row.noisy);
    vec![
        row.title.clone(),
        number(quiet.value, &row.unit),
        style.dim(&format::plus_minus(quiet)),
        number(noisy.value, &row.unit),
        style.dim(&format::plus_minus(noisy)),
        style.bold(&optional(row.ratio, |ratio| percent(ratio.value))),
        style.dim(&row.ratio.map(|ratio| format::interval(&ratio, "of quiet")).unwrap_or_default()),
        says,
    ]
}

/// What the noise was.
pub(crate) fn itself(noise: &Noise) -> String {
    let latency = noise.latency.as_ref().map(|latency| {
        format!(
            "mean {}, p50 {}, p99 {}",
            format_ns(latency.ns_mean),
            format_ns(latency.ns_p50 as f64),
            format_ns(latency.ns_p99 as f64)
        )
    });
    format!(
        "noise: {} writers of durable {} one after the other, {} MB/s, {} writes/s: {}",
        noise.writers,
        block_size(noise.write_bytes),
        optional(noise.mb_per_s, |rate| three_digits(rate.value)),
        optional(noise.iops, |rate| three_digits(rate.value)),
        optional(latency, |text| text)
    )
}
