//! The figures as cards, with their intervals and what the verdicts say about them.

use serde::Serialize;

use crate::format;
use crate::report::{self, Report};

#[derive(Serialize)]
pub struct Card {
    title: String,
    /// The number; a duration carries its unit here.
    value: String,
    unit: String,
    interval: String,
    plus_minus: String,
    source: String,
    condemned_by: Vec<String>,
    /// Failed rules that concern it without condemning it, except those that concern most figures.
    warned_by: Vec<String>,
}

#[derive(Serialize)]
pub struct Group {
    title: String,
    cards: Vec<Card>,
}

/// With fewer figures than this, each card names its rules itself.
const MANY: usize = 4;

/// Returns failed rules that warn about at least half of the figures, with the number of figures.
/// The page names them once at the top instead of on every card.
pub fn warned(report: &Report) -> Vec<(&str, usize)> {
    let shown: Vec<&str> = names(report).collect();
    let mut rules: Vec<(&str, usize)> = Vec::new();
    for rule in shown.iter().flat_map(|name| report.warned_by(name)) {
        match rules.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, count)) => *count += 1,
            None => rules.push((rule, 1)),
        }
    }
    rules.retain(|(_, count)| *count >= MANY && 2 * count >= shown.len());
    rules
}

/// Returns the names of all figures, without duplicates.
pub fn names(report: &Report) -> impl Iterator<Item = &str> {
    let headline = &report.headline.figures;
    let is_other = |card: &&report::Card| headline.iter().all(|figure| figure.name != card.name);
    headline.iter().chain(report.cards.iter().filter(is_other)).map(|card| &*card.name)
}

/// Returns the figures that answer the question.
pub fn headline(report: &Report) -> Vec<Card> {
    report.headline.figures.iter().map(|figure| card(figure, report)).collect()
}

pub fn groups(report: &Report) -> Vec<Group> {
    let shown = |card: &report::Card| report.headline.figures.iter().any(|f| f.name == card.name);
    let cards: Vec<&report::Card> = report.cards.iter().filter(|card| !shown(card)).collect();
    let groups = cards.chunk_by(|a, b| a.group == b.group).map(|cards| Group {
        title: cards[0].group.to_string(),
        cards: cards.iter().map(|figure| card(figure, report)).collect(),
    });
    groups.collect()
}

fn card(card: &report::Card, report: &Report) -> Card {
    Card {
        title: card.title.to_string(),
        value: format!(
            "{}{}",
            format::sign(&card.estimate),
            format::number(card.estimate.value, &card.unit)
        ),
        unit: match &*card.unit {
            unit if format::is_in_number(unit) => String::new(),
            unit => if card.words.is_empty() { unit } else { &*card.words }.to_owned(),
        },
        interval: format::interval(&card.estimate, &card.unit),
        plus_minus: format::plus_minus(&card.estimate),
        source: card.source.clone(),
        condemned_by: card.condemned_by.clone(),
        warned_by: {
            let everywhere = warned(report);
            let is_own = |rule: &&str| everywhere.iter().all(|(known, _)| known != rule);
            report.warned_by(&card.name).filter(is_own).map(str::to_owned).collect()
        },
    }
}
