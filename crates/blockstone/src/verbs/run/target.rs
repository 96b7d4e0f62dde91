//! Options that apply to the targets of one database, as the registry of targets declares them.

use std::path::PathBuf;

use anyhow::{Result, bail};
use blockstone_servers::DatabaseOptions;
use blockstone_servers::registry::{self, OptionValue, TargetOption};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint, value_parser};

use crate::failure::Failure;
use crate::purpose::Purpose;

/// The target that is part of the program.
pub const INSTANCE: &str = registry::ALL[0].name;

#[derive(Clone, Debug, Default)]
pub struct TargetOptions {
    given: Vec<Given>,
}

/// An option with its values.
#[derive(Clone, Debug)]
struct Given {
    option: &'static TargetOption,
    settings: Vec<(String, String)>,
    programs: Option<PathBuf>,
}

impl TargetOptions {
    pub fn settings(&self) -> Vec<(String, String)> {
        self.given.iter().flat_map(|given| given.settings.clone()).collect()
    }

    /// Directory of the target's programs; `None` means the usual places.
    pub fn programs(&self) -> Option<PathBuf> {
        self.given.iter().rev().find_map(|given| given.programs.clone())
    }

    /// Removes the options in `common` that apply only to `others`, not to `target`: each of
    /// several targets takes only its own options.
    pub fn take_own(&mut self, target: &str, common: &Self, others: &[&str]) {
        let of_another = |option: &TargetOption| {
            !applies(option, target) && others.iter().any(|other| applies(option, other))
        };
        let mut left = common.given.len();
        self.given.retain(|given| {
            let is_common = left > 0;
            left = left.saturating_sub(1);
            !(is_common && of_another(given.option))
        });
    }

    /// Refuses a target that does not exist, and options that do not apply to it.
    pub fn check(&self, target: &str, common: &DatabaseOptions) -> Result<()> {
        let entry = registry::find(target)?;
        let mut options = self.given.iter().map(|given| given.option);
        if let Some(other) = options.find(|option| !applies(option, target)) {
            let to: Vec<_> = targets_of(other).collect();
            bail!(inapplicable(other.name, target, &to));
        }
        match common.clone().take_those_of_instance()[..] {
            [option, ..] if entry.name != INSTANCE => {
                bail!(inapplicable(option, target, &[INSTANCE]))
            }
            _ => Ok(()),
        }
    }
}

fn inapplicable(option: &str, target: &str, to: &[&str]) -> Failure {
    Failure::new(
        format!("use --{option} with --target {target}: the option does not apply to that target"),
        format!("it applies to --target {}", to.join(" or ")),
    )
}

fn applies(option: &TargetOption, target: &str) -> bool {
    let own = registry::find(target).map_or(&[][..], |entry| entry.family.options);
    own.iter().any(|own| own.name == option.name)
}

/// Returns the targets that an option applies to.
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
                    .value_hint(ValueHint::DirPath)
                    .add(Purpose::Program),
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
            let mut given = Given { option, settings: Vec::new(), programs: None };
            match option.value {
                OptionValue::Setting => {
                    let settings = matches.get_many(option.name).into_iter().flatten();
                    given.settings.extend(settings.cloned());
                }
                OptionValue::Programs => given.programs = matches.get_one(option.name).cloned(),
            }
            self.given.push(given);
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
        let options = parsed(&given);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(options.settings(), [pair("a", "1"), pair("b", "x=y")]);
        assert_eq!(options.programs(), Some(PathBuf::from("/opt")));
        parsed(&given).check("postgres:scratch", &DatabaseOptions::default()).unwrap();
        parsed(&[]).check("instance", &DatabaseOptions::default()).unwrap();
    }

    #[test]
    fn an_option_of_another_target_is_refused_and_its_own_named() {
        let refused = parsed(&["--mariadb-conf", "a=1"])
            .check("sqlite:/data", &DatabaseOptions::default())
            .unwrap_err();
        assert_eq!(
            crate::testing::told(&refused),
            "use --mariadb-conf with --target sqlite:/data: the option does not apply to that \
             target\nhint: it applies to --target mariadb or mysql"
        );
        parsed(&["--mariadb-conf", "a=1"])
            .check("mysql://me@host", &DatabaseOptions::default())
            .unwrap();
        let two = DatabaseOptions { database_writers: 2, ..DatabaseOptions::default() };
        parsed(&[]).check(INSTANCE, &two).unwrap();
        let refused = parsed(&[]).check("postgres:scratch", &two).unwrap_err();
        assert!(refused.to_string().starts_with("use --database-writers with --target postgres"));
        assert!(
            parsed(&["--pragma", "a=1"]).check("nothing", &DatabaseOptions::default()).is_err()
        );
    }

    #[test]
    fn of_several_targets_each_takes_its_own_options() {
        let common = parsed(&["--pg-bin", "/opt", "--mariadb-conf", "a=1"]);
        let targets = ["instance", "postgres:scratch", "mariadb:scratch"];
        let of = |target: &str, targets: &[&str]| {
            let mut own = common.clone();
            own.take_own(target, &common, targets);
            own.check(target, &DatabaseOptions::default())
                .is_ok()
                .then(|| (own.programs(), own.settings().len()))
        };
        assert_eq!(of("instance", &targets), Some((None, 0)));
        assert_eq!(of("postgres:scratch", &targets), Some((Some(PathBuf::from("/opt")), 0)));
        assert_eq!(of("mariadb:scratch", &targets), Some((None, 1)));
        assert_eq!(of("instance", &["instance", "sqlite:."]), None, "no target can take them");
        // A varied option applies to every combination that it is part of, or is an error.
        let mut varied = common.clone();
        varied.given.extend(parsed(&["--pg-conf", "b=2"]).given);
        varied.take_own("instance", &common, &targets);
        assert!(varied.check("instance", &DatabaseOptions::default()).is_err());
    }
}
