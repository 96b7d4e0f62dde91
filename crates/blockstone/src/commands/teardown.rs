//! `blockstone teardown`: removes the schema that a killed run left in a database server.

use anyhow::{Result, bail};
use blockstone_target::registry;

use crate::exit::Exit;
use crate::printer::Printer;

pub fn run(target: &str, printer: Printer) -> Result<Exit> {
    let (_, address) = registry::parts(target);
    let Some(remove) = registry::find(target)?.remove_left.filter(|_| address.starts_with("//"))
    else {
        bail!(
            "tear down {target}: nothing of a run can be left there\n\
             hint: files of killed runs are removed by the next run in their directory"
        );
    };
    if remove(address)? {
        printer.note(&format!("removed the schema blockstone from {target}"));
    } else {
        printer.note(&format!("{target} has no schema blockstone"));
    }
    Ok(Exit::Done)
}
