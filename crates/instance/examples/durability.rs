//! Explores lives of the instance on hostile disks, and looks for bugs planted in it. `cargo xtask
//! lab durability` runs it in the optimised profile; its output is one JSON document.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a command")]

use std::path::PathBuf;
use std::time::Instant;

use blockstone_instance::testing::{
    Case, Effort, Failure, Planted, Setting, campaign, hunt, shrink,
};

const THREADS: usize = 8;

struct Arguments(Vec<String>);

impl Arguments {
    fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, name: &str, default: u64) -> u64 {
        self.text(name).map_or(default, |text| text.parse().expect("a number"))
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|argument| argument == name)
    }
}

fn main() {
    let arguments = Arguments(std::env::args().collect());
    if let Some(path) = arguments.text("--case") {
        return replay(path);
    }
    if arguments.has("--mutations") {
        return mutations(&arguments);
    }
    let first = arguments.number("--first", 0);
    let seeds = arguments.number("--seeds", 20);
    let effort = if arguments.has("--short") { Effort::SHORT } else { Effort::LONG };
    let mut lines = Vec::new();
    for setting in Setting::ALL {
        if arguments.text("--setting").is_some_and(|name| name != setting.name()) {
            continue;
        }
        let start = Instant::now();
        let (tally, failures) = campaign(setting, first..first + seeds, effort, THREADS);
        let seconds = start.elapsed().as_secs_f64();
        for failure in &failures {
            tell(setting, failure);
        }
        let line = format!(
            "{{\"setting\":\"{}\",\"seeds\":{seeds},\"seconds\":{seconds:.1},\"failures\":{},\
             \"lives\":{},\"acknowledged\":{},\"images\":{},\"recoveries\":{},\
             \"recovery_cuts\":{},\"cut_everywhere\":{},\"damaged\":{},\"refused\":{}}}",
            setting.name(),
            failures.len(),
            tally.lives,
            tally.acknowledged,
            tally.images,
            tally.recoveries,
            tally.recovery_cuts,
            tally.cut_everywhere,
            tally.damaged,
            tally.refused
        );
        eprintln!("{line}");
        lines.push(line);
    }
    println!("[{}]", lines.join(","));
}

/// Shrinks the case, saves it and prints its story.
fn tell(setting: Setting, failure: &Failure) {
    let Failure { seed, case, violation } = failure;
    eprintln!("{}, seed {seed}: {} events; {violation}", setting.name(), case.cut.cut);
    let (small, violation) = shrink(case, violation);
    let name = format!("blockstone-{}-{seed}.case", setting.name().replace('/', "-"));
    let path: PathBuf = std::env::temp_dir().join(name);
    std::fs::write(&path, small.to_text()).expect("a case is kept");
    std::fs::write(path.with_extension("list"), case.listing()).expect("a listing is kept");
    eprintln!("{}replay: BLOCKSTONE_CASE={} \\", small.story(&violation), path.display());
    eprintln!("  cargo test -p blockstone-instance --test instance replay\n");
}

fn replay(path: &str) {
    let text = std::fs::read_to_string(path).expect("a case to read");
    let case = Case::from_text(&text).expect("a case");
    match case.run() {
        Ok(_) => println!("it ends well"),
        Err(violation) => println!("{}{}", case.listing(), case.story(&violation)),
    }
}

fn mutations(arguments: &Arguments) {
    let seeds = arguments.number("--seeds", 500);
    let effort = if arguments.has("--short") { Effort::SHORT } else { Effort::LONG };
    let mut lines = Vec::new();
    for &bug in Planted::ALL {
        if arguments.text("--bug").is_some_and(|name| !format!("{bug:?}").contains(name)) {
            continue;
        }
        let start = Instant::now();
        let found = hunt(bug, seeds, effort, THREADS);
        let seconds = start.elapsed().as_secs_f64();
        let (seed, by) = match &found {
            Some(found) => {
                let by = format!("{}, {}", found.setting.name(), found.violation.oracle);
                (found.seed.to_string(), by)
            }
            None => ("null".to_owned(), "not found".to_owned()),
        };
        let line = format!(
            "{{\"bug\":\"{}\",\"seed\":{seed},\"by\":\"{by}\",\"seconds\":{seconds:.1}}}",
            bug.name()
        );
        eprintln!("{line}");
        lines.push(line);
    }
    println!("[{}]", lines.join(","));
}
