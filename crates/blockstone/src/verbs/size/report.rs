//! The report of `size`: the need, the ceilings, the answer, what would change it, and the command
//! that generates the predicted load.

mod charts;
mod on;
mod tables;
mod units;

use blockstone_base::stats::Estimate;
use blockstone_base::table::Rows as _;
use blockstone_base::units::{counted, format_ns, format_span, thousands, three_digits};
use blockstone_base::verdict::Verdict;
use blockstone_record::manifest::End;
use blockstone_report::render::json::{self, schema::Tables};
use blockstone_report::{Card, Headline, Report, Section, Tone, percent};
use blockstone_size::Source;
use blockstone_size::hardware::disk::{DISK_IOPS_MAX, ENTRIES};
use blockstone_size::hours::clock;
use blockstone_size::need::Need;
use blockstone_size::percentile::too_few;

use super::answer::Outcome;
use super::args::SizeArgs;
use super::hardware::CURRENT_UTILISATION;
use super::rows::{
    CeilingRow, ChangeRow, CoreRow, CurrentRow, DbTimeRow, HourRow, LeftOutRow, LoadRow, NeedRow,
    PackedRow, PartRow, PeakRow, ScanRow, SourceRow, StatementRow, StrokeRow, Summary,
    UncheckedRow, VerifiedRow,
};
use super::{Sized, drive, earlier};

pub use on::Objects;

pub const TABLES: &[Tables] = &[&[
    ("need", NeedRow::COLUMNS),
    ("current", CurrentRow::COLUMNS),
    ("ceilings", CeilingRow::COLUMNS),
    ("machine", CeilingRow::COLUMNS),
    ("cores", CoreRow::COLUMNS),
    ("strokes", StrokeRow::COLUMNS),
    ("scans", ScanRow::COLUMNS),
    ("changes", ChangeRow::COLUMNS),
    ("consolidation", PartRow::COLUMNS),
    ("packed", PackedRow::COLUMNS),
    ("unchecked", UncheckedRow::COLUMNS),
    ("peaks", PeakRow::COLUMNS),
    ("statements", StatementRow::COLUMNS),
    ("hours", HourRow::COLUMNS),
    ("sources", SourceRow::COLUMNS),
    ("left-out", LeftOutRow::COLUMNS),
    ("run-against-need", VerifiedRow::COLUMNS),
    ("loads", LoadRow::COLUMNS),
    ("db-time", DbTimeRow::COLUMNS),
]];

/// Intervals longer than this say little about single hours.
const LONG_S: f64 = 7_200.0;
/// Maximum number of names in a headline.
const NAMES_MAX: usize = 60;

pub fn report(sized: &Sized, args: &SizeArgs) -> Report {
    let mut sections: Vec<Section> = sized.answer.iter().map(on::section).collect();
    sections.extend(on_screen(sized, args));
    sections.push(units_on_page(sized));
    sections.extend(on_page(sized));
    sections.retain(|section| !section.blocks.is_empty());
    let outcome = sized.answer.as_ref().map(|it| it.outcome);
    Report {
        verb: "size".into(),
        version: 2,
        headline: headline(sized, args),
        identity: identity(sized, args),
        warnings: warnings(sized),
        cards: cards(sized),
        sections,
        verdicts: sized.verdicts.clone(),
        notes: notes(sized),
        scalars: Some(Summary::table("size", "Size", [Summary::of(sized, args)])),
        document: json::keys(on::objects(sized.answer.as_ref(), &sized.sources)),
        is_refuted: outcome == Some(Outcome::DoesNotCarry),
        partial: outcome == Some(Outcome::NotEstablished),
        end: match &sized.answer {
            Some(answer) if answer.is_interrupted => {
                End::Interrupted { signal: "a signal".to_owned() }
            }
            _ => End::Complete,
        },
        earlier: Some(earlier::keys),
        ..Report::default()
    }
}

/// Returns the verdicts of `found` that failed or whose rule has no verdict in `known` yet.
pub fn distinct(known: &[Verdict], found: Vec<Verdict>) -> Vec<Verdict> {
    let is_new = |it: &Verdict| !known.iter().any(|known| known.rule == it.rule && !it.failed());
    found.into_iter().filter(is_new).collect()
}

fn headline(sized: &Sized, args: &SizeArgs) -> Headline {
    let names: Vec<&str> = sized.databases.iter().map(|it| it.name.as_str()).collect();
    let subject = match names.as_slice() {
        [] if args.asks_what_is_carried() => "what they carry".to_owned(),
        [] => "stated need".to_owned(),
        names => blockstone_report::short(&names.join(" + "), NAMES_MAX),
    };
    let figure = sized.hardware_iops().map(|iops| {
        let words = match &sized.need {
            Some(_) => format!("IOPS of the storage at {}", sized.named()),
            None => "IOPS of the storage".to_owned(),
        };
        let card = Card::new("hardware_iops", "Storage", estimate(sized, iops), "IOPS");
        Card { words: words.into(), ..card }
    });
    Headline {
        subject,
        figures: figure.into_iter().collect(),
        leads: sized.answer.is_some(),
        text: sized.answer.as_ref().map_or_else(|| answer(sized, args), on::words),
        tone: sized.answer.as_ref().map_or(Tone::Plain, on::tone),
    }
}

/// The need at the percentile, with its interval of order statistics if there is one.
fn estimate(sized: &Sized, iops: f64) -> Estimate {
    let found = sized.need.as_ref().map(|it| &it.hardware_iops);
    let of = found.and_then(|it| match sized.named() {
        "p50" => it.p50,
        "p95" => it.p95,
        "p99" => it.p99,
        _ => None,
    });
    let exact = Estimate { value: iops, low: iops, high: iops, samples: 1, duration_ns: 0 };
    of.unwrap_or(exact)
}

/// Returns the answer as in `84 × disk, 7 × cell; limited by IOPS`. Where no unit was named, it is
/// the first of those that can be had today: `disk-15k` reads as what one should buy.
fn answer(sized: &Sized, args: &SizeArgs) -> String {
    /// The others are in a table.
    const CURRENT_MAX: usize = 3;
    let hardware = &sized.hardware;
    let times = |units: u64, unit: &str| format!("{} × {unit}", thousands(units as i64));
    let given = &args.hardware;
    let is_named = given.disk.is_some() || given.units.is_some() || given.curve.is_some();
    let current = hardware.current.iter().take(CURRENT_MAX).filter(|_| !is_named);
    let current: Vec<String> = current.map(|it| times(it.units, &it.unit)).collect();
    if let Some((last, others)) = current.split_last() {
        let sold = percent(CURRENT_UTILISATION);
        let others = if others.is_empty() { String::new() } else { others.join(", ") + " or " };
        return format!("{others}{last}, at {sold} of the rating of each");
    }
    let packed = hardware.packed.iter().map(|it| times(it.units, &it.unit));
    let answer = &hardware.answer;
    let all: Vec<String> =
        std::iter::once(times(answer.units, &answer.unit)).chain(packed).collect();
    let text = all.join(", ");
    match answer.binding() {
        Some(ceiling) => format!("{text}; limited by {}", ceiling.name),
        None => text,
    }
}

fn identity(sized: &Sized, args: &SizeArgs) -> Vec<String> {
    let Some(need) = &sized.need else { return Vec::new() };
    let snapshots = need.partial.1;
    let (least, most) = need.averaging_s;
    let lengths =
        if most - least < 1.0 { span(most) } else { format!("{} to {}", span(least), span(most)) };
    let spans = sized.databases.iter().map(blockstone_size::Database::span_s);
    let (begin, end) =
        spans.fold((f64::INFINITY, 0.0_f64), |all, it| (all.0.min(it.0), all.1.max(it.1)));
    let instances: usize = sized.databases.iter().map(|it| it.instances.len()).sum();
    let mut parts = if sized.sources.is_timed() {
        vec![
            format!("{} of {lengths}", intervals(snapshots)),
            format!("{} to {}", clock(begin), clock(end)),
        ]
    } else {
        vec![format!("{} of unknown length", intervals(snapshots))]
    };
    if instances > 1 {
        parts.push(format!("{instances} instances"));
    }
    if let Some(hours) = args.need.hours {
        parts.push(format!("{}:00 to {}:00", hours.0, hours.1));
    }
    if args.need.weekdays {
        parts.push("Monday to Friday".to_owned());
    }
    if let Some(days) = args.need.month_end {
        parts.push(format!("last {days} days of a month"));
    }
    let penalty = format!("redundancy {}", args.need.redundancy());
    let of = sized.sources.kinds.iter().map(|kind| match kind {
        Source::Load => "counted by the database",
        Source::Database => "requests of the database",
        Source::Devices => "requests of the devices of the load",
        Source::Host => "requests of the disks of the host",
    });
    let mut of: Vec<&str> = of.collect();
    of.sort_unstable();
    of.dedup();
    vec![parts.join(" · "), format!("{penalty} · {}", of.join(", "))]
}

fn intervals(count: usize) -> String {
    counted(count as u64, "interval")
}

fn span(seconds: f64) -> String {
    format_span((seconds.max(0.0) * 1e9) as u64)
}

fn warnings(sized: &Sized) -> Vec<String> {
    let Some(need) = &sized.need else { return Vec::new() };
    let mut warnings = Vec::new();
    let (partial, all) = need.partial;
    if partial > 0 {
        warnings.push(format!(
            "{partial} of {all} intervals lack instances: their sums, and percentiles of them, \
             are lower bounds"
        ));
    }
    if sized.databases.len() > 1 && need.averaging_s.1 > LONG_S {
        warnings.push(format!(
            "intervals of up to {} are taken as even over their hours: peaks within them are not \
             seen",
            span(need.averaging_s.1)
        ));
    }
    let share = match sized.percentile.as_str() {
        "p50" => 0.5,
        "p95" => 0.95,
        _ => 0.99,
    };
    if sized.named() != sized.percentile
        && let Some(why) = too_few(need.hardware_iops.samples, share)
    {
        warnings.push(format!("{why}: sized for the maximum"));
    }
    warnings
}

/// Cards on the peaks that averaging hides, and on the growth of the need.
fn cards(sized: &Sized) -> Vec<Card> {
    let Some(need) = &sized.need else { return Vec::new() };
    let mut cards = Vec::new();
    if let (Some(max), Some(most)) = (need.hardware_iops.max, need.most_hardware_iops) {
        let card = Card::exact("most_hardware_iops", "Upper bound of peaks", most, "IOPS");
        let of = need.most_averaging_s.map_or_else(String::new, |s| format!(" of {}", span(s)));
        let times = three_digits(most / max.max(f64::MIN_POSITIVE));
        cards.push(card.source(format!("highest means{of}: {times}× the largest interval")));
    }
    if let Some(factor) = need.peak_factor {
        let card = Card::exact("peak_factor", "Peak factor", factor, "×");
        let share = percent(1.0 / factor.max(1.0));
        cards.push(card.source(format!(
            "highest values inside an interval ÷ its mean, median; --utilisation {share} leaves \
             room for it"
        )));
    }
    if let Ok(growth) = &need.growth {
        let per_week = growth.per_week;
        let card = Card::new("growth_per_week", "Growth in a week", per_week, "IOPS");
        cards.push(card.source(format!(
            "weekly p95 of {} weeks; after as many more about {}",
            growth.weeks,
            three_digits(growth.after.value)
        )));
    }
    cards
}

fn on_screen(sized: &Sized, args: &SizeArgs) -> Vec<Section> {
    let mut sections = vec![
        Section::new("need", "Need")
            .with([tables::need(sized)])
            .with(words(sized))
            .with(writes(sized, args))
            .with(by_index(sized, args)),
        Section::of("current", tables::current(&sized.hardware.current)),
        Section::of("ceilings", tables::held("ceilings", &sized.hardware.answer))
            .with(units::words(sized, args)),
    ];
    sections.extend(units::mechanics(&sized.hardware));
    let machine = &sized.hardware.machine;
    sections.push(
        Section::new("machine", "")
            .with(machine.attached.as_ref().map(|it| tables::held("machine", &it.instances)))
            .with(machine.binds())
            .with((!machine.cores.is_empty()).then(|| tables::cores(&machine.cores)))
            .with(machine.driver_takes())
            .with(machine.licences())
            .with(machine.writes_to_flash()),
    );
    sections.extend(sized.need.as_ref().and_then(|need| {
        let table = tables::consolidation(need.consolidation.as_ref()?);
        Some(Section::of("consolidation", table).with(together(need)))
    }));
    sections.push(Section::of("changes", tables::changes(sized)));
    let verified = sized.verified.iter().flat_map(VerifiedRow::of);
    let verified =
        VerifiedRow::table("run-against-need", "The run against the need", []).with(verified);
    sections.push(Section::of("run-against-need", verified));
    let drive = drive::of(sized, args)
        .map(|command| format!("To drive it: {command}; then blockstone size … --verify last"));
    sections.push(Section::new("drive", "").with(drive));
    sections
}

/// Lists what scripts need and people read in the headline and the notes.
fn units_on_page(sized: &Sized) -> Section {
    let hardware = &sized.hardware;
    let packed = hardware.packed.iter().map(|it| PackedRow {
        unit: it.unit.clone(),
        units: it.units,
        units_exact: it.exact,
    });
    let unchecked = hardware.answer.unchecked.iter().map(|ceiling| UncheckedRow { ceiling });
    Section::page("units", "Units").with([
        PackedRow::table("packed", "The same as larger units", packed),
        UncheckedRow::table("unchecked", "Not checked", unchecked),
    ])
}

fn on_page(sized: &Sized) -> Vec<Section> {
    let Some(need) = &sized.need else { return Vec::new() };
    let is_timed = sized.sources.is_timed();
    let hours = is_timed.then(|| tables::hours(need));
    vec![
        Section::page("distribution", "The need over time")
            .with(charts::durations(sized, need))
            .with(is_timed.then(|| charts::hours(need))),
        Section::page("peaks", "Peaks").with([tables::peaks(sized), tables::statements(sized)]),
        Section::page("hours", "Hours of the week").with(hours),
        Section::page("sources", "Intervals")
            .with([tables::sources(sized), tables::left_out(sized)]),
    ]
}

/// Explains in a line how the numbers of the need were computed.
fn words(sized: &Sized) -> Option<String> {
    let need = sized.need.as_ref()?;
    let count = need.hardware_iops.samples as u64;
    let of = if sized.databases.len() > 1 {
        format!("{} of the week, the most of the weeks", counted(count, "hour"))
    } else {
        format!("the means of {}", counted(count, "interval"))
    };
    let text = format!(
        "Percentiles of {of}; reads + {} × writes of each, then the percentile.",
        three_digits(sized.question.penalty),
    );
    Some(match need.hardware_iops.p95_weighted {
        Some(weighted) => {
            let weighted = thousands(weighted.round() as i64);
            format!("{text} p95 of the time: {weighted}.")
        }
        None => text,
    })
}

/// States the share of writes in the load of the storage, and which writer dominates.
fn writes(sized: &Sized, args: &SizeArgs) -> Option<String> {
    let (iops, writes) = (sized.hardware_iops()?, sized.demand.writes_per_s?);
    let copies = writes * sized.question.penalty;
    let share = |part: f64, all: f64| format!("{:.1} %", part / all * 100.0);
    let mut parts = Vec::new();
    if sized.question.penalty > 1.0 && copies > 0.0 {
        let number = |value: f64| thousands(value.round() as i64);
        parts.push(format!(
            "Of the {} IOPS of the storage {} are writes, {}.",
            number(iops),
            number(copies),
            share(copies, iops)
        ));
    }
    if let Some(log) = drive::log_writes_of(sized, args) {
        let helps = if log.data_dominates {
            "the data writers dominate, and a flash log leaves the disks as busy"
        } else {
            "the log writer dominates"
        };
        parts.push(format!("{:.0} % of the writes are redo: {helps}.", log.redo_share * 100.0));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// States the cost of finding a row by an index.
fn by_index(sized: &Sized, args: &SizeArgs) -> Option<String> {
    let (rows, reads) = (args.stated.rows?, args.reads_of_lookup()?);
    let of_disk = sized.hardware.unit.iops.filter(|iops| *iops <= DISK_IOPS_MAX);
    let time = of_disk.map_or_else(String::new, |iops| {
        format!(", one after the other {} on a disk", format_ns(reads / iops * 1e9))
    });
    Some(format!(
        "A row of {} by its index takes {reads} reads{time}: {} levels of {ENTRIES} entries a \
         block, and the block of the table.",
        thousands(rows.round() as i64),
        reads - 1.0
    ))
}

fn together(need: &Need) -> Option<String> {
    let it = need.consolidation.as_ref()?;
    let number = |value: f64| thousands(value.round() as i64);
    let text = format!(
        "Sum of the peaks {} IOPS; peak of the sum {} at {}; ratio {:.2}.",
        number(it.sum_of_peaks),
        number(it.peak_of_sums),
        it.at,
        it.sum_of_peaks / it.peak_of_sums.max(f64::MIN_POSITIVE)
    );
    Some(match it.most {
        Some(most) => {
            let most = number(most);
            format!("{text} Worst sum of the highest values inside intervals: {most}.")
        }
        None => text,
    })
}

fn notes(sized: &Sized) -> Vec<String> {
    let mut notes = sized.sources.notes.clone();
    if let Some(need) = &sized.need {
        if let Err(why) = &need.growth {
            notes.push(why.clone());
        }
        if need.filtered > 0 {
            notes.push(format!("outside these hours: {}", intervals(need.filtered)));
        }
    }
    let unchecked = &sized.hardware.answer.unchecked;
    if !unchecked.is_empty() {
        notes.push(format!(
            "not checked, because it is not known what a unit can do: {}",
            unchecked.join(", ")
        ));
    }
    notes
}
