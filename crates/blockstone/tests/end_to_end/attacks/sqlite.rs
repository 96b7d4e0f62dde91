//! An SQLite database in a directory of another user.

use std::fs;
use std::os::unix::fs::chown;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_testkit::{require, run};

use super::super::{Place, names};

const NOBODY: u32 = 65_534;

/// Waits for the first entry of its directory, and a moment longer, in which the first connection
/// is made; then moves it away, and replaces it by a directory whose file is a link to the victim.
const ATTACK: &str = r#"
    cd "$0" && mkdir .theirs && ln -s "$VICTIM" .theirs/blockstone.db || exit
    until set -- *; [ -e "$1" ]; do :; done
    sleep 0.1
    mv -T "$1" moved && mv -T .theirs "$1"
"#;

#[test]
fn whoever_owns_the_directory_cannot_lead_the_database_elsewhere() {
    require!(Root);
    let place = Place::beside();
    let victim = place.runs().join("victim");
    for io in ["buffered", "direct"] {
        // An empty file, which SQLite takes for a new database.
        fs::write(&victim, "").unwrap();
        let dir = place.scratch.path().join(io);
        fs::create_dir(&dir).unwrap();
        chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
        let prepared = dir.join(".theirs/blockstone.db");
        let user = format!("--reuid={NOBODY}");
        let mut attacker = Command::new("setpriv")
            .args([user.as_str(), "--clear-groups", "sh", "-c", ATTACK])
            .arg(&dir)
            .env("VICTIM", &victim)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_mins(1);
        while prepared.symlink_metadata().is_err() {
            assert!(Instant::now() < until, "the attacker does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let target = format!("sqlite:{}", dir.display());
        let mut command = place.command("run");
        command.args(["--target", &target, "--io", io, "--scale", "32M", "--run-time", "2s"]);
        let ran = run(&mut command);
        let _ = attacker.kill();
        attacker.wait().unwrap();
        assert!(dir.join("moved").exists(), "the attack came too late: {ran:#?}");
        assert_eq!(fs::read(&victim).unwrap(), b"", "{ran:#?}");
        let left = names(&place.runs());
        assert!(!left.iter().any(|name| name.starts_with("victim-")), "{left:?}");
        let theirs = names(&dir).into_iter().find(|name| name.starts_with("blockstone-"));
        for entry in fs::read_dir(dir.join(theirs.unwrap())).unwrap().flatten() {
            assert!(entry.file_type().unwrap().is_symlink(), "{entry:?} {ran:#?}");
        }
        assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
    }
}
