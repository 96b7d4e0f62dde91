//! The matrix in the format of Orion's files: a line for each number of large reads in flight, a
//! column for each number of small ones.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_judge::findings::Findings;

use super::select::{self, MatrixCell};

type Cells = BTreeMap<(u32, u32), f64>;

/// Returns the files by name: small reads per second, decimal megabytes per second of large reads,
/// and the mean latency of small reads in microseconds. A point that is condemned or was not
/// measured has an empty cell; `None` if that is every one.
pub fn files(findings: &Findings) -> Option<[(&'static str, String); 3]> {
    let (mut iops, mut mbps, mut latency) = (Cells::new(), Cells::new(), Cells::new());
    for MatrixCell { small, large, point, large_mb_per_s } in select::matrix(findings) {
        if !point.condemned_by.is_empty() {
            continue;
        }
        if small > 0 {
            iops.insert((large, small), point.iops.value);
            latency.insert((large, small), point.latency.ns_mean.value / 1e3);
        }
        if let Some(rate) = large_mb_per_s.filter(|_| large > 0) {
            mbps.insert((large, small), rate.value);
        }
    }
    let has_any = !iops.is_empty() || !mbps.is_empty();
    let files =
        [("iops.csv", csv(&iops, 0)), ("mbps.csv", csv(&mbps, 2)), ("lat.csv", csv(&latency, 2))];
    has_any.then_some(files)
}

fn csv(cells: &Cells, digits: usize) -> String {
    let larges: BTreeSet<u32> = cells.keys().map(|(large, _)| *large).collect();
    let smalls: BTreeSet<u32> = cells.keys().map(|(_, small)| *small).collect();
    let line = |first: &str, rest: Vec<String>| {
        let cells = std::iter::once(first.to_owned()).chain(rest).collect::<Vec<_>>();
        format!("{}\n", cells.join(","))
    };
    let heading = line("Large/Small", smalls.iter().map(ToString::to_string).collect());
    let lines = larges.iter().map(|large| {
        let cell = |small: &u32| {
            let value = cells.get(&(*large, *small));
            value.map_or_else(String::new, |value| format!("{value:.digits$}"))
        };
        line(&large.to_string(), smalls.iter().map(cell).collect())
    });
    std::iter::once(heading).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_an_empty_cell() {
        let cells = Cells::from([((0, 1), 100.4), ((0, 4), 350.0), ((2, 4), 90.0)]);
        assert_eq!(csv(&cells, 0), "Large/Small,1,4\n0,100,350\n2,,90\n");
        assert_eq!(csv(&Cells::new(), 2), "Large/Small\n");
    }
}
