//! Runs that waited for hosts, and not for the storage or the wire.

use blockstone_base::rule::{About, Judgement, RuleOf};
use blockstone_base::units::{percent, three_digits};
use blockstone_base::verdict::{Outcome, Weight};

use super::{HOSTS, Load, OffloadFindings, OffloadRun};

/// A run is slowed if the storage reads less than this share of the rate in another run.
const SLOWED: f64 = 0.8;
/// A link that is busy for at least this share binds.
const LINK_BUSY: f64 = 0.8;
/// Processors that are busy for this share of a run bind it, unless another part is busier.
const BUSY: f64 = 0.5;
/// Speedup from which more hosts count as faster.
const SCALES: f64 = 1.25;
/// Relative difference up to which two runs read, or return, about the same.
const ALIKE: f64 = 0.05;

const ABOUT: About = About {
    id: "bound-by-host",
    weight: Weight::Warns,
    doc: "Hosts did not take rows faster, while the storage and the wire could do more. Such a run \
          measures the processors of the hosts, not the storage.",
    threshold: "Where processor time is counted: hosts computed for 50 % of the time of a run or \
                more, on as many processors as they could use, and no other part was busier: \
                cells, links (--link), processors that both share. Elsewhere: a run reads less \
                than 80 % as fast as another one that reads about as much, and uses less than 80 % \
                of the links of its hosts; or more hosts are at least 1.25 times as fast with \
                about the same share returned. Inconclusive where nothing of this is known.",
    cause: "Hosts spend their processors on rows: conversion, filtering again, aggregation.",
    next: "Add hosts or processes on them, or return less: filter at the storage and select fewer \
           columns. `blockstone offload model --fit FILE` says from how many hosts on the storage \
           binds.",
};

pub(super) const RULE: RuleOf<OffloadFindings> = RuleOf::new(&ABOUT, check);

fn rate(run: &OffloadRun) -> Option<f64> {
    let seconds = run.seconds.filter(|it| *it > 0.0)?;
    Some(run.read_bytes as f64 / seconds)
}

/// Share of the capacity of the hosts' links that the run used.
fn link_share(run: &OffloadRun) -> Option<f64> {
    run.loads().into_iter().find(|it| it.part == "links").map(|it| it.share)
}

/// Judges a run by processor time; `None` if that of the hosts is not counted.
fn by_processors(run: &OffloadRun) -> Option<Judgement> {
    let loads = run.loads();
    let host = loads.iter().find(|it| it.part == HOSTS)?.share;
    let other = loads.iter().filter(|it| it.part != HOSTS);
    let busiest: Option<&Load> = other.max_by(|a, b| a.share.total_cmp(&b.share));
    let hosts = format!("hosts computed for {} of its time", percent(host));
    let evidence = match busiest {
        Some(other) => format!("{hosts}, {} were busy for {}", other.part, percent(other.share)),
        None if host < BUSY => hosts,
        None => return Some(Judgement::inconclusive(format!("{hosts}; cells are not counted"))),
    };
    let binds = host >= BUSY && busiest.is_none_or(|other| host >= other.share);
    Some(Judgement::decide(binds, evidence, Vec::new()))
}

fn wire_share(run: &OffloadRun) -> Option<f64> {
    (run.read_bytes > 0).then_some(run.wire_bytes? as f64 / run.read_bytes as f64)
}

/// Whether both runs scanned the same data, as far as bytes show.
fn reads_alike(a: &OffloadRun, b: &OffloadRun) -> bool {
    let (a, b) = (a.read_bytes as f64, b.read_bytes as f64);
    (a - b).abs() <= ALIKE * a.max(b)
}

fn check(findings: &OffloadFindings) -> Judgement {
    let timed: Vec<&OffloadRun> = findings.runs.iter().filter(|it| rate(it).is_some()).collect();
    let others = |run: &OffloadRun| -> Vec<&OffloadRun> {
        timed.iter().copied().filter(|it| reads_alike(it, run)).collect()
    };
    let judged = timed.iter().filter_map(|run| {
        let by_others = || Some(others(run)).filter(|it| it.len() > 1).map(|it| of_run(run, &it));
        Some((*run, by_processors(run).or_else(by_others)?))
    });
    let judged: Vec<(&OffloadRun, Judgement)> = judged.collect();
    let with = |outcome: Outcome| judged.iter().filter(move |(_, it)| it.outcome == outcome);
    let failed: Vec<String> = with(Outcome::Fail).map(|(run, _)| run.name.clone()).collect();
    let first = with(Outcome::Fail).chain(with(Outcome::Inconclusive)).chain(with(Outcome::Pass));
    let Some((run, judgement)) = first.into_iter().next() else {
        let why = "processor time is not counted, and no two runs that were timed read about as \
                   much: how fast the storage can read is not known";
        return Judgement::inconclusive(why);
    };
    let evidence = format!("{}: {}", run.name, judgement.evidence);
    Judgement { evidence, ..judgement.clone() }.at(failed)
}

fn of_run(run: &OffloadRun, all: &[&OffloadRun]) -> Judgement {
    let fastest = all.iter().filter_map(|it| rate(it)).fold(0.0, f64::max);
    let own = rate(run).unwrap_or_default();
    if own >= SLOWED * fastest {
        return Judgement::pass("no run reads faster by a quarter");
    }
    let slowed = format!("reads at {} of the rate of another run", percent(own / fastest));
    if let Some(share) = link_share(run) {
        let evidence = format!("{slowed}, and uses {} of its links", percent(share));
        return Judgement::decide(share < LINK_BUSY, evidence, Vec::new());
    }
    let alike = |other: &&&OffloadRun| match (wire_share(run), wire_share(other)) {
        (Some(own), Some(share)) => (share / own - 1.0).abs() <= ALIKE,
        _ => false,
    };
    let hosts = |run: &OffloadRun| run.hosts.unwrap_or_default();
    let more = all.iter().filter(alike).filter(|it| hosts(it) > hosts(run) && hosts(run) > 0);
    let faster = more.filter_map(|it| Some((hosts(it), rate(it)? / own)));
    match faster.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((count, times)) if times >= SCALES => {
            let times = three_digits(times);
            let evidence = format!("{slowed}, and with {count} hosts {times} times as fast");
            Judgement::fail(evidence, Vec::new())
        }
        Some((count, times)) => {
            let times = three_digits(times);
            Judgement::pass(format!("{slowed}, but with {count} hosts only {times} times as fast"))
        }
        None => Judgement::inconclusive(format!("{slowed}; --link says what a host could take")),
    }
}
