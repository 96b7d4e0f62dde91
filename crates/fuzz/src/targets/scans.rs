//! Files of a saved scan.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blockstone_base::Bytes;
use blockstone_reduce::findings::Findings;
use blockstone_reduce::model::Model;
use blockstone_reduce::plan::Plan;
use blockstone_scan::{Look, Settings};

use super::seal;
use crate::scratch::{self, get, put};

pub const DOCUMENT: &str = "scan.json";
pub const FINGERPRINTS: &str = "fingerprints.1.parquet";
pub const SETS: &str = "file_sets.1.parquet";

/// Makes a scan of three small files with copies, zeros and pages of a database.
pub fn build(parent: &Path) -> PathBuf {
    let (data, saved) = (parent.join("data"), parent.join("saved"));
    fs::create_dir(&data).expect("temporary files can be made");
    let mut bytes = vec![0; 96 << 10];
    blockstone_base::rng::fill(5, &mut bytes[..40 << 10]);
    put(&data.join("a"), &bytes);
    put(&data.join("b"), &bytes[8 << 10..]);
    put(&data.join("c"), &b"a line of text, over and over again\n".repeat(900));
    let plan = Plan::new(&[Bytes::kib(4), Bytes::kib(8)], &[0, 512], Bytes::kib(8));
    let mut plan = plan.expect("these sizes can be counted");
    plan.memory_bytes = 1 << 20;
    let survey = blockstone_scan::survey(&[data], Look::All, None, &mut |_| true);
    let survey = survey.expect("the files were just written");
    let settings = Settings {
        threads: 1,
        direct: false,
        save: Some(saved.clone()),
        save_every: Duration::MAX,
        ..Settings::default()
    };
    blockstone_scan::scan(&survey, plan.with_masks(), &settings, &mut |_| true)
        .expect("small files can be scanned");
    saved
}

fn seed(file: &str) -> Vec<Vec<u8>> {
    let dir = tempfile::tempdir().expect("temporary files can be made");
    vec![get(&build(dir.path()).join(file))]
}

/// Reads the scan with this content of one file, and derives what a report shows.
fn read(name: &'static str, file: &str, content: &[u8]) -> bool {
    let saved = scratch::dir(name, |dir| drop(build(dir))).join("saved");
    put(&saved.join(file), content);
    let Ok(outcome) = blockstone_scan::read(&saved) else { return false };
    let model = Model::built_in("generic").expect("it is built in");
    let plan = outcome.counter.plan();
    if plan.grids()[plan.primary()].block_bytes == model.block_bytes {
        drop(Findings::new(&outcome.counter, &outcome.notes(), &model));
    }
    true
}

pub fn documents() -> Vec<Vec<u8>> {
    seed(DOCUMENT)
}

pub fn scan(input: &[u8]) -> bool {
    read("scan", DOCUMENT, &seal::document(input))
}

pub fn fingerprint_files() -> Vec<Vec<u8>> {
    seed(FINGERPRINTS)
}

pub fn fingerprints(input: &[u8]) -> bool {
    read("fingerprints", FINGERPRINTS, &seal::parquet(input))
}

pub fn set_files() -> Vec<Vec<u8>> {
    seed(SETS)
}

pub fn sets(input: &[u8]) -> bool {
    read("file_sets", SETS, &seal::parquet(input))
}
