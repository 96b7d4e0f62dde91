//! Reasons for empty cells, in words.

use blockstone_base::column::Unmeasured;
use blockstone_figures::Interval;

/// Maximum number of columns listed with a reason.
const NAMED: usize = 4;

/// Returns why columns of a probe are empty: a line for each reason, with the columns.
pub fn reasons(interval: &Interval<'_>, probe: &str) -> Vec<String> {
    interval.reasons(probe).iter().map(|(why, columns)| line(why, columns)).collect()
}

fn line(why: &Unmeasured, columns: &[&str]) -> String {
    let text = match why {
        // The text already names what was not imported.
        Unmeasured::NotInVersion(text) if why.is_not_imported() => return format!("n/v, {text}"),
        Unmeasured::NotInVersion(text) => format!("n/v, not in this version: {text}"),
        Unmeasured::Off(text) => format!("off: {text}"),
        Unmeasured::NotPermitted(text) => format!("n/p, not permitted: {text}"),
        Unmeasured::NoEvidence(text) => format!("n/e, no evidence: {text}"),
    };
    let named: Vec<String> =
        columns.iter().take(NAMED).map(|name| name.replace('_', " ")).collect();
    match columns.len().saturating_sub(NAMED) {
        _ if columns.is_empty() => text,
        0 => format!("{text} ({})", named.join(", ")),
        more => format!("{text} ({} and {more} more)", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_of_which_columns() {
        let why = Unmeasured::NotInVersion("the server keeps no count of it".to_owned());
        let none = "n/v, not in this version: the server keeps no count of it";
        assert_eq!(line(&why, &[]), none);
        assert_eq!(
            line(&why, &["redo_records", "parses"]),
            format!("{none} (redo records, parses)")
        );
        let more = format!("{none} (a, b, c, d and 1 more)");
        assert_eq!(line(&why, &["a", "b", "c", "d", "e"]), more);
    }
}
