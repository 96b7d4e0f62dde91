//! Processes that are killed, and devices that lose power, at random moments. The process is this
//! test binary itself, which runs a load if an environment variable is set; it reports every
//! acknowledged commit through a pipe.

use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_base::rng::Rng;
use blockstone_instance::group::{
    DiskGroup, DiskSpec, GroupError, GroupSpec, Redundancy, unwatched,
};
use blockstone_instance::{Instance, InstanceError, OpenSpec, RedoStress, TornProtection};
use blockstone_sys::file::FileError;
use blockstone_testkit::{DeviceSpec, LoopDevice, VolatileDevice, WriteCache};

use crate::world::{ROWS, open_spec, spec};

/// Disks of the victim, separated as in PATH.
const VICTIM: &str = "BLOCKSTONE_VICTIM";
const SESSIONS: u32 = 64;
const PROTECTIONS: [TornProtection; 2] = [TornProtection::FullPage, TornProtection::DoubleWrite];

/// Number of repetitions, which an experiment can raise through a variable.
fn times(variable: &str, usual: u32) -> u32 {
    env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn opening(protection: TornProtection) -> OpenSpec {
    OpenSpec { cache: Bytes::kib(4 * 8 * u64::from(SESSIONS)), ..open_spec(protection) }
}

/// Returns how the blocks of the victim's instance are protected: chosen by its round, so that
/// every kind is tried.
fn protection(round: u32) -> TornProtection {
    PROTECTIONS[round as usize % PROTECTIONS.len()]
}

/// Runs the victim: updates one row after another in each session, and reports which version of
/// which row was committed.
fn be_killed(disks: &[PathBuf], round: u32) {
    let group = open_group(disks).unwrap();
    let instance = Instance::open(&group, &opening(protection(round))).unwrap();
    std::thread::scope(|scope| {
        for number in 0..SESSIONS {
            let instance = &instance;
            scope.spawn(move || {
                let mut session = instance.session(number).unwrap();
                let mut rng = Rng::new(u64::from(round), u64::from(number));
                let share = ROWS / u64::from(SESSIONS);
                loop {
                    let key = u64::from(number) * share + rng.below(share);
                    let stress = RedoStress::ALL[rng.below(2) as usize];
                    session.update(0, key, 1, stress).unwrap();
                    session.commit().unwrap();
                    let version = session.row(0, key).unwrap().version();
                    // One write, so that lines of different sessions do not mix.
                    let line = format!("{key} {version}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs a victim, ends it with `end` after `life`, and returns the highest version it reported for
/// each row.
fn end_one(
    disks: &[PathBuf],
    round: u32,
    life: Duration,
    end: &mut dyn FnMut(&mut Child),
) -> Vec<u64> {
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "kill::killed_at_random_moments_it_loses_no_commit", "--nocapture"])
        .env(VICTIM, env::join_paths(disks).unwrap())
        .env("BLOCKSTONE_ROUND", round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let reported = BufReader::new(victim.stdout.take().unwrap());
    let (sender, first_commit) = std::sync::mpsc::channel();
    let listener = std::thread::spawn(move || {
        let mut versions = vec![0; ROWS as usize];
        for line in reported.lines().map_while(Result::ok) {
            let Some((key, version)) = line.split_once(' ') else { continue };
            if let (Ok(key), Ok(version)) = (key.parse::<usize>(), version.parse::<u64>()) {
                versions[key] = versions[key].max(version);
                let _ = sender.send(());
            }
        }
        versions
    });
    // Some lives may end before the first commit.
    let _ = first_commit.recv_timeout(life * 4);
    std::thread::sleep(life);
    end(&mut victim);
    victim.kill().unwrap();
    victim.wait().unwrap();
    drop(first_commit);
    listener.join().unwrap()
}

/// Opens the group. The kernel ends the io_uring of a killed process a moment after the process,
/// and its locks last until then.
fn open_group(disks: &[PathBuf]) -> Result<DiskGroup, GroupError> {
    let is_busy = |error: &GroupError| match error {
        GroupError::File(FileError::Locked { .. }) => true,
        GroupError::File(FileError::Open { source, .. }) => {
            source.kind() == ErrorKind::ResourceBusy
        }
        _ => false,
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    let direct = !disks[0].is_dir();
    loop {
        match DiskGroup::open(disks, direct) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

fn create(disks: &[PathBuf], redundancy: Redundancy) {
    let group = GroupSpec {
        disks: disks.iter().cloned().map(DiskSpec::from).collect(),
        redundancy,
        allocation_unit: Bytes::mib(1),
        direct: !disks[0].is_dir(),
    };
    let group = DiskGroup::create(&group, &spec().files().unwrap(), &unwatched).unwrap();
    Instance::create(&spec(), &group).unwrap();
    let instance = Instance::open(&group, &opening(protection(0))).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    instance.shutdown().unwrap();
}

/// Fate of the reported commits.
#[derive(Debug, Default)]
struct Outcome {
    reported: u64,
    lost: u64,
}

/// Opens the group that a victim left, and compares it with what the victim reported.
fn examine(disks: &[PathBuf], round: u32, reported: &[u64]) -> Result<Outcome, InstanceError> {
    let group = open_group(disks)?;
    let instance = Instance::open(&group, &opening(protection(round)))?;
    assert_eq!(instance.recovery().damaged, [] as [u64; 0]);
    let mut session = instance.session(0)?;
    let mut outcome = Outcome::default();
    for (key, &version) in (0..).zip(reported) {
        let found = session.row(0, key)?.version();
        outcome.reported += version;
        outcome.lost += version.saturating_sub(found);
    }
    drop(session);
    instance.crash();
    Ok(outcome)
}

/// Kills one victim after the other; returns the number of reported commits.
fn kill_many(disks: &[PathBuf], kills: u32) -> u64 {
    let mut rng = Rng::new(20, 0);
    let mut reported = vec![0; ROWS as usize];
    for round in 0..kills {
        let life = Duration::from_millis(rng.below(400));
        let more = end_one(disks, round, life, &mut |victim| victim.kill().unwrap());
        // Versions reported in an earlier life still count.
        reported.iter_mut().zip(more).for_each(|(reported, more)| *reported = more.max(*reported));
        let outcome = examine(disks, round, &reported).unwrap();
        assert_eq!(outcome.lost, 0, "kill {round} lost commits of {outcome:?}");
    }
    reported.iter().sum()
}

#[test]
fn killed_at_random_moments_it_loses_no_commit() {
    if let Some(disks) = env::var_os(VICTIM) {
        let disks: Vec<PathBuf> = env::split_paths(&disks).collect();
        return be_killed(&disks, times("BLOCKSTONE_ROUND", 0));
    }
    let dir = tempfile::tempdir().unwrap();
    let disks = ["a", "b"].map(|name| dir.path().join(name));
    for disk in &disks {
        std::fs::create_dir(disk).unwrap();
    }
    create(&disks, Redundancy::Normal);
    assert!(kill_many(&disks, 6) > 0, "no victim lived long enough to commit");
}

#[test]
fn killed_on_real_devices_it_loses_no_commit() {
    blockstone_testkit::require!(Root, Loop);
    let size = Bytes::mib(64);
    let devices =
        [0, 1].map(|_| LoopDevice::create(DeviceSpec { size, ..DeviceSpec::default() }).unwrap());
    for device in &devices {
        device.blank().unwrap();
    }
    let disks = devices.each_ref().map(|device| device.device().to_owned());
    create(&disks, Redundancy::Normal);
    let kills = times("BLOCKSTONE_KILLS", 6);
    let reported = kill_many(&disks, kills);
    println!("{kills} kills under {SESSIONS} writers: {reported} commits acknowledged, 0 lost");
    assert!(reported > 0, "no victim lived long enough to commit");
}

/// Cuts the power of one device at random moments of a load.
fn cut_many(device: &mut VolatileDevice, cuts: u32, examine: &mut dyn FnMut(&Path, u32, &[u64])) {
    let mut rng = Rng::new(21, 0);
    let mut reported = vec![0; ROWS as usize];
    for round in 0..cuts {
        let disks = [device.device().unwrap().to_owned()];
        let life = Duration::from_millis(100 + rng.below(600));
        let more = end_one(&disks, round, life, &mut |victim| {
            device
                .cut_under(&mut || {
                    victim.kill().unwrap();
                    victim.wait().unwrap();
                })
                .unwrap();
        });
        reported.iter_mut().zip(more).for_each(|(reported, more)| *reported = more.max(*reported));
        device.power_on().unwrap();
        examine(device.device().unwrap(), round, &reported);
    }
}

#[test]
fn a_device_that_loses_its_cache_keeps_every_commit() {
    blockstone_testkit::require!(Root, Loop, Nbdkit);
    let mut device = VolatileDevice::create(Bytes::mib(64)).unwrap();
    create(&[device.device().unwrap().to_owned()], Redundancy::External);
    let cuts = times("BLOCKSTONE_CUTS", 3);
    let mut acknowledged = 0;
    cut_many(&mut device, cuts, &mut |disk, round, reported| {
        let outcome = examine(&[disk.to_owned()], round, reported).unwrap();
        assert_eq!(outcome.lost, 0, "cut {round} lost commits of {outcome:?}");
        acknowledged = outcome.reported;
    });
    println!("{cuts} power cuts under {SESSIONS} writers: {acknowledged} commits, 0 lost");
    assert!(acknowledged > 0, "no victim lived long enough to commit");
}

/// The control for the test above: if the cuts were too gentle to lose anything, this would fail.
#[test]
fn a_device_that_does_not_flush_is_found_out() {
    blockstone_testkit::require!(Root, Loop, Nbdkit);
    let mut device = VolatileDevice::create(Bytes::mib(64)).unwrap();
    create(&[device.device().unwrap().to_owned()], Redundancy::External);
    device.cut_under(&mut || {}).unwrap();
    device.set_write_cache(WriteCache::Lying);
    device.power_on().unwrap();
    cut_many(&mut device, 1, &mut |disk, round, reported| match examine(
        &[disk.to_owned()],
        round,
        reported,
    ) {
        Ok(outcome) => {
            println!(
                "a device that drops flushes: {} of {} commits lost",
                outcome.lost, outcome.reported
            );
            assert!(outcome.lost > 0, "it lost nothing");
        }
        Err(error) => println!("a device that drops flushes: {error}"),
    });
}
