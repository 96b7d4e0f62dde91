//! Everything that must hold before a change lands, step by step, up to the first failure.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::test::{self, Account};
use crate::workspace::{cargo, show};
use crate::{format, fuzz, generate, packages, supply, tidy};

type Step = (&'static str, fn(&mut Account) -> Result<()>);

const STEPS: &[Step] = &[
    ("format", |_| format::check()),
    ("tidy", |_| tidy::check()),
    ("supply", supply::check),
    ("lint", |_| {
        show(cargo(["clippy", "--workspace", "--all-targets"]).args(["--", "-D", "warnings"]))
    }),
    ("script", |_| tidy::script::check()),
    ("packages", |_| packages::provide(true)),
    ("tests", |account| count(account, test::tests(None)?)),
    ("doctests", |account| count(account, test::doctests(None)?)),
    ("fuzz", |_| fuzz::check()),
    ("generated", |account| {
        account.skipped.extend(generate::check()?);
        Ok(())
    }),
];

pub fn run() -> ExitCode {
    let mut account = Account::default();
    let mut seconds = Vec::new();
    let mut failure = None;
    for (name, step) in STEPS {
        println!("── {name}");
        let start = Instant::now();
        let done = step(&mut account);
        seconds.push((name, start.elapsed().as_secs_f64()));
        if let Err(error) = done {
            failure = Some((name, error));
            break;
        }
    }
    println!("── seconds");
    for (name, seconds) in seconds {
        println!("{name:<10} {seconds:>7.1}");
    }
    account.print();
    if let Some((name, error)) = &failure {
        println!("ci: {name} failed: {error:#}");
    }
    println!("{}", account.closing_line());
    if failure.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn count(total: &mut Account, part: Account) -> Result<()> {
    let failed = part.failed;
    total.add(part);
    if failed > 0 {
        bail!("{failed} failed");
    }
    Ok(())
}
