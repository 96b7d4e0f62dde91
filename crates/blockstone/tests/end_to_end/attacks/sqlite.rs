//! A database of SQLite in a directory of another user.

use std::fs;
use std::os::unix::fs::chown;
use std::process::{Command, Stdio};

use blockstone_testkit::{require, run};

use super::super::{Place, names};

const NOBODY: u32 = 65_534;

/// Waits for the first entry of its directory, moves it away, and puts a directory in its place
/// whose files are links to the victim.
const ATTACK: &str = r#"
    cd "$0" || exit
    until set -- *; [ -e "$1" ]; do :; done
    mv -T "$1" moved && mkdir "$1" || exit
    for end in '' -wal -shm -journal; do ln -s "$VICTIM" "$1/blockstone.db$end"; done
"#;

#[test]
fn whoever_owns_the_directory_cannot_lead_the_database_elsewhere() {
    require!(Root);
    let place = Place::beside();
    let victim = place.runs().join("victim");
    for io in ["buffered", "direct"] {
        // Empty, which SQLite takes for a new database.
        fs::write(&victim, "").unwrap();
        let dir = place.scratch.path().join(io);
        fs::create_dir(&dir).unwrap();
        chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
        let user = format!("--reuid={NOBODY}");
        let mut attacker = Command::new("setpriv")
            .args([user.as_str(), "--clear-groups", "sh", "-c", ATTACK])
            .arg(&dir)
            .env("VICTIM", &victim)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let target = format!("sqlite:{}", dir.display());
        let mut command = place.command("run");
        command.args(["--target", &target, "--io", io, "--scale", "8M", "--run-time", "2s"]);
        let ran = run(&mut command);
        let _ = attacker.kill();
        attacker.wait().unwrap();
        assert!(dir.join("moved").exists(), "the attack came too late: {ran:#?}");
        assert_eq!(fs::read(&victim).unwrap(), b"", "{ran:#?}");
        let left = names(&place.runs());
        assert!(!left.iter().any(|name| name.starts_with("victim-")), "{left:?}");
        assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
    }
}
