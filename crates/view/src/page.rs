//! docs/views.md, generated from the registry.

use std::fmt::Write;

use crate::registry;
use crate::table::Measure;

/// The page, ending in one newline. `cargo xtask` writes it and checks that it is current.
pub fn views_page() -> String {
    let mut page = String::from(INTRODUCTION);
    for view in registry::ALL {
        let (name, title, doc, probe) = (view.name, view.title, view.doc, view.probe);
        let heading = "| key | heading | measure | what |\n|---|---|---|---|\n";
        let _ = write!(page, "\n## {name}\n{title}. {doc} From the probe `{probe}`.\n\n{heading}");
        for column in view.columns {
            let measure = match column.measure {
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

A view is a table that is derived from what probes recorded between two ticks: a pane of the
screen, a table of `watch --once`, an array below `views` of a `--json` document, under these keys.
A cell is a number in the measure of its column, a text, empty (`–`, null) where nothing happened
that it could be about, or it says why it is missing: `off`, not in this version (`n/v`), not
permitted (`n/p`), or unknown (`?`) because the thing came, went or was set back in between.

Tables that are made of samples of sessions can be narrowed down: `--where event=DataFileRead` takes
only samples in that wait, `--where session=4711` only those of that session, and several conditions
all have to hold. Columns are those of the probe `session`, and `session` for its number; of
`blockers`, one of them has to be it. On the screen Enter does the same with the chosen row.

`blockstone compare A B` compares the views of two recordings or parts of their time, and `compare
A… --with B…` those of two sets. A figure is the mean over slices of each part; its interval comes
from their variation, and of several recordings a side also from the variation between them.
";
