//! Reports of results by formula: the cliff, a fit, a lifetime.

use blockstone_base::table::{Measure, Rows as _, Table};
use blockstone_base::units::{Bytes, three_digits};
use blockstone_flash::estimate::{Cliff, Fall, Life};
use blockstone_flash::fit::{Fit, Sample};
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::report::Earlier;
use blockstone_report::{Card, Headline, Report, Section, Tone, percent};

use super::super::earlier;
use super::rows::{CliffRow, FitRow, LifeRow};
use super::{CLIFF, FIT, LIFE, base_report, words};

/// Returns a report of one row of figures: cards for people, the row for scripts.
fn of_one_row(verb: &'static str, earlier: Earlier, table: Table) -> Report {
    let section = Section::page("figures", "All figures").with([table.record()]);
    Report { sections: vec![section], ..base_report(verb, earlier) }
}

/// Returns the report of a cliff: when it comes, and the rates before and after it. `given` says of
/// which device and load.
pub fn cliff(cliff: &Cliff, given: Vec<String>) -> Report {
    let table = CliffRow::table("cliff", "", [CliffRow::of(cliff)]);
    let (text, tone) = verdict(cliff);
    let spare = format!(
        "spare factor {}, effective {}",
        percent(cliff.spare_factor),
        percent(cliff.effective_spare)
    );
    let by_formula = || format!("write amplification {:.3} by formula", cliff.wa);
    let (before, after, behind) = match cliff.outcome {
        Fall::Never => ("at first", "at most", "with what is kept free in the background".into()),
        Fall::Slight | Fall::Unsure => ("at first", "in the long run", by_formula()),
        Fall::At | Fall::TooSlow => ("before the cliff", "after the cliff", by_formula()),
    };
    let mut cards =
        vec![share_card("over_provisioning", "over-provisioning", cliff.over_provisioning, spare)];
    cards.extend(cliff.seconds_to_cliff.zip(cliff.cliff_drive_fills).map(|(seconds, fills)| {
        let (after, unit) = words::in_unit(seconds);
        let rate = match cliff.outcome {
            Fall::TooSlow => ", at the rate that the device takes",
            _ => "",
        };
        let written = format!("{fills:.3} drive fills overwritten{rate}");
        Card::exact("seconds_to_cliff", "cliff after", after, unit).source(written)
    }));
    cards.extend([
        Card::exact("iops_fresh", before, cliff.iops_fresh, "IOPS").source("writes of a page"),
        Card::exact("iops_steady", after, cliff.iops_steady, "IOPS").source(behind),
        Card::exact("iops_wanted", "required", cliff.iops_wanted, "IOPS"),
    ]);
    cards.extend((cliff.outcome == Fall::Never).then(|| {
        let source = "by formula, with what is kept free in the background";
        Card::exact("wa", "write amplification", cliff.wa, "×").source(source)
    }));
    cards.extend(cliff.over_provisioning_needed.map(|needed| {
        let rounded =
            |bytes: u64| format!("use at most {} of the capacity", Bytes(bytes >> 20 << 20));
        let note = cliff.visible_bytes_needed.map(rounded).unwrap_or_default();
        share_card("over_provisioning_needed", "needed for this", needed, note)
    }));
    let headline = Headline { text: text.to_owned(), tone, ..Headline::default() };
    let mut report = of_one_row(CLIFF, earlier::cliff, table);
    report.sections.insert(0, Section::page("rates", "Rates").with([rates(cliff)]));
    Report { headline, identity: given, cards, ..report }
}

/// Chart of the rate over time, with a step at the cliff; two bars if the cliff never comes.
fn rates(cliff: &Cliff) -> Chart {
    let y = Axis::new("writes of a page per second", Measure::Count);
    let (fresh, steady) = (cliff.iops_fresh, cliff.iops_steady);
    let chart = if let Some(seconds) = cliff.seconds_to_cliff {
        let (after, unit) = words::in_unit(seconds);
        let x = Axis::new(format!("{unit} of overwriting at the required rate"), Measure::Count);
        let points = [(0.0, fresh), (after, fresh), (after, steady), (2.0 * after, steady)];
        Chart::new("rates", "What the device takes", x, y)
            .layer("takes", Color::Series(0), Form::line(points.map(|(x, y)| (x, Some(y)))))
            .band(0.0, after, "spare left")
    } else {
        let names = ["before a cliff", "after it"].map(str::to_owned).to_vec();
        let bar = |(x, y): (f64, f64)| Point { x, y: Some(y), ..Point::default() };
        let points = [(0.0, fresh), (1.0, steady)].map(bar).to_vec();
        let bars = Form::Bars { points, stacked: false };
        Chart::new("rates", "What the device takes", Axis::names("", names), y).layer(
            "takes",
            Color::Series(0),
            bars,
        )
    };
    chart.level(cliff.iops_wanted, "required").wide(300).about(
        "Until the spare is written, a write is programmed once; then pages are moved first.",
    )
}

/// Returns whether the device meets the required rate, in words.
fn verdict(cliff: &Cliff) -> (&'static str, Tone) {
    match cliff.outcome {
        Fall::Never => ("no cliff: background collection keeps up with this rate", Tone::Plain),
        Fall::Unsure => (
            "not established: background collection does not keep the blocks free that it should; \
             flash sim shows whether writes wait",
            Tone::Warning,
        ),
        Fall::Slight if cliff.iops_steady >= cliff.iops_wanted => (
            "no cliff: so much is spare that collection delays writes by less than a tenth of the \
             program time",
            Tone::Plain,
        ),
        Fall::Slight => (
            "no cliff, but the required rate is not sustained in the long run: use more dies or \
             write less",
            Tone::Warning,
        ),
        Fall::TooSlow => (
            "the device does not take the required rate even before the cliff: use more dies or \
             write less",
            Tone::Warning,
        ),
        Fall::At if cliff.iops_steady >= cliff.iops_wanted => {
            ("the required rate is sustained after the cliff", Tone::Plain)
        }
        Fall::At if cliff.over_provisioning_needed.is_some() => (
            "the required rate is not sustained after the cliff: more spare is needed",
            Tone::Warning,
        ),
        Fall::At => (
            "the required rate is not sustained after the cliff, whatever the spare: use more \
             dies or write less",
            Tone::Warning,
        ),
    }
}

fn share_card(name: &'static str, title: &'static str, share: f64, source: String) -> Card {
    Card::exact(name, title, share * 100.0, "%").source(source)
}

/// Maximum number of points in the chart.
const POINTS: usize = 300;

/// Returns the report of a fit. `samples` were measured on a drive whose visible capacity is
/// `visible_bytes`.
pub fn fit(
    fit: &Fit,
    (samples, visible_bytes): (&[Sample], u64),
    warning: Option<String>,
) -> Report {
    let table = FitRow::table("fit", "", [FitRow::of(fit)]);
    let mbps = |bytes: f64| bytes / 1e6;
    let mut cards = vec![
        Card::exact("drive_fills", "written", fit.drive_fills, "drive fills"),
        Card::exact("fresh_bytes_per_s", "at first", mbps(fit.fresh_bytes_per_s), "MB/s"),
        Card::exact("last_bytes_per_s", "at the end", mbps(fit.last_bytes_per_s), "MB/s"),
    ];
    let filled = |fills| Card::exact("cliff_drive_fills", "cliff after", fills, "drive fills");
    cards.extend(fit.cliff_drive_fills.map(filled));
    cards.extend(fit.over_provisioning_of_cliff.map(|share| {
        let source = "from when it fell, if the drive was full before".to_owned();
        share_card("over_provisioning_of_cliff", "over-provisioning", share, source)
    }));
    let wa =
        |wa| Card::exact("wa", "write amplification", wa, "×").source("from how far the rate fell");
    cards.extend(fit.wa.map(wa));
    cards.extend(fit.effective_spare.map(|share| {
        share_card("effective_spare", "effective spare", share, "from that, by formula".to_owned())
    }));
    let test = "five rounds within 20 % of their mean, their line within 10 %";
    let settled = match fit.settled_from_drive_fills {
        Some(from) => format!("preconditioned (SNIA): from {} drive fills on", three_digits(from)),
        None => format!(
            "not preconditioned (SNIA): about {} drive fills are missing",
            three_digits(fit.drive_fills_missing)
        ),
    };
    let fell = if fit.fell { "" } else { "the rate never fell; " };
    let tone = if fit.is_settled { Tone::Plain } else { Tone::Warning };
    let headline = Headline { text: format!("{fell}{settled}"), tone, ..Headline::default() };
    let mut report = of_one_row(FIT, earlier::fit, table);
    report.notes.insert(0, format!("preconditioned: {test}"));
    let chart = curve(fit, samples, visible_bytes);
    report.sections.insert(0, Section::page("curve", "The curve").with([chart]));
    Report { headline, cards, warnings: warning.into_iter().collect(), ..report }
}

/// Chart of the write rate over the volume written. Long curves are averaged down to [`POINTS`].
fn curve(fit: &Fit, samples: &[Sample], visible_bytes: u64) -> Chart {
    let mut written = 0.0;
    let points = samples.chunks(samples.len().div_ceil(POINTS).max(1)).map(|samples| {
        let bytes: f64 = samples.iter().map(|sample| sample.bytes).sum();
        let seconds: f64 = samples.iter().map(|sample| sample.duration_s).sum();
        written += bytes;
        (written / visible_bytes as f64, (seconds > 0.0).then(|| bytes / seconds))
    });
    let x = Axis::new("drive fills written", Measure::Count);
    let y = Axis::new("written a second", Measure::BytesPerS);
    let line = Form::line(points.collect::<Vec<_>>());
    let chart = Chart::new("curve", "Write rate", x, y).layer("rate", Color::Series(0), line);
    let chart = match fit.cliff_drive_fills {
        Some(fills) => chart.band(0.0, fills, "before the fall"),
        None => chart,
    };
    chart.level(fit.last_bytes_per_s, "at the end").wide(300)
}

pub fn life(life: &Life, given: Vec<String>) -> Report {
    let table = LifeRow::table("life", "", [LifeRow::of(life)]);
    let cards = vec![
        Card::exact("years", "lifetime", life.years, "years")
            .source("until the mean block is worn out"),
        Card::exact("host_bytes", "the host can write", life.host_bytes / 1e12, "TB"),
        Card::exact("drive_writes_per_day", "drive writes", life.drive_writes_per_day, "per day")
            .source("for five years"),
        Card::exact("wa", "write amplification", life.wa, "×"),
        Card::exact("erases_per_day", "erases per block", life.erases_per_day, "per day"),
    ];
    Report { identity: given, cards, ..of_one_row(LIFE, earlier::life, table) }
}
