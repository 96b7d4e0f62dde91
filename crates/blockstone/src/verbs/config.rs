//! `blockstone config`: the settings in force, and where each comes from.

mod rows;

use blockstone_base::table::Rows as _;
use blockstone_report::render::json::schema::{Document, Tables};
use blockstone_report::{Report, Section};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};

use crate::config::{Config, Outcome};
use crate::finish::finish;
use crate::verb::{Global, Verb};
use rows::{FileRow, SettingRow};

pub const VERB: Verb = Verb {
    name: "config",
    about: "Show the settings in force, and where each comes from",
    options: |command| command.after_help(EXAMPLES),
    run: |options, context| finish(&report(options, &context.config), context),
    reports: true,
    finds_runs: true,
    documents: &[Document::of_tables(
        ("config", 2),
        "The settings in force, and the files that were looked for",
        &[],
        &[TABLES],
    )],
    ..Verb::PLAIN
};

const TABLES: Tables = &[("settings", SettingRow::COLUMNS), ("files", FileRow::COLUMNS)];

const EXAMPLES: &str = "\
Examples:
  blockstone config                       where recordings go, and who says so
  blockstone config --json | jq -r '.tables.settings[] | select(.setting == \"runs_dir\").value'";

fn report(options: &ArgMatches, config: &Config) -> Report {
    let settings = Global::settable().into_iter().map(|option| setting(&option, options, config));
    let files = config.files.iter().map(|looked| FileRow {
        file: looked.file.display().to_string(),
        outcome: match &looked.outcome {
            Outcome::Read => "read",
            Outcome::Absent => "absent",
            Outcome::NotPermitted | Outcome::OfOther(_) => "not used",
        },
        why: looked.outcome.why().unwrap_or_default(),
    });
    let tables = [
        SettingRow::table("settings", "Settings", settings),
        FileRow::table("files", "Files; the last takes precedence", files),
    ];
    Report {
        verb: "config".into(),
        version: 2,
        sections: vec![Section::new("config", "").with(tables)],
        ..Report::default()
    }
}

fn setting(option: &Arg, options: &ArgMatches, config: &Config) -> SettingRow {
    let key = option.get_id().as_str();
    let value = options.get_raw(key).and_then(Iterator::last);
    let (origin, place) = match (options.value_source(key), config.of(key)) {
        (Some(ValueSource::CommandLine), _) => {
            ("option", format!("--{}", option.get_long().unwrap_or_default()))
        }
        (Some(ValueSource::EnvVariable), _) => {
            ("environment", option.get_env().unwrap_or_default().to_string_lossy().into_owned())
        }
        (_, Some(set)) => ("file", format!("{}, line {}", set.file.display(), set.line)),
        _ => ("default", String::new()),
    };
    SettingRow {
        setting: key.to_owned(),
        value: value.map_or(String::new(), |value| value.to_string_lossy().into_owned()),
        origin,
        place,
    }
}

#[cfg(test)]
mod tests {
    use blockstone_report::render::json;
    use serde_json::json;

    use super::*;
    use crate::declarations;

    #[test]
    fn each_setting_is_shown_with_its_value_and_its_origin() {
        let words = ["blockstone", "--color", "never", "config"];
        let matches = declarations().get_matches_from(words);
        let report = report(matches.subcommand().unwrap().1, &Config::default());
        let document = json::document(&report);
        crate::testing::keeps_to_its_schema(&document);
        let row = |key: &str| {
            let rows = document["tables"]["settings"].as_array().unwrap();
            rows.iter().find(|row| row["setting"] == key).unwrap().clone()
        };
        assert_eq!(row("color")["value"], json!("never"));
        assert_eq!(
            (&row("color")["origin"], &row("color")["place"]),
            (&json!("option"), &json!("--color"))
        );
        assert_eq!(
            (&row("share")["value"], &row("share")["origin"]),
            (&json!("false"), &json!("default"))
        );
    }
}
