//! Checks that the owner of a directory can do no more to root, who names a path in it, than have
//! the program refuse: links, pipes, devices and names that change meanwhile, for every path of
//! every command, with and without the kernel's protection of links in sticky directories.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Lab, mutations};
use crate::goals::{Column, Goal, Point, Results, column};

const PROTECTION: &str = "/proc/sys/fs/protected_symlinks";

const COLUMNS: &[Column] = &[
    column("paths", "paths", 0),
    column("cells", "cells", 0),
    column("touched", "victims\ntouched", 0),
    column("disclosed", "victims\ndisclosed", 0),
    column("opened", "led to\nvictims", 0),
    column("panics", "panics", 0),
    column("aborts", "aborts", 0),
    column("hangs", "hangs", 0),
    column("odd", "else", 0),
    column("seconds", "\nseconds", 1),
];

/// Extent of the test; these columns have no goal.
const COUNTS: &[&str] = &["paths", "cells", "seconds"];

pub fn run(lab: &Lab) -> Result<Results> {
    let mut points = Vec::new();
    for protection in ["0", "1"] {
        lab.interrupt.check()?;
        let _set = Protection::set(protection)?;
        let lines = mutations::document(&["attacks"])?;
        points.extend(lines.iter().map(|line| point(line, protection)));
    }
    let goals = COLUMNS.iter().enumerate().filter(|(_, column)| !COUNTS.contains(&column.name));
    let sum = |place: usize| points.iter().map(|point: &Point| point.values[place]).sum();
    let mut goals: Vec<Goal> =
        goals.map(|(place, column)| Goal::at_most(column.name, sum(place), 0.0)).collect();
    goals.insert(0, Goal::at_least("cells", sum(1), 1.0));
    Ok(Results { columns: COLUMNS, points, goals })
}

fn point(line: &Value, protection: &str) -> Point {
    let class = line["class"].as_str().unwrap_or_default();
    let values = COLUMNS.iter().map(|column| line[column.name].as_f64().unwrap_or(f64::NAN));
    Point { name: format!("{class}, protected {protection}"), values: values.collect() }
}

/// Setting of the kernel's protection of links in sticky directories; restored on drop.
struct Protection {
    before: String,
}

impl Protection {
    fn set(value: &str) -> Result<Self> {
        let path = Path::new(PROTECTION);
        let before = fs::read_to_string(path).with_context(|| format!("read {PROTECTION}"))?;
        fs::write(path, value).with_context(|| format!("write {PROTECTION}"))?;
        Ok(Self { before })
    }
}

impl Drop for Protection {
    fn drop(&mut self) {
        if let Err(error) = fs::write(PROTECTION, &self.before) {
            eprintln!("write {} to {PROTECTION}: {error}", self.before.trim());
        }
    }
}
