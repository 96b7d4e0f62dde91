//! Outcomes of expectations as JUnit XML, which CI servers show. A limit that is not established
//! is an error there, so that it never passes.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::terminal::visible;
use crate::ReportError;
use crate::expected::Outcome;
use crate::report::Report;

const TEMPLATE: &str = include_str!("../../templates/junit.xml.j2");

#[derive(Serialize)]
struct Suite {
    verb: String,
    subject: String,
    failures: usize,
    errors: usize,
    cases: Vec<Case>,
}

#[derive(Serialize)]
struct Case {
    name: String,
    outcome: Outcome,
    measured: String,
    why: String,
}

/// Returns the document of the expectations of a report.
pub fn document(report: &Report) -> Result<String, ReportError> {
    let count = |outcome| report.expectations.iter().filter(|it| it.outcome == outcome).count();
    let cases = report.expectations.iter().map(|it| Case {
        name: shown(&it.to_string()),
        outcome: it.outcome,
        measured: shown(&it.measured()),
        why: shown(it.why.as_deref().unwrap_or_default()),
    });
    let suite = Suite {
        verb: report.verb.to_string(),
        subject: shown(&report.headline.subject),
        failures: count(Outcome::Fail),
        errors: count(Outcome::NotEstablished),
        cases: cases.collect(),
    };
    let fail = |source| ReportError::Template { template: "junit.xml", source };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(syntax.map_err(fail)?);
    environment.add_template("junit.xml", TEMPLATE).map_err(fail)?;
    let template = environment.get_template("junit.xml").map_err(fail)?;
    let suite = Value::from(Serde(&suite));
    template.render(minijinja::context! { suite }).map(|text| text + "\n").map_err(fail)
}

/// Returns a text without characters that XML does not allow.
fn shown(text: &str) -> String {
    visible(text, false).into_owned()
}
