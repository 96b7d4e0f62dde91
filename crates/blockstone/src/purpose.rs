//! Purposes of paths on the command line, the test that every path has one, and which arguments
//! name recordings.

pub use blockstone_measure::Purpose;

/// Marks an argument that names a recording, so that shells complete it.
#[derive(Clone, Copy, Debug)]
pub struct NamesRecording;

impl clap::builder::ArgExt for NamesRecording {}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, ValueHint};

    use super::*;
    use crate::declarations;

    /// Whether the values of an argument are paths, judging by their type or by how they are
    /// completed.
    fn takes_path(argument: &Arg) -> bool {
        matches!(
            argument.get_value_hint(),
            ValueHint::AnyPath
                | ValueHint::FilePath
                | ValueHint::DirPath
                | ValueHint::ExecutablePath
        )
    }

    fn undeclared(words: &str, command: &Command, found: &mut Vec<String>) {
        let words = format!("{words} {}", command.get_name());
        let lacks = |argument: &&Arg| takes_path(argument) && Purpose::of(argument).is_none();
        let lacking = command.get_arguments().filter(lacks);
        found.extend(lacking.map(|argument| format!("{words}: {}", argument.get_id())));
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            undeclared(&words, below, found);
        }
    }

    #[test]
    fn every_path_on_the_command_line_declares_what_it_is_for() {
        let mut found = Vec::new();
        undeclared("", &declarations(), &mut found);
        assert_eq!(found, [""; 0], "add #[arg(add = Purpose::…)] to these");
    }

    #[test]
    fn an_argument_without_a_purpose_is_found() {
        let path = Arg::new("path").value_parser(clap::value_parser!(std::path::PathBuf));
        let hinted = Arg::new("hinted").value_hint(ValueHint::FilePath);
        let declared = Arg::new("declared").value_hint(ValueHint::DirPath).add(Purpose::Input);
        let command = Command::new("a")
            .arg(Arg::new("text"))
            .subcommand(Command::new("b").args([path, hinted, declared]));
        let mut found = Vec::new();
        undeclared("", &command, &mut found);
        assert_eq!(found, [" a b: path", " a b: hinted"]);
    }
}
