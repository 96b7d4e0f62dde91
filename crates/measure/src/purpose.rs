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
