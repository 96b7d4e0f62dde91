//! One self-contained page: style, script and data are inside it, and its content-security policy
//! forbids it the network, so it can be mailed, archived and opened years later.

mod charts;
mod compare;
mod difference;
mod flash;
mod identity;
mod reduce;
mod table;
mod watch;

use blockstone_base::verdict::{Outcome, Verdict, Weight};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use crate::ReportError;

pub use compare::page as compare_page;
pub use difference::page as difference_page;
pub use flash::page as flash_page;
pub use reduce::page as reduce_page;
pub use watch::page as watch_page;

const STYLE: &str = include_str!("../templates/report.css");
const SCRIPT: &str = include_str!("../templates/report.js");
const LAYOUT: &str = include_str!("../templates/layout.html.j2");
const COMPARE: &str = include_str!("../templates/compare.html.j2");
const WATCH: &str = include_str!("../templates/watch.html.j2");
const FLASH: &str = include_str!("../templates/flash.html.j2");
const REDUCE: &str = include_str!("../templates/reduce.html.j2");

/// A verdict as the page shows it.
#[derive(Serialize)]
struct Judged {
    /// `fail`, `warn`, `inconclusive` or `pass`: the badge's class.
    class: &'static str,
    /// The badge's text.
    badge: &'static str,
    #[serde(flatten)]
    verdict: Verdict,
}

/// Failures first, the condemning ones before the warnings; then what was not decided.
fn judged(verdicts: &[Verdict]) -> Vec<Judged> {
    let mut judged: Vec<Judged> = verdicts
        .iter()
        .map(|verdict| {
            let (class, badge) = match (verdict.outcome, verdict.weight) {
                (Outcome::Fail, Weight::Condemns) => ("fail", "condemns"),
                (Outcome::Fail, Weight::Warns) => ("warn", "warns"),
                (Outcome::Inconclusive, _) => ("inconclusive", "undecided"),
                (Outcome::Pass, _) => ("pass", "pass"),
            };
            Judged { class, badge, verdict: verdict.clone() }
        })
        .collect();
    let order = ["fail", "warn", "inconclusive", "pass"];
    judged.sort_by_key(|j| order.iter().position(|class| *class == j.class));
    judged
}

/// Fills in one of the templates; everything but the page's own style, script and chart data is
/// escaped.
fn fill(template: &'static str, page: &impl Serialize) -> Result<String, ReportError> {
    let fail = |source| ReportError::Template { template, source };
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    templates.set_syntax(syntax.map_err(fail)?);
    for (name, source) in [
        ("layout.html", LAYOUT),
        ("compare.html", COMPARE),
        ("flash.html", FLASH),
        ("reduce.html", REDUCE),
        ("watch.html", WATCH),
    ] {
        templates.add_template(name, source).map_err(fail)?;
    }
    let rendered = templates.get_template(template).map_err(fail)?.render(minijinja::context! {
        page => Value::from(Serde(page)),
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        library => Value::from_safe_string(charts::library()),
    });
    rendered.map_err(fail)
}
