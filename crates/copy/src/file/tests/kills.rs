//! A copy that is killed at any moment can be resumed.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;

const VARIABLE: &str = "BLOCKSTONE_COPY_TO_KILL";

/// Delays each chunk a little, so that a kill can hit every part of the work.
struct Slow;

impl Watch for Slow {
    fn moved(&self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn pace(&self, _: u64) {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Runs as the process that is killed: this test, in a directory named by the parent.
#[test]
fn killed() {
    let Ok(dir) = std::env::var(VARIABLE) else { return };
    let dir = Path::new(&dir);
    let target_dir = HeldDir::open(&dir.join("to")).unwrap();
    let source = dir.join("source");
    let from = HeldDir::hold(dir).unwrap();
    let job = Job { source: &source, from: &from, target_dir: &target_dir, name: Path::new(NAME) };
    let options =
        Options { resume: true, request: Bytes(4096), in_flight: 4, ..Options::default() };
    match copy(&job, &options, NOTHING, &Slow) {
        Ok(_) | Err(CopyError::Exists { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_copy_that_is_killed_goes_on() {
    require!(Uring);
    let place = Place::new();
    let chunks = 1500_u64;
    place.make(chunks * 4096 - 9, &[(0, chunks * 4096 - 9)]);
    let resume = Options { resume: true, request: Bytes(4096), ..options() };
    let sidecar = place.dir.path().join(".target.blockstone-resume");
    let mut resumed_bytes = 0;
    for kill in 0..20_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "file::tests::kills::killed"])
            .env(VARIABLE, place.scratch.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let wait = Rng::new(5, kill).below(250);
        std::thread::sleep(Duration::from_millis(wait));
        // However slow the machine is, some kills leave chunks that are durable.
        let has_claims = || fs::metadata(&sidecar).is_ok_and(|found| found.len() > 1000);
        while kill % 4 == 3 && !has_claims() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Most rounds continue chunk by chunk; some complete everything that is left.
        if kill % 4 == 3 && !place.target().exists() {
            let resumed = place.copy(resume).unwrap();
            resumed_bytes += resumed.resumed_bytes;
            assert_eq!(resumed.again_bytes, 0, "what was claimed is there");
        }
        if place.target().exists() {
            place.copy(resume).unwrap_err();
            assert!(fs::read(place.source()).unwrap() == fs::read(place.target()).unwrap());
            fs::remove_file(place.target()).unwrap();
        }
    }
    place.copy(resume).unwrap();
    place.is_equal();
    assert!(resumed_bytes > 0, "something was resumed");
}
