//! Runs the tests and accounts for them: what ran, what was skipped and why. On every run, a canary
//! that must fail shows that failures are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use blockstone_testkit::{FAST_VARIABLE, SKIP_LOG_VARIABLE, TIME_LOG_VARIABLE};
use serde_json::Value;

use crate::packages;
use crate::workspace::{cargo, line, output_of, scratch, show};

/// Variable that makes the canary fail.
const CANARY_VARIABLE: &str = "BLOCKSTONE_CANARY";

/// Tests that need only a processor and a temporary directory.
const FAST: &[&str] = &["--lib", "--bins", "--test", "recordings"];

/// Variable that sets how many tests of a program run at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// The program that has the machine for itself, since some of its tests measure the machine. Each
/// test takes a turn: `end_to_end/turn.rs`. All are started together, so that those that share the
/// machine do so while any are left, and those that want it for themselves come last.
const ALONE: (&str, &str) = ("end_to_end", "1000");

/// Programs whose tests mostly wait, for servers that start and sessions that sleep, and how many
/// tests of one run at a time. They run beside the others, which compute.
const WAITING: (&[&str], &str) = (&["monitor", "contract", "database", "pages"], "4");

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

/// Tests of the workspace that are run by one call of cargo.
struct Tests<'a> {
    /// Names its logs.
    name: &'a str,
    arguments: Vec<&'a str>,
    filter: Option<&'a str>,
    variables: &'a [(&'a str, &'a str)],
}

/// Destination of what cargo and the tests print.
enum Lines<'a> {
    Printed,
    /// Kept apart, since it would mix with that of another call.
    Kept(&'a mut String),
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let filter = options.filter.as_deref();
    let account = if options.fast {
        let variables = &[(FAST_VARIABLE, "1")];
        Tests { name: "fast", arguments: FAST.to_vec(), filter, variables }.run(Lines::Printed)?
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
    let metadata = output_of(&mut cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata = serde_json::from_str(&metadata).context("read cargo's metadata")?;
    let mut others = test_programs(&metadata);
    let (alone, waiting) = (ALONE.0, WAITING.0);
    for name in waiting.iter().chain([&alone]) {
        ensure!(others.remove(name), "no test program is named {name}");
    }
    let (alone_threads, waiting_threads) = ([(THREADS, ALONE.1)], [(THREADS, WAITING.1)]);
    let alone =
        Tests { name: "alone", arguments: programs([alone]), filter, variables: &alone_threads };
    let arguments = programs(waiting.iter().copied());
    let waiting = Tests { name: "waiting", arguments, filter, variables: &waiting_threads };
    let arguments = [vec!["--lib", "--bins"], programs(others)].concat();
    let others = Tests { name: "others", arguments, filter, variables: &[] };
    let mut account = alone.run(Lines::Printed)?;
    // Built before the two calls start, because one would wait for the other's lock.
    show(others.command().args(&waiting.arguments).arg("--no-run"))?;
    let mut kept = String::new();
    let (waiting, others) = thread::scope(|scope| {
        let waiting = scope.spawn(|| waiting.run(Lines::Kept(&mut kept)));
        (waiting.join(), others.run(Lines::Printed))
    });
    print!("{kept}");
    account.add(others?);
    account.add(waiting.map_err(|_| anyhow!("the thread of the waiting tests panicked"))??);
    Ok(account)
}

/// Returns the arguments that choose test programs by name.
fn programs<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    names.into_iter().flat_map(|name| ["--test", name]).collect()
}

/// Returns the names of the programs in the `tests` folders of all packages.
fn test_programs(metadata: &Value) -> BTreeSet<&str> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    targets.filter(|it| it["kind"][0] == "test").filter_map(|it| it["name"].as_str()).collect()
}

pub fn doctests(filter: Option<&str>) -> Result<Account> {
    Tests { name: "doctests", arguments: vec!["--doc"], filter, variables: &[] }.run(Lines::Printed)
}

/// Makes a test fail, and returns an error unless the failure is reported.
fn canary() -> Result<()> {
    let variables = &[(CANARY_VARIABLE, "1")];
    let canary = Tests { name: "canary", arguments: programs(["canary"]), filter: None, variables };
    let account = canary.run(Lines::Kept(&mut String::new()))?;
    ensure!(
        account.failed == 1 && account.passed == 0,
        "the canary had to fail, but the run reports {}; its results cannot be trusted",
        account.closing_line()
    );
    println!("the canary failed as intended: a failing test fails the run");
    Ok(())
}

impl Tests<'_> {
    /// Returns the command without its logs. It always runs on the whole workspace, even for one
    /// test: a selection of packages could select other features and rebuild everything.
    fn command(&self) -> Command {
        let mut command = cargo(["test", "--workspace", "--no-fail-fast"]);
        command.args(&self.arguments);
        command
    }

    /// Runs the tests and counts the results.
    fn run(&self, mut lines: Lines) -> Result<Account> {
        let log = |kind: &str| -> Result<PathBuf> {
            let log = scratch(&format!("{kind}-{}.tsv", self.name))?;
            fs::write(&log, "").with_context(|| format!("write {}", log.display()))?;
            Ok(log)
        };
        let (skipped, times) = (log("skipped")?, log("times")?);
        let (output, input) = io::pipe().context("make a pipe")?;
        let mut command = self.command();
        command.args(self.filter).envs(self.variables.iter().copied());
        command.env(SKIP_LOG_VARIABLE, &skipped).env(TIME_LOG_VARIABLE, &times);
        if let Lines::Kept(_) = lines {
            command.stderr(input.try_clone().context("copy a pipe")?);
        }
        command.stdout(input);
        let mut child = command.spawn().with_context(|| format!("start {}", line(&command)))?;
        // It holds the pipe open.
        drop(command);
        let mut account = Account::default();
        let mut ignored = Vec::new();
        let mut printed = |text: &str| match &mut lines {
            Lines::Printed => println!("{text}"),
            Lines::Kept(kept) => kept.extend([text, "\n"]),
        };
        for text in BufReader::new(output).lines() {
            let text = text.context("read the output of cargo test")?;
            printed(&text);
            if let Some((passed, failed)) = result_line(&text) {
                account.passed += passed;
                account.failed += failed;
            }
            ignored.extend(ignored_test(&text));
        }
        let status = child.wait().context("wait for cargo test")?;
        summary(&times)?.lines().for_each(printed);
        account.skipped = skips(&skipped)?;
        // A test that skips itself returns early, and its harness counts it as passed.
        account.passed = account.passed.saturating_sub(account.skipped.len() as u64);
        account.skipped.extend(ignored);
        if !status.success() && account.failed == 0 {
            account.failed = 1;
        }
        Ok(account)
    }
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

/// Returns lines with the total time of tests that take turns, by kind, and the slowest of them.
fn summary(log: &Path) -> Result<String> {
    let text = fs::read_to_string(log).with_context(|| format!("read {}", log.display()))?;
    let mut times: Vec<(f64, &str, &str)> = text.lines().filter_map(time).collect();
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut sums: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for (seconds, kind, _) in &times {
        let sum = sums.entry(kind).or_default();
        *sum = (sum.0 + seconds, sum.1 + 1);
    }
    let sums = sums
        .iter()
        .map(|(kind, (seconds, tests))| format!("{tests} tests {kind}: {seconds:.0} s in all\n"));
    let longest = times.iter().take(LONGEST);
    let longest =
        longest.map(|(seconds, kind, test)| format!("{seconds:>7.1} s  {kind:<6} {test}\n"));
    Ok(sums.chain(longest).collect())
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
