//! Runs the tests and accounts for them: what ran, what was skipped and why. On every run, a canary
//! that must fail shows that failures are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use blockstone_testkit::{FAST_VARIABLE, SKIP_LOG_VARIABLE, TIME_LOG_VARIABLE};
use serde_json::Value;

use crate::packages;
use crate::workspace::{cargo, line, output_of, scratch};

/// Variable that makes the canary fail.
const CANARY_VARIABLE: &str = "BLOCKSTONE_CANARY";

/// Tests that need only a processor and a temporary directory.
const FAST: &[&str] = &["--lib", "--bins", "--test", "recordings", "--no-fail-fast"];

/// Variable that sets how many tests of a program run at a time.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// Programs whose tests mostly wait, and how many of those run at a time. Other programs run as
/// many tests as there are processors.
const WAITING: &[(&str, &str)] = &[
    // Each takes a turn: end_to_end/turn.rs. All are started together, so that those that share the
    // machine do so while any are left, and those that want it for themselves come last.
    ("end_to_end", "1000"),
    // Servers that start, and sessions that sleep.
    ("monitor", "4"),
];

/// Number of slowest tests printed after a run.
const LONGEST: usize = 30;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Name the packages that the tests need and are missing, instead of installing them
    #[arg(long)]
    no_install: bool,
    /// Only what needs no root, device, server or load: under four minutes
    #[arg(long)]
    fast: bool,
    /// Run only tests whose name contains this
    filter: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Tests that ran to their end and passed.
    pub passed: u64,
    /// Tests that ran and failed; a test program that crashed counts as one.
    pub failed: u64,
    /// Tests that did not run, with the reason.
    pub skipped: Vec<(String, String)>,
}

impl Account {
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
    }

    /// Returns the last line of a run, which machines can parse too.
    pub fn closing_line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped.len())
    }

    /// Prints what ran, what failed, and what was skipped, grouped by reason.
    pub fn print(&self) {
        println!("\nran      {}", self.passed + self.failed);
        println!("failed   {}", self.failed);
        println!("skipped  {}", self.skipped.len());
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (test, reason) in &self.skipped {
            reasons.entry(reason).or_default().push(test);
        }
        for (reason, tests) in reasons {
            println!("  {reason}");
            for test in tests {
                println!("    {test}");
            }
        }
    }
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let filter = options.filter.as_deref();
    let account = if options.fast {
        counted(FAST, filter, &[(FAST_VARIABLE, "1")])?
    } else {
        packages::provide(!options.no_install)?;
        let mut account = tests(filter)?;
        account.add(doctests(filter)?);
        account
    };
    account.print();
    println!("{}", account.closing_line());
    Ok(if account.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the unit and integration tests of the workspace, after the canary.
pub fn tests(filter: Option<&str>) -> Result<Account> {
    canary()?;
    let mut account = Account::default();
    for &(program, threads) in WAITING {
        let arguments = ["--test", program, "--no-fail-fast"];
        account.add(counted(&arguments, filter, &[(THREADS_VARIABLE, threads)])?);
    }
    let metadata = output_of(&mut cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata = serde_json::from_str(&metadata).context("read cargo's metadata")?;
    let programs = test_programs(&metadata);
    let named = |name: &str| programs.contains(name);
    ensure!(WAITING.iter().all(|(name, _)| named(name)), "{WAITING:?} names no test program");
    let others = programs.iter().filter(|name| WAITING.iter().all(|(waiting, _)| waiting != *name));
    let mut arguments = vec!["--lib", "--bins", "--no-fail-fast"];
    arguments.extend(others.flat_map(|name| ["--test", name]));
    account.add(counted(&arguments, filter, &[])?);
    Ok(account)
}

/// Returns the names of the programs in the `tests` folders of all packages.
fn test_programs(metadata: &Value) -> BTreeSet<&str> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    targets.filter(|it| it["kind"][0] == "test").filter_map(|it| it["name"].as_str()).collect()
}

pub fn doctests(filter: Option<&str>) -> Result<Account> {
    counted(&["--doc", "--no-fail-fast"], filter, &[])
}

/// Makes a test fail, and returns an error unless the failure is reported.
fn canary() -> Result<()> {
    let account = counted(&["--quiet", "--test", "canary"], None, &[(CANARY_VARIABLE, "1")])?;
    ensure!(
        account.failed == 1 && account.passed == 0,
        "the canary had to fail, but the run reports {}; its results cannot be trusted",
        account.closing_line()
    );
    println!("the canary failed as intended: a failing test fails the run");
    Ok(())
}

/// Runs `cargo test` on the workspace and counts the results. It always runs on the whole
/// workspace, even for one test: a selection of packages could select other features and rebuild
/// everything.
fn counted(
    arguments: &[&str],
    filter: Option<&str>,
    variables: &[(&str, &str)],
) -> Result<Account> {
    let canary = variables.iter().any(|(name, _)| *name == CANARY_VARIABLE);
    let log = scratch("skipped.tsv")?;
    fs::write(&log, "").with_context(|| format!("write {}", log.display()))?;
    let mut command = cargo(["test", "--workspace"]);
    command.args(arguments).args(filter).stdout(Stdio::piped());
    command.env(SKIP_LOG_VARIABLE, &log).envs(variables.iter().copied());
    let times = scratch("times.tsv")?;
    fs::write(&times, "").with_context(|| format!("write {}", times.display()))?;
    command.env(TIME_LOG_VARIABLE, &times);
    if canary {
        command.stderr(Stdio::null());
    }
    let mut child = command.spawn().with_context(|| format!("start {}", line(&command)))?;
    let output = child.stdout.take().context("its output was piped")?;
    let mut account = Account::default();
    let mut ignored = Vec::new();
    for text in BufReader::new(output).lines() {
        let text = text.context("read the output of cargo test")?;
        if !canary {
            println!("{text}");
        }
        if let Some((passed, failed)) = result_line(&text) {
            account.passed += passed;
            account.failed += failed;
        }
        ignored.extend(ignored_test(&text));
    }
    let status = child.wait().context("wait for cargo test")?;
    print_times(&times)?;
    account.skipped = skips(&log)?;
    // A test that skips itself returns early, and its harness counts it as passed.
    account.passed = account.passed.saturating_sub(account.skipped.len() as u64);
    account.skipped.extend(ignored);
    if !status.success() && account.failed == 0 {
        account.failed = 1;
    }
    Ok(account)
}

/// Parses the numbers of passed and failed tests from a line `test result: ok. 13 passed; 0 failed;
/// …`.
fn result_line(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |name: &str| {
        let mut parts = counts.split("; ");
        parts.find_map(|part| part.strip_suffix(name)?.trim().parse().ok())
    };
    Some((count(" passed")?, count(" failed")?))
}

/// Parses the test and the reason from a line `test some::test ... ignored`. Examples in
/// documentation that are marked as not to be run appear in this way too, and are not tests.
fn ignored_test(line: &str) -> Option<(String, String)> {
    let (test, reason) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    let reason = reason.trim_start_matches(", ");
    let reason = if reason.is_empty() { "marked #[ignore]" } else { reason };
    Some((test.to_owned(), reason.to_owned()))
}

/// Prints the total time of tests that take turns, by kind, and the slowest of them.
fn print_times(log: &Path) -> Result<()> {
    let text = fs::read_to_string(log).with_context(|| format!("read {}", log.display()))?;
    let mut times: Vec<(f64, &str, &str)> = text.lines().filter_map(time).collect();
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut sums: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for (seconds, kind, _) in &times {
        let sum = sums.entry(kind).or_default();
        *sum = (sum.0 + seconds, sum.1 + 1);
    }
    for (kind, (seconds, tests)) in sums {
        println!("{tests} tests {kind}: {seconds:.0} s in all");
    }
    for (seconds, kind, test) in times.iter().take(LONGEST) {
        println!("{seconds:>7.1} s  {kind:<6} {test}");
    }
    Ok(())
}

/// Parses a line of the log of times: kind, seconds, test.
fn time(line: &str) -> Option<(f64, &str, &str)> {
    let mut fields = line.splitn(3, '\t');
    let (kind, seconds, test) = (fields.next()?, fields.next()?, fields.next()?);
    Some((seconds.parse().ok()?, kind, test))
}

fn skips(log: &Path) -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(log).with_context(|| format!("read {}", log.display()))?;
    let pairs = text.lines().filter_map(|line| line.split_once('\t'));
    Ok(pairs.map(|(test, reason)| (test.to_owned(), reason.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_counted_and_others_are_not() {
        let ok = "test result: ok. 13 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(result_line(ok), Some((13, 0)));
        let bad = "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(result_line(bad), Some((2, 3)));
        assert_eq!(result_line("test a::b ... ok"), None);
    }

    #[test]
    fn programs_of_all_packages_are_tested() {
        let metadata = serde_json::json!({"packages": [
            {"targets": [
                {"kind": ["lib"], "name": "a"}, {"kind": ["test"], "name": "contract"},
            ]},
            {"targets": [
                {"kind": ["test"], "name": "contract"}, {"kind": ["test"], "name": "servers"},
            ]},
        ]});
        assert_eq!(test_programs(&metadata), BTreeSet::from(["contract", "servers"]));
    }

    #[test]
    fn an_ignored_test_is_a_skip_with_a_reason() {
        let skip = |test: &str, reason: &str| Some((test.to_owned(), reason.to_owned()));
        assert_eq!(ignored_test("test a::b ... ignored"), skip("a::b", "marked #[ignore]"));
        assert_eq!(ignored_test("test a ... ignored, too slow"), skip("a", "too slow"));
        assert_eq!(ignored_test("test a::ignored ... ok"), None);
    }

    #[test]
    fn the_closing_line_is_plain() {
        let skipped = vec![("a".to_owned(), "zram: none".to_owned())];
        let account = Account { passed: 2, failed: 1, skipped };
        assert_eq!(account.closing_line(), "2 passed, 1 failed, 1 skipped");
    }
}
