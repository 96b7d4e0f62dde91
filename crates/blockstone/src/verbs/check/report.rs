//! The report of one check or of several.

use blockstone_base::rows;
use blockstone_base::table::{Rows as _, text};
use blockstone_record::manifest::End;
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Headline, Report, Section, Tone};

use super::answer::CheckAnswer;
use super::earlier;

rows! {
    /// Single figures of the document.
    pub(super) struct Summary {
        /// The check, as in `blockstone check CHECK`; `all` for several.
        check: &'static str = text("check"),
        /// The path, process or server that was checked.
        subject: String = text("subject"),
        /// The answer as a sentence.
        answer: String = text("answer").prose(),
    }
}

rows! {
    /// Answers of several checks.
    struct AnswerRow {
        /// The check, as in `blockstone check CHECK`.
        check: &'static str = text("check"),
        /// Its answer as a sentence.
        answer: String = text("answer").prose(),
    }
}

pub const TABLES: Tables = &[("answers", AnswerRow::COLUMNS)];

/// Builds the report of the named checks. The identity of several is that of the first, because the
/// others are made in the same place.
pub fn report(parts: Vec<(&'static str, CheckAnswer)>) -> Report {
    let mut report = Report { verb: "check".into(), version: 2, ..Report::default() };
    let (mut answers, mut noted) = (Vec::new(), Vec::new());
    let mut headline = Headline::default();
    for (check, part) in parts {
        headline.subject = part.subject;
        headline.tone = worse(headline.tone, part.tone);
        if part.tone != Tone::Plain {
            noted.push(check);
        }
        answers.push(AnswerRow { check, answer: part.answer });
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
    }
    let check = match &answers[..] {
        [one] => {
            headline.text.clone_from(&one.answer);
            one.check
        }
        several => {
            headline.text = summary(several.len(), &noted);
            let table = AnswerRow::table("answers", "Answers", answers);
            report.sections.insert(0, Section::of("answers", table));
            "all"
        }
    };
    let (subject, answer) = (headline.subject.clone(), headline.text.clone());
    let scalars = Summary::table("check", "Check", [Summary { check, subject, answer }]);
    Report { headline, scalars: Some(scalars), earlier: Some(earlier::keys), ..report }
}

/// Counts the checks that need attention.
fn summary(all: usize, noted: &[&str]) -> String {
    if noted.is_empty() {
        return format!("{all} checks, none needs attention");
    }
    let need = if noted.len() == 1 { "needs" } else { "need" };
    format!("{} of {all} checks {need} attention: {}", noted.len(), noted.join(", "))
}

fn worse(a: Tone, b: Tone) -> Tone {
    match (a, b) {
        (Tone::Bad, _) | (_, Tone::Bad) => Tone::Bad,
        (Tone::Warning, _) | (_, Tone::Warning) => Tone::Warning,
        _ => Tone::Plain,
    }
}
