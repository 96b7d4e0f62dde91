//! Properties of the units of an answer besides their ceilings: latency, price, failures, and a
//! disk by its mechanics.

use blockstone_base::table::{Rows as _, Table};
use blockstone_base::units::{format_ns, thousands, three_digits};
use blockstone_report::{Detail, Section, percent};
use blockstone_size::hardware::disk::{failures_per_year, scans, strokes};
use blockstone_size::hardware::headroom::Predicted;

use super::super::Sized;
use super::super::args::SizeArgs;
use super::super::hardware::Hardware;
use super::super::rows::{ScanRow, StrokeRow};

pub fn words(sized: &Sized, args: &SizeArgs) -> Vec<String> {
    let hardware = &sized.hardware;
    let answers =
        [each_does(hardware, args), latency(hardware), money(hardware), failures(hardware, args)];
    taken(hardware, args).into_iter().chain(answers.into_iter().flatten()).collect()
}

/// Says that no unit was named: a reader would wonder why it is this one.
fn taken(hardware: &Hardware, args: &SizeArgs) -> Option<String> {
    let given = &args.hardware;
    let is_default = given.disk.is_none() && given.curve.is_none() && given.catalogue.is_none();
    let name = &hardware.unit.name;
    is_default.then(|| format!("No unit was named, so this is of {name}; --disk takes another."))
}

/// Shows a disk whose mechanics are stated, by the share of it that is used and by allocation unit.
pub fn mechanics(hardware: &Hardware) -> Option<Section> {
    let unit = &hardware.unit;
    let disk = unit.mechanics()?;
    let stroke = unit.stroke.unwrap_or(1.0);
    let whole = unit.gb.map(|gb| gb * 1e9 / stroke);
    let of_stroke = strokes(&disk).into_iter().map(|it| StrokeRow {
        stroke: it.share,
        seek_ns: it.seek_s * 1e9,
        rotation_ns: it.rotation_s * 1e9,
        transfer_ns: it.transfer_s * 1e9,
        iops: it.iops,
        used_bytes: whole.map(|bytes| bytes * it.share),
    });
    let of_unit = scans(&disk, stroke).into_iter().map(|it| ScanRow {
        unit_bytes: it.unit_bytes,
        bytes_per_s: it.mbps * 1e6,
        disks: it.disks,
    });
    let title = format!("{} by its mechanics", unit.name);
    let section = Section::new("mechanics", "");
    let section = if hardware.is_stated { section } else { section.detail(Detail::Page) };
    Some(section.with([
        Table { title: title.into(), ..StrokeRow::table("strokes", "", of_stroke) },
        ScanRow::table("scans", "Scans by allocation unit", of_unit),
    ]))
}

/// States the load of each of the units that exist.
fn each_does(hardware: &Hardware, args: &SizeArgs) -> Option<String> {
    let units = args.hardware.units.filter(|_| !args.asks_what_is_carried())?;
    let each = |it: &blockstone_size::hardware::Ceiling| {
        format!("{} {}", three_digits(it.need / units as f64), it.name)
    };
    let all: Vec<String> = hardware.answer.ceilings.iter().map(each).collect();
    Some(format!("Each of {} has to do {}.", thousands(units as i64), all.join(", ")))
}

/// States how many units fail in a year.
fn failures(hardware: &Hardware, args: &SizeArgs) -> Option<String> {
    let mtbf_h = hardware.unit.mtbf_h?;
    let units = args.hardware.units.unwrap_or(hardware.answer.units);
    let of = |units: u64| failures_per_year(units as f64, mtbf_h);
    Some(format!(
        "By an MTBF of {} h, {:.2} % of the units fail in a year: {:.2} of {}.",
        thousands(mtbf_h.round() as i64),
        of(1)? * 100.0,
        of(units)?,
        thousands(units as i64)
    ))
}

/// States the latency of the units, by a queue or a measured curve.
fn latency(hardware: &Hardware) -> Option<String> {
    if let Some(headroom) = hardware.headroom {
        let measured = format!(
            "Measured: one unit does {} IOPS with a p99 of {}, {} of the most that was measured.",
            thousands(headroom.iops.round() as i64),
            format_ns(headroom.p99_s * 1e9),
            percent(headroom.utilisation())
        );
        return Some(match hardware.predicted {
            Some(predicted) => format!("{measured} {}", at_load(&predicted)),
            None => measured,
        });
    }
    let queued = hardware.queued?;
    Some(format!(
        "By the formula of a queue (M/M/c), {} units at {:.1} % answer in {}× their service time, \
         and 1 of 100 requests waits {} service times or more. Measure one instead: --curve.",
        thousands(queued.units as i64),
        queued.utilisation * 100.0,
        three_digits(queued.mean_response),
        three_digits(queued.p99_wait)
    ))
}

/// States the p99 that the curve predicts at the load of one unit.
fn at_load(it: &Predicted) -> String {
    let iops = |iops: f64| thousands(iops.round() as i64);
    let time = |seconds: f64| format_ns(seconds * 1e9);
    let load = iops(it.iops);
    match (it.low_s, it.below_iops) {
        (Some(low_s), Some(below)) => format!(
            "At the {load} IOPS that each has to do, its p99 is between {} and {}, as measured at \
             {} and {} IOPS.",
            time(low_s),
            time(it.high_s),
            iops(below),
            iops(it.above_iops)
        ),
        _ => format!(
            "Each has to do {load} IOPS, less than was measured: its p99 was {} at {} IOPS.",
            time(it.high_s),
            iops(it.above_iops)
        ),
    }
}

/// States what the units cost, and how much of it is spent on a ceiling other than their capacity.
fn money(hardware: &Hardware) -> Option<String> {
    let usd = |usd: f64| format!("{} USD", thousands(usd.round() as i64));
    let mut parts = Vec::new();
    if let Some(price) = &hardware.price {
        let each = [(price.usd, ""), (price.usd_per_month, " a month")];
        let of = each.iter().filter_map(|(value, per)| Some(format!("{}{per}", usd((*value)?))));
        let per_iops = price.usd_per_iops.map(|it| format!("{} USD an IOPS", three_digits(it)));
        let per_gb = price.usd_per_gb.map(|it| format!("{} USD a GB", three_digits(it)));
        let all: Vec<String> = of.chain(per_iops).chain(per_gb).collect();
        let as_of = if price.as_of.is_empty() { "as stated" } else { &price.as_of };
        parts.push(format!("Price as of {as_of}: {}.", all.join(", ")));
        if let (Some(years), [one, two, four]) = (hardware.unit.halves_years, price.later) {
            let each = |it: Option<f64>| it.map_or_else(String::new, three_digits);
            parts.push(format!(
                "If that halves in {} years, a GB costs {}, {} and {} USD after 1, 2 and 4.",
                three_digits(years),
                each(one),
                each(two),
                each(four)
            ));
        }
    }
    if let Some(stranded) = &hardware.stranded
        && stranded.gb > 0.0
    {
        parts.push(format!(
            "{} GB, {} of the capacity, is bought for another ceiling.",
            thousands(stranded.gb.round() as i64),
            percent(stranded.share)
        ));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}
