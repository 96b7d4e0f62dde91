//! Whether storage carries the need: the answer, and the loads that it rests on.

use blockstone_base::table::{Row, Rows as _, Table, happened};
use blockstone_report::report::Detail;
use blockstone_report::{Section, Tone, format};
use schemars::JsonSchema;
use serde::Serialize;

use crate::verbs::size::answer::{Answer, Change, Load, Outcome};
use crate::verbs::size::rows::{DbTimeRow, LoadRow};
use crate::verbs::size::sources::Sources;

/// Keys of the document besides single figures and tables.
#[derive(Serialize, JsonSchema)]
pub struct Objects {
    /// Whether the storage of `--on` carries the need.
    pub answer: Option<AnswerObject>,
    /// Database time a second for the same work, of --db-time: sessions in a call on average.
    pub db_time: Option<ChangeObject>,
    /// Operations a second of the same sessions.
    pub throughput: Option<ChangeObject>,
    /// Sources of the need, each once.
    pub sources: Vec<SourceObject>,
}

/// A source of the need.
#[derive(Serialize, JsonSchema)]
pub struct SourceObject {
    name: String,
    /// As in the table of sources: `awr`, `iostat`, `recording`.
    kind: String,
    /// The pluggable database, if the report is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// Devices whose requests are not counted by themselves.
    left_out: Vec<LeftOutObject>,
}

/// A device whose requests are not counted by themselves.
#[derive(Serialize, JsonSchema)]
pub struct LeftOutObject {
    name: String,
    /// Reason, such as that it is a partition of a disk that is counted.
    why: &'static str,
}

/// Returns the sources, in the order in which they were read.
fn sources(sources: &Sources) -> Vec<SourceObject> {
    let mut found: Vec<SourceObject> = Vec::new();
    for it in &sources.observations {
        let name = it.name();
        if found.iter().all(|known| known.name != name) {
            let of_it = sources.left_out.iter().filter(|(source, _)| *source == it.database);
            let left_out = of_it
                .map(|(_, device)| LeftOutObject { name: device.name.clone(), why: device.why });
            found.push(SourceObject {
                left_out: left_out.collect(),
                kind: it.kind.clone(),
                container: it.container.clone(),
                name,
            });
        }
    }
    found
}

/// A value on the storage of the source, and its bounds on that of `--on`.
#[derive(Serialize, JsonSchema)]
pub struct ChangeObject {
    before: f64,
    low: f64,
    high: f64,
}

impl From<Change> for ChangeObject {
    fn from(Change { before, low, high }: Change) -> Self {
        Self { before, low, high }
    }
}

pub fn objects(answer: Option<&Answer>, of: &Sources) -> Objects {
    let faster = answer.and_then(|it| it.db_time);
    Objects {
        answer: answer.map(object),
        db_time: faster.map(|it| it.db_time.into()),
        throughput: faster.map(|it| it.throughput.into()),
        sources: sources(of),
    }
}

/// Answer for scripts.
#[derive(Serialize, JsonSchema)]
pub struct AnswerObject {
    /// `carries`, `does-not-carry` or `not-established`.
    outcome: &'static str,
    /// The most that the storage did, as a multiple of the need.
    headroom: Option<f64>,
    /// Lower end of its 95 % interval.
    headroom_low: Option<f64>,
    /// Upper end of its 95 % interval.
    headroom_high: Option<f64>,
    /// The limit that more load would meet first.
    binds: String,
    /// Reason for the outcome, unless it carries the need.
    why: Option<String>,
}

fn object(answer: &Answer) -> AnswerObject {
    let end = |of: fn(&blockstone_base::stats::Estimate) -> f64| {
        answer.headroom.as_ref().map(of).filter(|end| end.is_finite())
    };
    AnswerObject {
        outcome: answer.outcome.name(),
        headroom: end(|it| it.value),
        headroom_low: end(|it| it.low),
        headroom_high: end(|it| it.high),
        binds: answer.binds.clone(),
        why: answer.why.clone(),
    }
}

/// Returns the answer for people: `carries the need: the most is 3.2× the need; … binds`.
pub fn words(answer: &Answer) -> String {
    let mut parts = vec![answer.outcome.words().to_owned()];
    parts.extend(answer.why.clone());
    parts.extend(answer.headroom.map(|it| {
        let [low, high] = [it.low, it.high].map(|end| format::number(end, ""));
        format!("the most is {}× the need ({low} to {high})", format::number(it.value, ""))
    }));
    parts.push(format!("{} binds", answer.binds));
    parts.join("; ")
}

pub const fn tone(answer: &Answer) -> Tone {
    match answer.outcome {
        Outcome::Carries => Tone::Plain,
        Outcome::DoesNotCarry => Tone::Bad,
        Outcome::NotEstablished => Tone::Warning,
    }
}

pub fn section(answer: &Answer) -> Section {
    let rows = answer.loads.iter().map(|load| Row::from(row(load)));
    let table = Table::new("loads", "Loads on this storage", LoadRow::COLUMNS).with(rows);
    let section = Section::of("loads", table).detail(Detail::Top);
    let Some(faster) = &answer.db_time else { return section };
    let rows = [
        ("waits for reads", faster.reads),
        ("waits for commits", faster.commits),
        ("CPU, network, locks", faster.rest),
        ("database time, same work", faster.db_time),
        ("operations/s, same sessions", faster.throughput),
    ];
    let rows = rows.map(|(what, Change { before, low, high })| {
        let factor =
            happened((before > 0.0 && low > 0.0).then(|| f64::midpoint(low, high) / before));
        DbTimeRow { what, before, low, high, factor }
    });
    section.with([DbTimeRow::table("db-time", "Database time, seconds a second", rows)])
}

fn row(load: &Load) -> LoadRow {
    LoadRow {
        load: load.name.clone(),
        wanted_per_s: happened(load.wanted_per_s),
        done_per_s: happened(load.done_per_s),
        reads_per_s: happened(load.reads_per_s),
        writes_per_s: happened(load.writes_per_s),
        predicted_ns_p99_low: happened(load.predicted_ns_p99.map(|it| it.0)),
        predicted_ns_p99_high: happened(load.predicted_ns_p99.map(|it| it.1)),
        read_latency_ns_p99: happened(load.read_ns_p99),
        commit_latency_ns_p99: happened(load.commit_ns_p99),
        outcome: happened(load.outcome.map(Outcome::name)),
        why: load.why.clone().unwrap_or_default(),
        recording: load.recording.clone(),
    }
}
