//! Memory is limited, and estimates made within the limit are near the truth.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use blockstone_base::Bytes;

use super::{Place, generate, grids, number, ratio, rows, same, scanned};

const MIB: usize = 1 << 20;

#[test]
fn a_sparse_file_of_64_gib_is_counted_within_256_mib_and_not_read() {
    let place = Place::beside();
    let random = fs::read(generate(&place, "random", 1, "32M").join("random-1.dbf")).unwrap();
    let path = place.file("sparse");
    let file = File::create(&path).unwrap();
    file.set_len(Bytes::gib(64).get()).unwrap();
    // The third island repeats the first one, shifted by half a block of 8K.
    let islands = [
        (1 << 20, 0..12 * MIB),
        (5 << 30, 12 * MIB..24 * MIB),
        ((33 << 30) + 4096, 0..12 * MIB),
        (63 << 30, 24 * MIB..32 * MIB),
    ];
    for (at, part) in islands {
        file.write_all_at(&random[part], at).unwrap();
    }
    file.sync_all().unwrap();
    let found = scanned(&["--memory", "256M", "--threads", "8"], &[&path]);
    let grid = |size| grids(&found)[&(size, 0)].clone();
    let counts = |size| ["unique_blocks", "same_file_duplicates"].map(|it| number(&grid(size), it));
    assert_eq!(counts(4096), [8192, 3072]);
    // 1,536 blocks shifted by half a block span 1,537 blocks, none of which repeats.
    assert_eq!(counts(8192), [4096 + 1537, 0]);
    for size in [4096, 8192] {
        assert_eq!(grid(size)["share"], 1);
        let contents = number(&grid(size), "unique_blocks") + 1;
        let blocks = Bytes::gib(64).get() / size;
        assert_eq!(number(&grid(size), "blocks"), blocks);
        same(ratio(&grid(size), "dedup_ratio"), blocks as f64 / contents as f64);
    }
    let file = &rows(&found, "files")[0];
    assert_eq!(number(file, "bytes"), Bytes::gib(64).get());
    let read = number(&found, "read_bytes");
    assert!((44..=50).contains(&(read >> 20)), "{read}");
    assert_eq!(number(file, "hole_bytes") + read, Bytes::gib(64).get());
    let memory = number(&found, "memory_bytes");
    assert!(memory <= Bytes::mib(256).get(), "{memory}");
}

#[test]
fn what_does_not_fit_is_estimated_and_the_truth_lies_in_the_interval() {
    let place = Place::beside();
    // More contents in each table than it has memory for: 64 tables share the memory.
    let random = generate(&place, "random", 1, "64M").join("random-1.dbf");
    let whole = fs::read(&random).unwrap();
    let again = [&whole[..32 * MIB], &whole[..16 * MIB]].concat();
    let copy = place.file("copy");
    fs::write(&copy, again).unwrap();
    let offsets: Vec<String> = (0..32).map(|sector| format!("{}B", sector * 512)).collect();
    let offsets = offsets.join(",");
    let arguments =
        ["--memory", "102M", "--threads", "2", "--block-size", "4K,8K", "--offset", &offsets];
    let found = scanned(
        &[&arguments[..], &["--compress", "not", "--no-shifts"]].concat(),
        &[&random, &copy],
    );
    let units = 112 * MIB as u64 / 4096;
    for skipped in 0..4 {
        let grids = grids(&found);
        let grid = grids[&(4096, skipped * 4096)];
        assert!(ratio(grid, "share") < 1.0 && number(grid, "contents_kept") > 1000, "{grid:#}");
        // The second file has at its end what both skip at their beginning.
        let blocks = units - 2 * skipped;
        assert_eq!(number(grid, "blocks"), blocks);
        let truth = blocks as f64 / (64 * MIB / 4096) as f64;
        let [low, at, high] = ["low", "value", "high"].map(|it| ratio(&grid["dedup_ratio"], it));
        // One sample in twenty misses its interval, and which one is drawn here depends on the
        // memory that the program itself takes: a miss by twice the interval occurs once in ten
        // thousand.
        let (middle, half) = (f64::midpoint(low, high), (high - low) / 2.0);
        assert!((truth - middle).abs() <= 2.0 * half, "{low} … {high} far from {truth}");
        assert!(low < at && at < high && high / low < 1.15, "{low} … {at} … {high}");
    }
    assert!(found["dedup_ratio"].is_object(), "{:#}", found["dedup_ratio"]);
    assert_eq!(found["compression_ratio"]["unmeasured"], "off");
    let memory = number(&found, "memory_bytes");
    assert!(memory <= Bytes::mib(94).get(), "{memory}");
}
