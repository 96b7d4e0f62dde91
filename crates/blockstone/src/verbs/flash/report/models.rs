//! Reports of results by formula: the cliff, a fit, a lifetime.

use blockstone_base::row;
use blockstone_base::table::{Heading, Measure, Merge, Table, column, count, flow, ratio};
use blockstone_base::table::{share, text};
use blockstone_base::units::{Bytes, three_digits};
use blockstone_flash::estimate::{Cliff, Fall, Life};
use blockstone_flash::fit::{Fit, Sample};
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::{Card, Headline, Report, Section, Tone, percent};

use super::{base_report, documents, words};

/// Returns a report of one row of figures: cards for people, the row for scripts.
fn of_one_row(verb: &'static str, document: impl serde::Serialize, table: Table) -> Report {
    let section = Section::page("figures", "All figures").with([table]);
    Report { sections: vec![section], ..base_report(verb, document) }
}

const CLIFF: &[Heading] = &[
    share("over_provisioning", "over-provisioning", "Raw ÷ visible − 1."),
    share("spare_factor", "spare factor", "The part of the raw capacity that is spare."),
    share("effective_spare", "effective spare", "The same after reserves, of what is usable."),
    column("spare_bytes", "spare", Measure::Bytes, Merge::Last, "Bytes until the cliff."),
    count("cliff_drive_fills", "drive fills to the cliff", "The same in visible capacities."),
    count("seconds_to_cliff", "seconds to the cliff", "At the given rate, if the device takes it."),
    ratio("wa", "write amplification", "After the cliff, or in the long run, by formula."),
    count("iops_fresh", "IOPS before", "Writes of a page per second before the cliff."),
    count("iops_steady", "IOPS after", "Writes of a page per second after the cliff."),
    count("iops_wanted", "IOPS required", "Writes of a page per second at the given rate."),
    share(
        "over_provisioning_needed",
        "over-provisioning needed",
        "To sustain this rate after the cliff.",
    ),
    column(
        "visible_bytes_needed",
        "use at most",
        Measure::Bytes,
        Merge::Last,
        "To sustain this rate after the cliff.",
    ),
    text("outcome", "outcome", "never, at, or too-slow: the fresh device does not take this rate."),
];

/// Returns the report of a cliff: when it comes, and the rates before and after it.
pub fn cliff(cliff: &Cliff) -> Report {
    let outcome = match cliff.outcome {
        Fall::Never => "never",
        Fall::At => "at",
        Fall::TooSlow => "too-slow",
    };
    let row = row![
        cliff.over_provisioning,
        cliff.spare_factor,
        cliff.effective_spare,
        cliff.spare_bytes,
        cliff.cliff_drive_fills,
        cliff.seconds_to_cliff,
        cliff.wa,
        cliff.iops_fresh,
        cliff.iops_steady,
        cliff.iops_wanted,
        cliff.over_provisioning_needed,
        cliff.visible_bytes_needed,
        outcome
    ];
    let table = Table::new("cliff", "", CLIFF).record().with([row]);
    let (text, tone) = verdict(cliff);
    let spare = format!(
        "spare factor {}, effective {}",
        percent(cliff.spare_factor),
        percent(cliff.effective_spare)
    );
    let behind = match cliff.outcome {
        Fall::Never => "if collection no longer kept up".to_owned(),
        _ => format!("write amplification {:.3} by formula", cliff.wa),
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
        Card::exact("iops_fresh", "before the cliff", cliff.iops_fresh, "IOPS")
            .source("writes of a page"),
        Card::exact("iops_steady", "after the cliff", cliff.iops_steady, "IOPS").source(behind),
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
    let mut report = of_one_row("flash-cliff", documents::cliff(cliff), table);
    report.sections.insert(0, Section::page("rates", "Rates").with([rates(cliff)]));
    Report { headline, cards, ..report }
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

const FIT: &[Heading] = &[
    count("drive_fills", "drive fills", "Written in all, in visible capacities."),
    flow("fresh_bytes_per_s", "at first", "Before the fall."),
    flow("last_bytes_per_s", "at the end", "At the end of the curve."),
    text("fell", "fell", "Whether the rate fell by more than 15 %."),
    count("cliff_drive_fills", "cliff", "Written when it fell, in visible capacities."),
    share("over_provisioning_of_cliff", "over-provisioning", "From where it fell."),
    ratio("wa", "write amplification", "From how far it fell."),
    share("effective_spare", "effective spare", "From that, by formula."),
    text("is_settled", "preconditioned", "Whether the end passes SNIA's steady-state test."),
    count("settled_from_drive_fills", "since", "From when on, in drive fills."),
    count("drive_fills_missing", "drive fills missing", "Until it is preconditioned."),
];

/// Maximum number of points in the chart.
const POINTS: usize = 300;

/// Returns the report of a fit. `samples` were measured on a drive whose visible capacity is
/// `visible_bytes`.
pub fn fit(
    fit: &Fit,
    (samples, visible_bytes): (&[Sample], u64),
    warning: Option<String>,
) -> Report {
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let row = row![
        fit.drive_fills,
        fit.fresh_bytes_per_s,
        fit.last_bytes_per_s,
        yes(fit.fell),
        fit.cliff_drive_fills,
        fit.over_provisioning_of_cliff,
        fit.wa,
        fit.effective_spare,
        yes(fit.is_settled),
        fit.settled_from_drive_fills,
        fit.drive_fills_missing
    ];
    let table = Table::new("fit", "", FIT).record().with([row]);
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
    let mut report = of_one_row("flash-fit", documents::fit(fit), table);
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

const LIFE: &[Heading] = &[
    count("years", "years", "Years until the mean block reaches its program/erase cycles."),
    column("host_bytes", "host writes", Measure::Bytes, Merge::Last, "Until then."),
    count("drive_writes_per_day", "drive writes per day", "For five years."),
    ratio("wa", "write amplification", "Programs ÷ host pages."),
    count("erases_per_day", "erases per day", "Of the mean block."),
];

pub fn life(life: &Life) -> Report {
    let row =
        row![life.years, life.host_bytes, life.drive_writes_per_day, life.wa, life.erases_per_day];
    let table = Table::new("life", "", LIFE).record().with([row]);
    let cards = vec![
        Card::exact("years", "lifetime", life.years, "years")
            .source("until the mean block is worn out"),
        Card::exact("host_bytes", "the host can write", life.host_bytes / 1e12, "TB"),
        Card::exact("drive_writes_per_day", "drive writes", life.drive_writes_per_day, "per day")
            .source("for five years"),
        Card::exact("wa", "write amplification", life.wa, "×"),
        Card::exact("erases_per_day", "erases per block", life.erases_per_day, "per day"),
    ];
    Report { cards, ..of_one_row("flash-life", documents::life(life), table) }
}
