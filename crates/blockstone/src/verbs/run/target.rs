//! Options that apply to the targets of one database, as the registry of targets declares them.

use std::path::PathBuf;

use anyhow::{Result, bail};
use blockstone_target::registry::{self, OptionValue, TargetOption};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint, value_parser};

#[derive(Clone, Debug, Default)]
pub struct TargetOptions {
    given: Vec<&'static TargetOption>,
    pub settings: Vec<(String, String)>,
    /// Where its programs are; none looks in the usual places.
    pub programs: Option<PathBuf>,
}

impl TargetOptions {
    /// Refuses a target that does not exist, and options that do not apply to it.
    pub fn check(&self, target: &str) -> Result<()> {
        let own = registry::find(target)?.family.options;
        let applies = |option: &TargetOption| own.iter().any(|own| own.name == option.name);
        if let Some(other) = self.given.iter().find(|option| !applies(option)) {
            let to: Vec<_> = targets_of(other).collect();
            bail!(
                "use --{} with --target {target}: the option does not apply to that target\n\
                 hint: it applies to --target {}",
                other.name,
                to.join(" or ")
            );
        }
        Ok(())
    }
}

/// The targets that an option applies to.
fn targets_of(option: &TargetOption) -> impl Iterator<Item = &'static str> {
    let of = |entry: &&registry::Entry| {
        entry.family.options.iter().any(|other| other.name == option.name)
    };
    registry::ALL.iter().filter(of).map(|entry| entry.name)
}

fn all() -> impl Iterator<Item = &'static TargetOption> {
    registry::families().flat_map(|family| family.options)
}

impl Args for TargetOptions {
    fn augment_args(command: Command) -> Command {
        all().fold(command, |command, option| {
            let arg = Arg::new(option.name).long(option.name).help(option.doc);
            command.arg(match option.value {
                OptionValue::Setting => {
                    arg.value_name("NAME=VALUE").value_parser(pair).action(ArgAction::Append)
                }
                OptionValue::Programs => arg
                    .value_name("DIR")
                    .value_parser(value_parser!(PathBuf))
                    .value_hint(ValueHint::DirPath),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for TargetOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for option in all().filter(|option| matches.contains_id(option.name)) {
            self.given.push(option);
            match option.value {
                OptionValue::Setting => {
                    let settings = matches.get_many(option.name).into_iter().flatten();
                    self.settings.extend(settings.cloned());
                }
                OptionValue::Programs => self.programs = matches.get_one(option.name).cloned(),
            }
        }
        Ok(())
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> TargetOptions {
        let command = TargetOptions::augment_args(Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).unwrap();
        TargetOptions::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn options_of_the_target_are_its_settings_and_programs() {
        let given = ["--pg-conf", "a=1", "--pg-bin", "/opt", "--pg-conf", "b=x=y"];
        let TargetOptions { settings, programs, .. } = &parsed(&given);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(*settings, [pair("a", "1"), pair("b", "x=y")]);
        assert_eq!(*programs, Some(PathBuf::from("/opt")));
        parsed(&given).check("postgres:scratch").unwrap();
        parsed(&[]).check("instance").unwrap();
    }

    #[test]
    fn an_option_of_another_target_is_refused_and_its_own_named() {
        let refused = parsed(&["--mariadb-conf", "a=1"]).check("sqlite:/data").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "use --mariadb-conf with --target sqlite:/data: the option does not apply to that \
             target\nhint: it applies to --target mariadb or mysql"
        );
        parsed(&["--mariadb-conf", "a=1"]).check("mysql://me@host").unwrap();
        assert!(parsed(&["--pragma", "a=1"]).check("nothing").is_err());
    }
}
