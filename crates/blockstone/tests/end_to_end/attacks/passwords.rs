//! Sources of passwords, and places where they must not appear.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use blockstone_testkit::{PostgresServer, Ran, require, run};

use super::databases::SMALL;
use super::{Command, Place, holds, within};

const SECRET: &str = "s3cr:t\\pw";
/// The same secret as written in an address, and in a password file.
const IN_ADDRESS: &str = "s3cr%3At%5Cpw";
const IN_LIST: &str = r"s3cr\:t\\pw";

/// A server that asks the role `asked` for a password.
fn asking(place: &Place) -> PostgresServer {
    let rules = place.runs().join("rules");
    fs::write(&rules, "local all all trust\nhost all admin all trust\nhost all asked all md5\n")
        .unwrap();
    for path in [&rules, &place.runs(), place.scratch.path()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let server = PostgresServer::start(15, &[&format!("hba_file={}", rules.display())]).unwrap();
    let create = format!(r"CREATE ROLE asked SUPERUSER LOGIN PASSWORD '{SECRET}'");
    server.run(&[&create]).unwrap();
    server
}

fn file(place: &Place, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = place.scratch.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

#[track_caller]
fn is_shown_nowhere(place: &Place, ran: &Ran) {
    for secret in [SECRET, IN_ADDRESS, IN_LIST, "s3cr"] {
        assert!(!format!("{ran:?}").contains(secret), "{ran:#?}");
        assert_eq!(holds(&place.runs(), secret), None);
    }
}

fn watch(place: &Place, address: &str, record: &str) -> Command {
    let mut watch = place.command("watch");
    watch.args(["--db", address, "--once", "--for", "1s", "--record"]);
    watch.arg(place.runs().join(record)).env_remove("PGPASSWORD").env("HOME", place.runs());
    watch
}

#[test]
fn passwords_come_from_files_and_the_environment() {
    require!(Root, Postgres);
    let place = Place::beside();
    let server = asking(&place);
    let address = server.address().replace("admin@", "asked@");
    let written = file(&place, "password", &format!("{SECRET}\nnot this\n"), 0o600);
    let list = file(&place, "list", &format!("*:*:other:*:no\n*:*:*:asked:{IN_LIST}\n"), 0o600);
    let (written, list) = (written.to_str().unwrap(), list.to_str().unwrap());
    let in_address = address.replace("asked@", &format!("asked:{IN_ADDRESS}@"));
    for (name, address, environment, options) in [
        ("address", &in_address, None, &[][..]),
        ("environment", &address, Some(("PGPASSWORD", SECRET)), &[]),
        ("list", &address, Some(("PGPASSFILE", list)), &[]),
        ("file", &address, Some(("PGPASSWORD", "wrong")), &["--password-file", written]),
    ] {
        let ran = run(watch(&place, address, name).envs(environment).args(options));
        assert_eq!(ran.code, Some(0), "{name}: {ran:#?}");
        is_shown_nowhere(&place, &ran);
    }
    let home = place.scratch.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::copy(list, home.join(".pgpass")).unwrap();
    let ran = run(watch(&place, &address, "home").env("HOME", &home));
    assert_eq!(ran.code, Some(0), "{ran:#?}");

    let given = ["--target", &address, "--password-file", written];
    let ran = run(place.command("run").args(given).args(SMALL));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    is_shown_nowhere(&place, &ran);
    let matrix = format!("target={in_address}");
    let arguments = ["--run-time", "1s", "--repeat", "1", "--matrix", &matrix, "update=0,20"];
    let ran = run(place.command("run").args(&SMALL[..6]).args(arguments));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    is_shown_nowhere(&place, &ran);
    let twice = [&address, "--destroy", &address, "--password-file", written];
    let ran = run(place.command("teardown").args(twice));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn a_password_in_a_file_that_others_may_use_is_not_taken() {
    require!(Root, Postgres);
    let place = Place::beside();
    let server = asking(&place);
    let address = server.address().replace("admin@", "asked@");
    let refused = |command: &mut Command, words: &str| {
        let ran = within(Duration::from_secs(30), command);
        assert_eq!(ran.code, Some(2), "{words}: {ran:#?}");
        assert!(ran.stderr.contains(words) && ran.stderr.contains("\nhint: "), "{ran:#?}");
        assert!(!ran.stderr.contains("s3cr"), "{ran:#?}");
    };
    refused(&mut watch(&place, &address, "none"), "the server asks for a password");
    let list = file(&place, "list", &format!("*:*:*:*:{IN_LIST}\n"), 0o640);
    let mut with_list = watch(&place, &address, "list");
    refused(with_list.env("PGPASSFILE", &list), "was not read: other users may use it");
    let pipe = place.scratch.path().join("pipe");
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&pipe).status().unwrap().success());
    for (path, words) in [
        (file(&place, "open", SECRET, 0o644), "other users may use it (mode 644)"),
        (file(&place, "long", &"x".repeat(5000), 0o600), "larger than"),
        (file(&place, "empty", "\n", 0o600), "its first line is empty"),
        (pipe, "not a regular file"),
        (place.scratch.path().join("nowhere"), "No such file"),
    ] {
        let mut command = watch(&place, &address, "refused");
        refused(command.arg("--password-file").arg(path), words);
    }
    let written = file(&place, "password", SECRET, 0o600);
    let in_address = address.replace("asked@", &format!("asked:{IN_ADDRESS}@"));
    let mut command = watch(&place, &in_address, "both");
    refused(command.arg("--password-file").arg(&written), "a password as well");
    let mut command = place.command("run");
    refused(command.arg("--password-file").arg(&written), "no server is named");
    let wrong = file(&place, "wrong", "s3crwrong", 0o600);
    let mut command = watch(&place, &address, "wrong");
    refused(command.arg("--password-file").arg(wrong), "password authentication failed");
}
