//! `kill -9` at random moments. The process that is killed is this test binary itself, told by its
//! environment to run a load; what it was acknowledged it has told through a pipe before.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_base::rng::Rng;
use blockstone_instance::group::{
    DiskGroup, DiskSpec, GroupError, GroupSpec, Redundancy, unwatched,
};
use blockstone_instance::{Instance, RedoStress, TornProtection};
use blockstone_sys::file::FileError;

use crate::world::{ROWS, open_spec, spec};

const VICTIM: &str = "BLOCKSTONE_VICTIM";
const SESSIONS: u32 = 4;

fn disks(root: &Path) -> Vec<PathBuf> {
    ["a", "b"].map(|name| root.join(name)).into()
}

/// What the victim does: updates one row after the other in each session, and tells which version
/// of which row was committed.
fn be_killed(root: &Path) {
    let group = open_after_kill(root);
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
    std::thread::scope(|scope| {
        for number in 0..SESSIONS {
            let instance = &instance;
            scope.spawn(move || {
                let mut session = instance.session(number).unwrap();
                let mut rng = Rng::new(u64::from(std::process::id()), u64::from(number));
                loop {
                    let share = ROWS / u64::from(SESSIONS);
                    let key = u64::from(number) * share + rng.below(share);
                    session.update(0, key, 1, RedoStress::Lite).unwrap();
                    session.commit().unwrap();
                    let version = session.row(0, key).unwrap().version();
                    // One write, so that lines of sessions do not mix.
                    let line = format!("{key} {version}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs a victim, kills it after `life`, and returns the highest version told of each row.
fn kill_one(root: &Path, life: Duration) -> Vec<u64> {
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "kill::killed_at_random_moments_it_loses_no_commit", "--nocapture"])
        .env(VICTIM, root)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let told = BufReader::new(victim.stdout.take().unwrap());
    let listener = std::thread::spawn(move || {
        let mut versions = vec![0; ROWS as usize];
        for line in told.lines().map_while(Result::ok) {
            let Some((key, version)) = line.split_once(' ') else { continue };
            if let (Ok(key), Ok(version)) = (key.parse::<usize>(), version.parse::<u64>()) {
                versions[key] = versions[key].max(version);
            }
        }
        versions
    });
    std::thread::sleep(life);
    victim.kill().unwrap();
    victim.wait().unwrap();
    listener.join().unwrap()
}

/// The kernel ends the io_uring of a killed process a moment after the process, and its locks last
/// until then.
fn open_after_kill(root: &Path) -> DiskGroup {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match DiskGroup::open(&disks(root), false) {
            Err(GroupError::File(FileError::Locked { .. })) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other.unwrap(),
        }
    }
}

#[test]
fn killed_at_random_moments_it_loses_no_commit() {
    if let Some(root) = env::var_os(VICTIM) {
        return be_killed(Path::new(&root));
    }
    let dir = tempfile::tempdir().unwrap();
    for disk in disks(dir.path()) {
        std::fs::create_dir(disk).unwrap();
    }
    let group = GroupSpec {
        disks: disks(dir.path()).into_iter().map(DiskSpec::from).collect(),
        redundancy: Redundancy::Normal,
        allocation_unit: Bytes::mib(1),
        direct: false,
    };
    let group = DiskGroup::create(&group, &spec().files().unwrap(), &unwatched).unwrap();
    Instance::create(&spec(), &group).unwrap();
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    instance.shutdown().unwrap();
    drop(group);
    let rounds = env::var("BLOCKSTONE_KILLS").ok().and_then(|text| text.parse().ok());
    let mut rng = Rng::new(20, 0);
    let mut told = 0;
    for round in 0..rounds.unwrap_or(8_u32) {
        let life = Duration::from_millis(60 + rng.below(500));
        let versions = kill_one(dir.path(), life);
        let group = open_after_kill(dir.path());
        let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
        assert_eq!(instance.recovery().damaged, [] as [u64; 0]);
        let mut session = instance.session(0).unwrap();
        for (key, version) in (0..).zip(versions) {
            let found = session.row(0, key).unwrap().version();
            assert!(found >= version, "kill {round}: row {key} is {found}, {version} was told");
            told += u64::from(version > 0);
        }
        instance.crash();
    }
    assert!(told > 0, "no victim lived long enough to commit");
}
