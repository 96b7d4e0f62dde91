//! `blockstone check`: what a path, or a process that uses it, really does. Each check has a file
//! of its own and one line in the registry.

mod answer;
mod args;
mod coherence;
mod direct;
mod durability;
mod earlier;
mod iosize;
mod metadata;
mod order;
mod registry;
mod report;
mod rules;

use anyhow::{Result, bail};
use blockstone_base::table::Rows as _;
use blockstone_report::render::json::schema::Document;
use clap::{ArgMatches, Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::{exit, finish};
use crate::progress::Progress;
use crate::verb::{Context, Verb};
use args::CheckArgs;

pub const VERB: Verb = Verb {
    name: "check",
    about: "Check what a path really does: direct, ordered, durable",
    options: |command| {
        let command = CheckArgs::augment_args(command);
        command.subcommands(registry::ALL.iter().map(answer::Check::declaration))
    },
    common: &["witness", "verify", "serve", "prepare", "rank", "ranks"],
    run,
    reports: true,
    rules: rules::listed,
    documents: &[Document::of_tables(
        ("check", 2),
        "Classes of what was tried or observed, with their evidence",
        report::Summary::COLUMNS,
        registry::TABLES,
    )],
    ..Verb::PLAIN
};

fn run(options: &ArgMatches, context: &Context) -> Result<Exit> {
    let args = CheckArgs::from_arg_matches(options)?;
    let mut progress = Progress::start(context.printer)?;
    let parts: Result<_> = match (options.subcommand(), &args.path) {
        (Some((name, _)), Some(path)) => bail!(Failure::new(
            format!(
                "check {} and {name}: a path before the name of a check means all checks",
                path.display()
            ),
            format!("blockstone check {name} {}", path.display())
        )),
        (Some((name, options)), None) => {
            let checks = registry::ALL.iter().filter(|check| check.name == name);
            checks
                .map(|check| Ok((check.name, (check.run)(options, context, &mut progress)?)))
                .collect()
        }
        (None, Some(path)) => {
            let all = registry::ALL.iter();
            all.map(|check| Ok((check.name, (check.quick)(path, &mut progress)?))).collect()
        }
        (None, None) => bail!(Failure::new(
            "check: no path is named",
            "blockstone check . checks this directory; blockstone check --help lists all checks"
        )),
    };
    progress.finish();
    let parts: Vec<(&str, answer::CheckAnswer)> = parts?;
    let printed_elsewhere = parts.iter().any(|(_, part)| part.printed_elsewhere);
    let report = report::report(parts);
    if printed_elsewhere { Ok(exit(&report)) } else { finish(&report, context) }
}
