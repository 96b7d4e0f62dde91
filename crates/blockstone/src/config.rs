//! Settings that a user does not want to repeat on each command line: from a file of the machine
//! and a file of the user.
//!
//! An option takes precedence over its environment variable, that over the user's file, that over
//! the machine's, and that over the default. The parser decides between the first two and the rest:
//! what the files say is made the default of an option ([`Config::applied`]).

use std::ffi::OsString;
use std::io::{
    self,
    ErrorKind::{NotADirectory, NotFound, PermissionDenied},
};
use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_record::RUNS as HERE;
use blockstone_sys::child::is_superuser;
use blockstone_sys::held::{Foreign, foreign, open_file, read_whole};
use clap::{Arg, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;

/// Options of every verb that a file may set, by their ids. Options of a single verb are not among
/// them: what is measured is said on the command line, which the recording keeps.
pub const KEYS: [&str; 4] = ["runs_dir", "color", "progress", "share"];

/// The file of the machine.
const MACHINE: &str = "/etc/blockstone/config.toml";
/// Name of the user's file in the directory of configurations.
const FILE: &str = "blockstone/config.toml";
const FILE_MAX: Bytes = Bytes(64 << 10);
/// Where root's recordings are. Sudo may or may not keep the home of the user who calls it: they
/// must not be in another place each time.
const RUNS_OF_ROOT: &str = "/var/lib/blockstone/runs";
const RUNS: &str = "blockstone/runs";

/// Directories that the environment names.
#[derive(Clone, Debug, Default)]
pub struct Places {
    is_root: bool,
    home: Option<PathBuf>,
    state: Option<PathBuf>,
    config: Option<PathBuf>,
}

/// A setting in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub key: &'static str,
    /// As it would be given to the option.
    pub value: String,
    pub file: PathBuf,
    pub line: usize,
}

/// A file that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    pub file: PathBuf,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Read,
    Absent,
    /// This user may not read it, or not see whether it exists.
    NotPermitted,
    /// It belongs to this user, who is neither root nor the one who runs the program: with sudo,
    /// the home may be that of the caller.
    OfOther(u32),
}

/// The settings in all files.
#[derive(Clone, Debug, Default)]
pub struct Config {
    places: Places,
    /// Files in the order of their precedence, the least first.
    pub files: Vec<Looked>,
    settings: Vec<Setting>,
}

impl Places {
    pub fn of_process() -> Self {
        let dir = |name: &str| absolute(std::env::var_os(name));
        Self {
            is_root: is_superuser(),
            home: dir("HOME"),
            state: dir("XDG_STATE_HOME"),
            config: dir("XDG_CONFIG_HOME"),
        }
    }

    /// Returns the directory of recordings if nothing says otherwise. It does not depend on the
    /// working directory, so that a recording is found from everywhere.
    fn runs_dir(&self) -> PathBuf {
        if self.is_root {
            return RUNS_OF_ROOT.into();
        }
        let of_home = || self.home.as_ref().map(|home| home.join(".local/state"));
        let state = self.state.clone().or_else(of_home);
        state.map_or_else(|| HERE.into(), |state| state.join(RUNS))
    }

    /// Returns the files in the order of their precedence, the least first.
    fn files(&self) -> Vec<PathBuf> {
        let of_home = || self.home.as_ref().map(|home| home.join(".config"));
        let own = self.config.clone().or_else(of_home).map(|dir| dir.join(FILE));
        [PathBuf::from(MACHINE)].into_iter().chain(own).collect()
    }
}

/// Relative paths in these variables are invalid, as the XDG base directory specification has it.
fn absolute(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

impl Config {
    /// Reads the files, which may set these options. Fails when one cannot be read or understood,
    /// and when others than this user and root may write to it.
    pub fn read(places: Places, options: &[Arg]) -> Result<Self, Failure> {
        let mut config = Self { places, ..Self::default() };
        for file in config.places.files() {
            let outcome = config.add(&file, options)?;
            config.files.push(Looked { file, outcome });
        }
        Ok(config)
    }

    fn add(&mut self, file: &Path, options: &[Arg]) -> Result<Outcome, Failure> {
        let name = file.display();
        let failed = |error: io::Error| {
            let hint = "correct or remove it; docs/config.md says what it may hold";
            Failure::new(format!("read {name}"), hint).because(error)
        };
        let opened = match open_file(file) {
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {
                return Ok(Outcome::Absent);
            }
            Err(error) if error.kind() == PermissionDenied => return Ok(Outcome::NotPermitted),
            opened => opened.map_err(failed)?,
        };
        match foreign(&opened).map_err(failed)? {
            None => {}
            Some(Foreign::Owner(user)) => return Ok(Outcome::OfOther(user)),
            Some(Foreign::Writable(mode)) => {
                return Err(Failure::new(
                    format!("read {name}: other users may write to it (its mode is {mode:04o})"),
                    format!("chmod go-w {name}"),
                ));
            }
        }
        let text = read_whole(opened, FILE_MAX).map_err(failed)?;
        let text = String::from_utf8(text)
            .map_err(|_| failed(io::Error::other("it is not text in UTF-8")))?;
        let found = settings(&text, (file, options), self.places.home.as_deref())?;
        self.settings.extend(found);
        Ok(Outcome::Read)
    }

    /// Returns the declarations with what the files say as defaults, and with the directory of
    /// recordings of this user.
    pub fn applied(&self, command: Command) -> Command {
        let runs_dir = self.places.runs_dir().into_os_string();
        let with_default = |command: Command, key: &'static str, value: OsString| {
            command.mut_arg(key, |arg| arg.default_value(value).hide_default_value(key == "share"))
        };
        let command = with_default(command, "runs_dir", runs_dir);
        let set = |command, it: &Setting| with_default(command, it.key, it.value.clone().into());
        self.settings.iter().fold(command, set)
    }

    /// Returns the setting of a file that is the default of this option.
    pub fn of(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().rfind(|setting| setting.key == key)
    }

    /// Returns a sentence for each file that is not obeyed because of its owner.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let theirs = |it: &&Looked| matches!(it.outcome, Outcome::OfOther(_));
        self.files.iter().filter(theirs).filter_map(|looked| {
            let why = looked.outcome.why()?;
            Some(format!("{} is not used: {why}", looked.file.display()))
        })
    }
}

impl Outcome {
    /// Returns why a file that is there is not used.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Read | Self::Absent => None,
            Self::NotPermitted => Some("this user may not read it".to_owned()),
            Self::OfOther(user) => Some(format!("it belongs to user {user}")),
        }
    }
}

/// Reads the settings in a file.
fn settings(
    text: &str,
    (file, options): (&Path, &[Arg]),
    home: Option<&Path>,
) -> Result<Vec<Setting>, Failure> {
    let line_of = |at: usize| text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1;
    let failed = |at: usize, why: &str, hint: String| {
        Failure::new(format!("read {}, line {}: {why}", file.display(), line_of(at)), hint)
    };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        failed(at, error.message(), "write one setting a line: progress = \"none\"".to_owned())
    })?;
    let mut found = Vec::new();
    for (name, value) in table.get_ref() {
        let at = name.span().start;
        let Some(key) = KEYS.into_iter().find(|key| *key == name.get_ref().as_ref()) else {
            let why = format!("`{}` is not a setting", name.get_ref());
            return Err(failed(at, &why, format!("the settings are {}", KEYS.join(", "))));
        };
        let option = options.iter().find(|option| option.get_id() == key);
        let value = option.and_then(|option| value_of(option, value, home)).ok_or_else(|| {
            let example = option.map_or(String::new(), example);
            failed(at, &format!("`{key}` does not take this value"), example)
        })?;
        found.push(Setting { key, value, file: file.to_owned(), line: line_of(at) });
    }
    Ok(found)
}

/// Returns the words that an option takes; none if it takes any text.
fn words(option: &Arg) -> Vec<String> {
    let words = option.get_possible_values();
    words.iter().map(|word| word.get_name().to_owned()).collect()
}

/// Returns the value as the option takes it: one of its words, `true` or `false`, or a path.
fn value_of(option: &Arg, value: &Spanned<DeValue>, home: Option<&Path>) -> Option<String> {
    let words = words(option);
    let is_flag = words == ["true", "false"];
    let text = match value.get_ref() {
        DeValue::Boolean(value) if is_flag => return Some(value.to_string()),
        DeValue::String(text) if !is_flag => text.to_string(),
        _ => return None,
    };
    if !words.is_empty() {
        return words.contains(&text).then_some(text);
    }
    let path = match text.strip_prefix("~/") {
        Some(rest) => home?.join(rest).to_str()?.to_owned(),
        None => text,
    };
    (!path.is_empty() && !path.contains('\0')).then_some(path)
}

/// Returns what a setting may look like.
fn example(option: &Arg) -> String {
    let key = option.get_id();
    match words(option).as_slice() {
        [] => format!("{key} = \"/srv/blockstone/runs\", or \"~/runs\" in the home directory"),
        words if words == ["true", "false"] => format!("{key} = true, or false"),
        words => format!("{key} is one of \"{}\"", words.join("\", \"")),
    }
}

#[cfg(test)]
mod tests;
