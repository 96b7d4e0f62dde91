//! Listings of `GV$SYSSTAT` as SQL*Plus prints them and people paste them: a line for each
//! statistic with its value, and in front of it, or between them, the instance. Without that, the
//! nth line of a statistic is the nth instance. A query between two listings is a run.

use std::collections::BTreeMap;

use crate::error::CountersError;
use crate::statistics::{is_bytes, normal};

/// A row of the table that a listing stands for.
pub(crate) struct Listed {
    pub line: usize,
    pub run: String,
    pub time: String,
    pub instance: String,
    pub statistic: String,
    pub value: String,
}

struct Entry<'a> {
    line: usize,
    instance: Option<&'a str>,
    statistic: String,
    value: &'a str,
}

/// One listing, and how long the query after it took.
#[derive(Default)]
struct Listing<'a> {
    entries: Vec<Entry<'a>>,
    elapsed_s: Option<f64>,
}

/// Returns the rows of a text that has such listings; `None` if it is something else.
pub(crate) fn rows(text: &str) -> Option<Result<Vec<Listed>, CountersError>> {
    let listings = listings(text);
    let is_one = listings.iter().flat_map(|it| &it.entries).any(|it| it.statistic.contains(" io "));
    is_one.then(|| of_listings(&listings))
}

fn of_listings(listings: &[Listing<'_>]) -> Result<Vec<Listed>, CountersError> {
    let mut rows = Vec::new();
    let pairs: Vec<&[Listing<'_>]> = listings.windows(2).collect();
    // A single listing is refused as what it is: one snapshot.
    let pairs = if pairs.is_empty() { vec![listings] } else { pairs };
    for (pair, number) in pairs.iter().zip(1..) {
        let run = if pairs.len() > 1 { number.to_string() } else { String::new() };
        let elapsed_s = pair[0].elapsed_s;
        for (listing, is_last) in pair.iter().zip([false, true]) {
            let time = match (elapsed_s, is_last) {
                (Some(_), false) => "0".to_owned(),
                (Some(seconds), true) => seconds.to_string(),
                (None, false) => "before".to_owned(),
                (None, true) => "after".to_owned(),
            };
            let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
            for Entry { line, instance, statistic, value } in &listing.entries {
                if value.parse::<f64>().is_err() || value.contains(['e', 'E']) {
                    return Err(CountersError::Rounded { line: *line, text: (*value).to_owned() });
                }
                let count = seen.entry(statistic).or_default();
                *count += 1;
                rows.push(Listed {
                    line: *line,
                    run: run.clone(),
                    time: time.clone(),
                    instance: instance.map_or_else(|| count.to_string(), str::to_owned),
                    statistic: statistic.clone(),
                    value: (*value).to_owned(),
                });
            }
        }
    }
    Ok(rows)
}

/// Splits a text into listings: runs of entries, with nothing but headings and blank lines between
/// them.
fn listings(text: &str) -> Vec<Listing<'_>> {
    let mut all: Vec<Listing<'_>> = Vec::new();
    let (mut is_open, mut is_asked) = (false, false);
    for (line, number) in text.lines().zip(1..) {
        if let Some(entry) = entry(line, number) {
            if !is_open {
                all.push(Listing::default());
                (is_open, is_asked) = (true, false);
            }
            if let Some(listing) = all.last_mut() {
                listing.entries.push(entry);
            }
            continue;
        }
        if is_heading(line) {
            continue;
        }
        is_open = false;
        // The time of the listing itself comes before the next prompt.
        is_asked |= line.trim_start().starts_with("SQL>");
        if let Some(seconds) = elapsed(line).filter(|_| is_asked)
            && let Some(listing) = all.last_mut()
        {
            listing.elapsed_s = Some(seconds);
        }
    }
    all
}

fn is_heading(line: &str) -> bool {
    let line = line.trim();
    let is_rule = line.chars().all(|c| c == '-' || c == ' ');
    is_rule || line.split_whitespace().any(|word| word.eq_ignore_ascii_case("name"))
}

fn entry(line: &str, number: usize) -> Option<Entry<'_>> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let value = words.pop()?;
    let is_whole = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let overflows = value.bytes().all(|byte| byte == b'#');
    value.parse::<f64>().ok().filter(|it| it.is_finite()).or(overflows.then_some(0.0))?;
    let instance = if words.first().is_some_and(is_whole) {
        Some(words.remove(0))
    } else if words.last().is_some_and(is_whole) {
        words.pop()
    } else {
        None
    };
    let is_word =
        |word: &&str| word.bytes().all(|b| b.is_ascii_alphabetic() || b"*():'-".contains(&b));
    let statistic = normal(&words.join(" "));
    let is_known = is_bytes(&statistic) || statistic == normal("CPU used by this session");
    (words.len() > 1 && words.iter().all(is_word) && is_known).then_some(Entry {
        line: number,
        instance,
        statistic,
        value,
    })
}

/// Parses `Elapsed: 00:01:43.31`.
fn elapsed(line: &str) -> Option<f64> {
    let time = line.trim().strip_prefix("Elapsed:")?.trim();
    let mut seconds = 0.0;
    for part in time.split(':') {
        seconds = seconds * 60.0 + part.parse::<f64>().ok().filter(|it| (0.0..1e6).contains(it))?;
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use crate::{Unit, counters};

    const BLOCK: [&str; 3] = [
        "physical IO disk bytes",
        "cell physical IO bytes eligible for predicate offload",
        "cell physical IO interconnect bytes",
    ];

    /// A listing of instances, each with three values, as SQL*Plus shows them.
    fn listing(numbered: bool, instances: &[[f64; 3]]) -> String {
        let mut text =
            "NAME                              VALUE\n-------------- ----------\n".to_owned();
        for (instance, values) in (1..).zip(instances) {
            for (name, value) in BLOCK.iter().zip(values) {
                let number = if numbered { format!("{instance:10} ") } else { String::new() };
                text.extend([format!("{number}{name:60} {value:>12}\n")]);
            }
        }
        text + "\n6 rows selected.\n\nElapsed: 00:00:00.02\n"
    }

    const BEFORE: [[f64; 3]; 2] = [[100.5, 90.0, 50.0], [20.0, 15.0, 10.0]];
    const AFTER: [[f64; 3]; 2] = [[1100.5, 1080.0, 60.0], [1020.0, 1005.0, 20.0]];

    #[test]
    fn two_listings_with_a_query_between_them_are_a_run() {
        let query = "SQL> select count(*) from all_card_trans;\n\n  COUNT(*)\n----------\n\
                     \x20       77\n\nElapsed: 00:01:43.50\n\nSQL> @stats\n";
        for numbered in [false, true] {
            let text = listing(numbered, &BEFORE) + query + &listing(numbered, &AFTER);
            let read = counters::read(&text, Unit::Gib).unwrap();
            let run = &read.ledgers[0];
            assert_eq!((run.read_bytes, run.wire_bytes), (2000 << 30, Some(20 << 30)), "{text}");
            assert_eq!((run.seconds, run.hosts), (Some(103.5), Some(2)));
        }
    }

    #[test]
    fn each_further_listing_ends_another_run() {
        let more = AFTER.map(|values| values.map(|value| value * 2.0));
        let query = "SQL> @query\nSQL> @stats\n";
        let text = [BEFORE, AFTER, more].map(|it| listing(true, &it)).join(query);
        let read = counters::read(&text, Unit::Gib).unwrap();
        let names: Vec<&str> = read.ledgers.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["1", "2"]);
        assert_eq!(read.ledgers[0].seconds, None, "the time of the listing is not that of the run");
    }

    #[test]
    fn what_is_rounded_or_only_once_there_is_refused() {
        let one = listing(false, &BEFORE);
        let refused = |text: &str| counters::read(text, Unit::Bytes).unwrap_err().to_string();
        assert!(refused(&one).contains("one snapshot only"), "{}", refused(&one));
        for odd in ["1.2889E+10", "##########"] {
            let text = one.replace("100.5", odd);
            assert!(refused(&text).contains(&format!("line 3: {odd} is rounded")), "{text}");
        }
        assert!(refused("no listing 5\n").contains("column"), "it is a CSV without its columns");
    }
}
