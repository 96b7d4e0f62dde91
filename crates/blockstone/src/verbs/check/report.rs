//! The report of one check, or of all.

use blockstone_base::direct::OpenFile;
use blockstone_base::verdict::Verdict;
use blockstone_record::manifest::End;
use blockstone_report::render::json;
use blockstone_report::{Headline, Report, Tone};
use schemars::JsonSchema;
use serde::Serialize;

use super::part::{CellKeys, Part};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The keys of the document.
#[derive(Serialize, JsonSchema)]
pub struct CheckDocument<'a> {
    tool_version: &'static str,
    /// The path, process or server.
    subject: &'a str,
    /// The answer in words.
    answer: &'a str,
    end: &'a End,
    cells: &'a [CellKeys],
    /// Open files of a process; empty for a path.
    files: &'a [OpenFile],
    verdicts: &'a [Verdict],
}

pub fn report(parts: Vec<Part>) -> Report {
    let mut report = Report {
        verb: "check".into(),
        version: 1,
        tool_version: VERSION.to_owned(),
        ..Report::default()
    };
    let (mut cells, mut files, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    let mut headline = Headline::default();
    for part in parts {
        headline.subject = part.subject;
        headline.tone = worse(headline.tone, part.tone);
        answers.push(part.answer);
        report.identity.extend(part.identity);
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
    headline.text = answers.join("; ");
    report.document = json::keys(CheckDocument {
        tool_version: VERSION,
        subject: &headline.subject,
        answer: &headline.text,
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
