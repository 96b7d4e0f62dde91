//! A witness, writers and verifications as they are called from outside.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blockstone_base::durability::{Class, DurabilityFindings, Method, Pattern};
use blockstone_check::CheckError;
use blockstone_check::durability::{Serving, Writing, serve, verify, write};
use blockstone_measure::Observer;

struct Quiet;

impl Observer for Quiet {}

struct Stopping {
    stop: Arc<AtomicBool>,
    notes: Sender<String>,
}

impl Observer for Stopping {
    fn note(&mut self, text: &str) {
        let _ = self.notes.send(text.to_owned());
    }

    fn interrupted(&self) -> Option<&'static str> {
        self.stop.load(Ordering::Relaxed).then_some("INT")
    }
}

struct Witness {
    address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Witness {
    fn start(log: &Path) -> Self {
        let (stop, log) = (Arc::<AtomicBool>::default(), log.to_owned());
        let (notes, said) = channel();
        let mut observer = Stopping { stop: Arc::clone(&stop), notes };
        let thread = thread::spawn(move || {
            let serving = Serving { address: "127.0.0.1:0", log: &log, cycles: None, seed: 1 };
            serve(&serving, &mut observer).unwrap();
        });
        let note = said.recv().unwrap();
        let address = note.split(' ').nth(3).unwrap().trim_end_matches(',').to_owned();
        Self { address, stop, thread: Some(thread) }
    }

    fn write(&self, path: &Path, id: u64) {
        let writing = Writing {
            path,
            destroy: false,
            witness: &self.address,
            methods: &[Method::Fdatasync],
            patterns: &[Pattern::Overwrite, Pattern::Append, Pattern::Create],
            duration: Duration::from_millis(200),
            id,
        };
        let found = write(&writing, &mut Quiet).unwrap();
        assert!(found.acknowledged() > 0, "{found:?}");
    }

    fn verify(&self, path: &Path) -> Result<DurabilityFindings, CheckError> {
        verify(path, &self.address, &mut Quiet)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A disk that ignores flushes may have nothing of a run, and all of the one before it.
#[test]
fn a_run_of_which_nothing_is_left_is_not_taken_for_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let (data, older) = (dir.path().join("data"), dir.path().join("older"));
    fs::create_dir(&data).unwrap();
    let blocks = data.join("blockstone-durability");
    let witness = Witness::start(&dir.path().join("log"));
    witness.write(&data, 5);
    copy(&blocks, &older);
    let found = witness.verify(&data).unwrap();
    assert!(found.streams.iter().all(|it| it.class == Class::Inconclusive), "{found:?}");
    assert_eq!((found.cuts.inconclusive, found.cuts.with_loss), (1, 0));

    witness.write(&data, 6);
    fs::remove_dir_all(&blocks).unwrap();
    fs::rename(&older, &blocks).unwrap();
    let found = witness.verify(&data).unwrap();
    for stream in &found.streams {
        assert_eq!((stream.class, stream.lost), (Class::Lost, stream.checked), "{stream:?}");
    }
    assert_eq!((found.cuts.inconclusive, found.cuts.with_loss), (1, 1));
    assert!(found.notes[0].contains("Not even the mark"), "{found:?}");
    assert!(matches!(witness.verify(&data), Err(CheckError::NoTrace { .. })));
}
