//! `blockstone teardown`: removes the schema that a killed run left in a database server.

use anyhow::{Result, bail};
use blockstone_target::registry;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::printer::Printer;
use crate::verb::Verb;

#[derive(Args, Debug)]
struct Teardown {
    /// The server, as in `run --target`: `postgres://user@host/db`, `mysql://user@host`
    target: String,
}

pub const VERB: Verb = Verb {
    name: "teardown",
    about: "Remove what a killed run left behind in a database server",
    options: Teardown::augment_args,
    run: |options, context| run(&Teardown::from_arg_matches(options)?.target, context.printer),
    ..Verb::PLAIN
};

fn run(target: &str, printer: Printer) -> Result<Exit> {
    let (_, address) = registry::parts(target);
    let Some(remove) = registry::find(target)?.remove_left.filter(|_| address.starts_with("//"))
    else {
        bail!(
            "tear down {target}: a run leaves nothing behind there\n\
             hint: files of killed runs are removed by the next run in the same directory"
        );
    };
    if remove(address)? {
        printer.note(&format!("removed the schema blockstone from {target}"));
    } else {
        printer.note(&format!("{target} has no schema blockstone"));
    }
    Ok(Exit::Done)
}
