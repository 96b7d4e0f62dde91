//! docs/views.md, generated from the registry.

use std::fmt::Write;

use crate::registry;
use crate::table::Measure;

/// Returns the page, ending in one newline. `cargo xtask` writes it and checks that it is current.
pub fn views_page() -> String {
    let mut page = String::from(INTRODUCTION);
    for view in registry::ALL {
        let (name, title, doc, probe) = (view.name, view.title, view.doc, view.probe);
        let heading = "| key | heading | unit | meaning |\n|---|---|---|---|\n";
        let _ = write!(page, "\n## {name}\n{title}. {doc} From the probe `{probe}`.\n\n{heading}");
        for column in view.columns {
            let measure = match column.measure {
                Measure::Flag => "yes or no",
                Measure::Text => "text",
                Measure::Count => "count",
                Measure::Bytes => "bytes",
                Measure::BytesPerS => "bytes/s",
                Measure::Nanoseconds => "ns",
                Measure::Share => "share of 1",
                Measure::Ratio | Measure::ToOne => "ratio",
                Measure::OfRow => "as the row says",
            };
            let (key, heading, doc) = (&column.key, &column.heading, &column.doc);
            let _ = writeln!(page, "| `{key}` | {heading} | {measure} | {doc} |");
        }
    }
    page
}

const INTRODUCTION: &str = "\
# Views
<!-- Generated from the views of crates/view by `cargo xtask generate`. -->

A view is a table of figures derived from what the probes recorded between two ticks. It is a pane
of the live view, a table of `watch --once`, and an array below `views` of a `--json` document, with
the keys listed here. A cell is a number in the unit of its column, or a text. It is empty (`–`; in
JSON `nothing happened`) if nothing happened that it could describe. If it is missing, it gives the
reason: `off`, not in this version (`n/v`), not permitted (`n/p`), unknown (`?`) because the object
appeared, disappeared or was reset during the interval, or no evidence (`n/e`) because it could not
be read or other counters contradict it.

Where several databases are watched ([instances](instances.md)), a table about a database has the
column `instance` before all others.

Tables made of session samples can be filtered: `--where event=DataFileRead` uses only samples in
that wait, `--where session=4711` only those of that session; if several conditions are given, all
must hold. `snapper` has the sessions of these samples. The columns are those of the probe
`session`, `session` for the session id and `instance` for the database; for `blockers`, one of the
blockers must match. In the live view, Enter filters by the selected row.

`blockstone compare A B` compares the views of two recordings or parts of their time, and `compare
A… --with B…` those of two sets. A figure is the mean over slices of each part; its interval comes
from their variation, and, with several recordings on a side, also from the variation between them.
";
