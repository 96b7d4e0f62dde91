//! `blockstone teardown`: removes the schema that a killed run left in a database server.

use anyhow::{Result, bail};
use blockstone_servers::{registry, without_password};
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::password::PasswordFile;
use crate::printer::Printer;
use crate::verb::Verb;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone teardown postgres://me@db1/shop     says what it would drop
  blockstone teardown postgres://me@db1/shop --destroy postgres://me@db1/shop")]
struct Teardown {
    /// The server, as in `run --target`: `postgres://user@host/db`, `mysql://user@host`
    target: String,
    #[command(flatten)]
    password: PasswordFile,
    /// Drop the schema; name the server here again
    #[arg(long, value_name = "TARGET")]
    destroy: Option<String>,
}

pub const VERB: Verb = Verb {
    name: "teardown",
    about: "Remove what a killed run left behind in a database server",
    options: Teardown::augment_args,
    run: |options, context| run(&Teardown::from_arg_matches(options)?, context.printer),
    ..Verb::PLAIN
};

fn run(args: &Teardown, printer: Printer) -> Result<Exit> {
    let target = &args.target;
    let shown = without_password(target);
    let (_, address) = registry::parts(target);
    let Some(remove) = registry::find(target)?.remove_left.filter(|_| address.starts_with("//"))
    else {
        bail!(Failure::new(
            format!("tear down {shown}: a run leaves nothing behind there"),
            "files of killed runs are removed by the next run in the same directory"
        ));
    };
    if args.destroy.as_ref() != Some(target) {
        bail!(Failure::new(
            format!("tear down {shown}: this drops the schema blockstone and all that is in it"),
            format!("name the server twice: blockstone teardown {shown} --destroy {shown}")
        ));
    }
    args.password.read_for([target.as_str()])?;
    if remove(address)? {
        printer.note(&format!("removed the schema blockstone from {shown}"));
    } else {
        printer.note(&format!("{shown} has no schema blockstone"));
    }
    Ok(Exit::Done)
}
