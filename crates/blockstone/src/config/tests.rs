use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use blockstone_base::hint::Hint as _;
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};

use super::*;
use crate::declarations;
use crate::printer::{Color, ProgressForm};
use crate::verb::Global;

const HOME: &str = "/home/dba";

fn said(text: &str) -> Result<Vec<(&'static str, String, usize)>, String> {
    let found = settings(text, (Path::new("/c"), &Global::settable()), Some(Path::new(HOME)));
    let found = found.map_err(|error| error.told())?;
    Ok(found.into_iter().map(|it| (it.key, it.value, it.line)).collect())
}

#[test]
fn a_file_says_what_its_lines_say() {
    let text =
        "# mine\nruns_dir = \"~/runs\"\n\nshare=true\ncolor = 'never'\nprogress = \"json\"\n";
    let mut found = said(text).unwrap();
    found.sort_by_key(|it| it.2);
    let expected = [
        ("runs_dir", "/home/dba/runs", 2),
        ("share", "true", 4),
        ("color", "never", 5),
        ("progress", "json", 6),
    ];
    assert_eq!(found, expected.map(|(key, value, line)| (key, value.to_owned(), line)));
    assert_eq!(said("").unwrap(), []);
    assert_eq!(said("runs_dir = \"runs\"").unwrap()[0].1, "runs", "of the working directory");
}

#[test]
fn what_a_file_must_not_say_is_refused_with_its_line() {
    for (text, line, why) in [
        ("color = \"auto\"\nruns-dir = \"/x\"", 2, "`runs-dir` is not a setting"),
        ("[watch]\ndb = \"x\"", 1, "`watch` is not a setting"),
        (
            "\n\ncolor = \"blue\"",
            3,
            "`color` does not take this value\nhint: color is one of \"auto\"",
        ),
        ("color = true", 1, "`color` does not take"),
        ("share = \"true\"", 1, "`share` does not take this value\nhint: share = true, or false"),
        ("share = 1", 1, "`share` does not take"),
        ("runs_dir = \"\"", 1, "`runs_dir` does not take"),
        ("runs_dir = [\"/a\"]", 1, "`runs_dir` does not take"),
        ("runs_dir = \"/a\\u0000b\"", 1, "`runs_dir` does not take"),
        ("runs_dir = \"/a\"\nruns_dir = \"/b\"", 2, "duplicate key"),
        ("share = true\ncolor =", 2, ""),
    ] {
        let error = said(text).unwrap_err();
        assert!(error.starts_with(&format!("read /c, line {line}: ")), "{text}: {error}");
        assert!(error.contains(why) && error.contains("\nhint: "), "{text}: {error}");
        assert_eq!(error.lines().count(), 2, "{text}: {error}");
    }
    assert!(said(&format!("color = {}", "[".repeat(100_000))).is_err());
}

#[test]
fn recordings_are_in_one_place_that_does_not_depend_on_the_working_directory() {
    let user = Places { home: Some(HOME.into()), ..Places::default() };
    assert_eq!(user.runs_dir(), Path::new("/home/dba/.local/state/blockstone/runs"));
    let named = Places { state: Some("/state".into()), ..user.clone() };
    assert_eq!(named.runs_dir(), Path::new("/state/blockstone/runs"));
    let root = Places { is_root: true, ..named };
    assert_eq!(root.runs_dir(), Path::new("/var/lib/blockstone/runs"), "whatever sudo keeps");
    assert_eq!(Places::default().runs_dir(), Path::new(HERE));
    let own = Path::new("/home/dba/.config/blockstone/config.toml");
    assert_eq!(user.files(), [Path::new(MACHINE), own]);
    let own = Places { config: Some("/c".into()), ..user };
    assert_eq!(own.files()[1], Path::new("/c/blockstone/config.toml"));
    assert_eq!(absolute(Some("here".into())), None);
}

/// Reads a file of this text as that of the user.
fn config(text: &str) -> Config {
    let settings = settings(text, (Path::new("/c"), &Global::settable()), None).unwrap();
    Config { settings, ..Config::default() }
}

fn parsed(config: &Config, words: &[&str]) -> (Global, ArgMatches) {
    let words = ["blockstone"].iter().chain(words);
    let matches = config.applied(declarations()).try_get_matches_from(words).unwrap();
    let options = matches.subcommand().unwrap().1.clone();
    (Global::from_arg_matches(&matches).unwrap(), options)
}

#[test]
fn an_option_takes_precedence_over_a_file_and_a_file_over_the_default() {
    let text = "runs_dir = \"/f\"\nshare = true\ncolor = \"always\"\nprogress = \"none\"";
    let file = config(text);
    let (global, options) = parsed(&file, &["runs"]);
    assert_eq!(global.runs_dir, Path::new("/f"));
    assert!(global.share);
    assert_eq!((global.color, global.progress), (Color::Always, ProgressForm::None));
    for key in KEYS {
        assert_eq!(options.value_source(key), Some(ValueSource::DefaultValue), "{key}");
        assert_eq!(file.of(key).unwrap().file, Path::new("/c"));
    }
    let given = ["--share=false", "--runs-dir", "/o", "runs", "--color", "never"];
    let (global, options) = parsed(&file, &given);
    assert_eq!((global.runs_dir.as_path(), global.share), (Path::new("/o"), false));
    assert_eq!(global.color, Color::Never);
    assert_eq!(options.value_source("runs_dir"), Some(ValueSource::CommandLine));
    let (global, _) = parsed(&config(""), &["runs"]);
    assert_eq!((global.runs_dir.as_path(), global.share), (Path::new(HERE), false));
}

#[test]
fn the_file_of_the_user_takes_precedence_over_that_of_the_machine() {
    let mut both = config("color = \"never\"\nshare = true");
    both.settings.extend(
        settings("color = \"always\"", (Path::new("/u"), &Global::settable()), None).unwrap(),
    );
    let (global, _) = parsed(&both, &["runs"]);
    assert_eq!((global.color, global.share), (Color::Always, true));
    assert_eq!(both.of("color").unwrap().file, Path::new("/u"));
}

/// Adds this file to an empty configuration.
fn added(file: &Path) -> Result<Outcome, String> {
    Config::default().add(file, &Global::settable()).map_err(|error| {
        let cause = std::error::Error::source(&error).map_or(String::new(), ToString::to_string);
        format!("{}: {cause}", error.told())
    })
}

#[test]
fn a_file_that_others_may_write_to_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    assert_eq!(added(&file), Ok(Outcome::Absent));
    assert_eq!(added(&file.join("below")), Ok(Outcome::Absent));
    fs::write(&file, "color = \"never\"").unwrap();
    let link = dir.path().join("link");
    symlink(&file, &link).unwrap();
    assert_eq!(added(&link), Ok(Outcome::Read), "as a user keeps configuration elsewhere");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o646)).unwrap();
    for file in [&file, &link] {
        let error = added(file).unwrap_err();
        assert!(error.contains("other users may write to it (its mode is 0646)"), "{error}");
        assert!(error.contains("hint: chmod go-w "), "{error}");
    }
}

#[test]
fn a_file_of_another_user_is_not_obeyed() {
    blockstone_testkit::require!(Root);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    fs::write(&file, "nonsense").unwrap();
    chown(&file, Some(65534), None).unwrap();
    assert_eq!(added(&file), Ok(Outcome::OfOther(65534)));
    let files = vec![Looked { file, outcome: Outcome::OfOther(65534) }];
    let config = Config { files, ..Config::default() };
    let notes: Vec<String> = config.notes().collect();
    assert!(notes.len() == 1 && notes[0].ends_with("it belongs to user 65534"), "{notes:?}");
}

#[test]
fn what_is_not_a_short_text_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    for (bytes, why) in [
        (&b"\xff\xfe"[..], "not text in UTF-8"),
        (&vec![b'#'; (64 << 10) + 1], "larger than 64 KiB"),
    ] {
        fs::write(&file, bytes).unwrap();
        let error = added(&file).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    assert!(added(dir.path()).is_err() && added(Path::new("/dev/zero")).is_err());
    let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
    assert!(made.success());
    assert!(added(&dir.path().join("pipe")).unwrap_err().contains("not a regular file"));
}
