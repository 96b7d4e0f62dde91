//! Valid files of every kind that a command reads, in the directory in which it is started.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use blockstone_base::column::Schema;
use blockstone_record::manifest::Rank;
use blockstone_record::testing::{self, RecordingBuilder, SECOND_NS, counters, point, schema};

use super::super::files::fixture;
use super::super::{copy, options};
use crate::targets::{offload, scans, size, subset, traces};

pub const RANKS: [&str; 2] = ["rank-0", "rank-1"];
const CAN: &str = "temporary files can be made";
/// Size of the file for measurements.
const LARGE_BYTES: usize = 64 << 20;

/// Load of a database over two hours.
const LOAD: &str = "begin,end,database,reads_per_s,writes_per_s\n\
                    2024-05-14T10:00,2024-05-14T11:00,\"A\",200,100\n\
                    2024-05-14T11:00,2024-05-14T12:00,\"A\",210,110\n";

/// Makes the fixtures; what a command has written is removed by [`clear`].
pub fn make(dir: &Path) {
    options::prepare(dir);
    for name in ["run", "calibrate", "sqlite", "noise"] {
        copy(&fixture(name), &dir.join(name));
    }
    make_ranks(dir);
    let scanned = dir.join("scanned");
    fs::create_dir(&scanned).expect(CAN);
    fs::rename(scans::build(&scanned), dir.join("scan")).expect(CAN);
    for name in ["tree", "tree/below", "loads", "subset", "subset/data"] {
        fs::create_dir(dir.join(name)).expect(CAN);
    }
    let load = LOAD.as_bytes().to_vec();
    let [keys, rows, oracle, manifest] =
        [subset::key_files(), subset::row_files(), subset::exports(), subset::manifests()]
            .map(|mut seeds| seeds.swap_remove(0));
    let files: [(&str, Vec<u8>); 16] = [
        ("large", b"blockstone".repeat(LARGE_BYTES / 10 + 1)[..LARGE_BYTES].to_vec()),
        ("password", b"a-secret-of-more-than-22-characters\n".to_vec()),
        ("key", b"0123456789abcdef0123456789abcdef".to_vec()),
        ("tree/one", vec![1; 100_000]),
        ("tree/below/two", vec![2; 5_000]),
        ("load", load.clone()),
        ("loads/load", load),
        ("catalogue.toml", size::catalogues().swap_remove(0)),
        ("cores.csv", size::performance_lists().swap_remove(0)),
        ("counters.csv", offload::tables().swap_remove(0)),
        ("sql.trc", traces::oracle().swap_remove(0)),
        ("keys.toml", keys),
        ("keys.csv", oracle),
        ("rows.csv", rows),
        ("subset/subset.json", manifest),
        ("subset/data/00001.public.a.copy", b"1\t\\N\n2\t1\n".to_vec()),
    ];
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).expect(CAN);
    }
    for name in ["password", "key"] {
        fs::set_permissions(dir.join(name), Permissions::from_mode(0o600)).expect(CAN);
    }
}

/// Makes the recordings `rank-0` and `rank-1`, of a load that two processes applied together.
fn make_ranks(dir: &Path) {
    static LOAD: Schema = schema("load", &counters(["completed_ops", "completed_bytes"]));
    for (rank, name) in (0..).zip(RANKS) {
        let mut manifest = testing::manifest();
        manifest.id = format!("rank0{rank}");
        manifest.rank = Some(Rank { rank, ranks: 2, ..Rank::default() });
        let mut recording = RecordingBuilder::new(manifest, &[&LOAD]);
        recording.add(point("random-read/psync/x4"), (SECOND_NS, SECOND_NS));
        let both = [1_000, 8_192_000];
        recording.series("load", ["completed_ops", "completed_bytes"], &[("", both)]);
        recording.write(&dir.join(name));
    }
}

/// Removes what the command was allowed to write.
pub fn clear(dir: &Path) {
    options::prepare(dir);
    for entry in fs::read_dir(dir.join("data")).expect(CAN).flatten() {
        remove(&entry.path());
    }
}

/// Removes a file or a directory, if it exists.
pub fn remove(path: &Path) {
    let is_dir = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let _ = if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// Copies a fixture to a path, with its mode.
pub fn lay(fixture: &Path, to: &Path) {
    if fixture.is_dir() {
        copy(fixture, to);
    } else {
        fs::copy(fixture, to).expect(CAN);
    }
}

/// Returns the paths of everything below `dir`, relative to it.
pub fn below(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            found.extend(path.strip_prefix(dir).map(Path::to_owned));
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(path);
            }
        }
    }
    found
}
