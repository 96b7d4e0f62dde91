//! Checks that a command line is at worst refused: options of every verb, drawn from its
//! declarations, with values that fit, that are at a limit, or that make no sense. The program must
//! end with a documented exit code and a short error, and leave its directory as it was.

use anyhow::Result;

use super::{Lab, mutations};
use crate::goals::Results;

/// Command lines for each of some 17 verbs: 3,000 in all.
const COMMANDS: u64 = 180;

pub fn run(lab: &Lab) -> Result<Results> {
    mutations::started("options", lab.options.seeds.unwrap_or(COMMANDS))
}
