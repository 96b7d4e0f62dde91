//! The report of one check or of several.

use blockstone_base::verdict::Verdict;
use blockstone_check::direct::findings::OpenFile;
use blockstone_record::manifest::End;
use blockstone_report::render::json;
use blockstone_report::{Headline, Report, Section, Tone};
use schemars::JsonSchema;
use serde::Serialize;

use super::part::{CellKeys, Part};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The keys of the document.
#[derive(Serialize, JsonSchema)]
pub struct CheckDocument<'a> {
    tool_version: &'static str,
    /// The path, process or server that was checked.
    subject: &'a str,
    /// The answer as a sentence.
    answer: &'a str,
    answers: &'a [AnswerKeys],
    end: &'a End,
    cells: &'a [CellKeys],
    /// Open files of the process; empty for a path.
    files: &'a [OpenFile],
    verdicts: &'a [Verdict],
}

/// Answer of one check.
#[derive(Serialize, JsonSchema)]
struct AnswerKeys {
    /// The check, as in `blockstone check CHECK`.
    check: &'static str,
    answer: String,
}

/// Builds the report of the named checks. The identity of several is that of the first, because the
/// others are made in the same place.
pub fn report(parts: Vec<(&'static str, Part)>) -> Report {
    let mut report = Report { verb: "check".into(), version: 1, ..Report::default() };
    let (mut cells, mut files, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    let mut noted = Vec::new();
    let mut headline = Headline::default();
    for (check, part) in parts {
        headline.subject = part.subject;
        headline.tone = worse(headline.tone, part.tone);
        if part.tone != Tone::Plain {
            noted.push(check);
        }
        answers.push(AnswerKeys { check, answer: part.answer });
        if report.identity.is_empty() {
            report.identity = part.identity;
        }
        report.sections.extend(part.sections);
        report.verdicts.extend(part.verdicts);
        report.notes.extend(part.notes);
        report.partial |= part.partial;
        if part.signal.is_some() {
            report.end = End::by(part.signal.as_deref());
        }
        cells.extend(part.cells);
        files.extend(part.files);
    }
    headline.text = match &answers[..] {
        [one] => one.answer.clone(),
        several => {
            let lines = several.iter().map(|it| format!("{} · {}", it.check, it.answer));
            report.sections.insert(0, Section::new("answers", "Answers").with(lines));
            match several.len() {
                all if noted.is_empty() => format!("{all} checks, none needs attention"),
                all => {
                    let names = noted.join(", ");
                    let need = if noted.len() == 1 { "needs" } else { "need" };
                    format!("{} of {all} checks {need} attention: {names}", noted.len())
                }
            }
        }
    };
    report.document = json::keys(CheckDocument {
        tool_version: VERSION,
        subject: &headline.subject,
        answer: &headline.text,
        answers: &answers,
        end: &report.end,
        cells: &cells,
        files: &files,
        verdicts: &report.verdicts,
    });
    Report { headline, ..report }
}

fn worse(a: Tone, b: Tone) -> Tone {
    match (a, b) {
        (Tone::Bad, _) | (_, Tone::Bad) => Tone::Bad,
        (Tone::Warning, _) | (_, Tone::Warning) => Tone::Warning,
        _ => Tone::Plain,
    }
}
