//! Purposes of paths on the command line. Each argument that takes a path declares its purpose
//! together with its other properties, with `#[arg(add = Purpose::…)]`. The tests derive from these
//! declarations which attacks to try on a path.

use clap::Arg;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Something that is read: a file, a pipe, a directory of files, a recording.
    Input,
    /// A file that is created, or that replaces another of the same name.
    Output,
    /// A directory that is created, or to which files are added: a recording, a subset, man pages.
    Directory,
    /// Storage under test: files are created there, used and removed.
    Scratch,
    /// Files and directories that are read, followed by the one that is created.
    Copy,
    /// A block device that is named a second time, to be overwritten.
    Device,
    /// A program that is executed, or a directory of programs: trusted as the user's own.
    Program,
}

impl Purpose {
    pub const ALL: &[Self] = &[
        Self::Input,
        Self::Output,
        Self::Directory,
        Self::Scratch,
        Self::Copy,
        Self::Device,
        Self::Program,
    ];

    /// Name in the table of tests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Directory => "directory",
            Self::Scratch => "scratch",
            Self::Copy => "copy",
            Self::Device => "device",
            Self::Program => "program",
        }
    }

    /// Returns `None` for an argument that does not take a path.
    pub fn of(argument: &Arg) -> Option<Self> {
        argument.get::<Self>().copied()
    }
}

impl clap::builder::ArgExt for Purpose {}

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
