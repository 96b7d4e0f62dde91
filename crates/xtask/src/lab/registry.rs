//! All experiments. Adding one takes a file and a line here.

use blockstone_testkit::Need;

use super::{
    Lab, attacks, comparison, copy, coverage, db_time, durability, log_writes, long, mutations,
    nfs, nfs_copy, options, power_cut, reduce, redundancy, size, trace, verb_cost, zoo,
};
use crate::goals::Entry;

pub const ALL: &[Entry<Lab>] = &[
    Entry {
        name: "redundancy",
        doc: "What mirroring costs: 128 readers, then 128 writers on 8 disks, with 1 to 3 copies",
        needs: &[Need::Root, Need::Loop, Need::Blkio],
        run: redundancy::run,
    },
    Entry {
        name: "durability",
        doc: "Whether a commit can be lost: 2,000 lives on hostile disks, cut everywhere",
        needs: &[],
        run: durability::run,
    },
    Entry {
        name: "power-cut",
        doc: "Whether check durability tells lost flushes by cuts: a machine on 6 kinds of disks",
        needs: &[],
        run: power_cut::run,
    },
    Entry {
        name: "log-writes",
        doc: "Whether check durability loses what a disk has, after and between 30 flushes",
        needs: &[Need::Root, Need::Loop],
        run: log_writes::run,
    },
    Entry {
        name: "nfs",
        doc: "Whether checks tell what NFS keeps: a machine with mounts of a server on its host",
        needs: &[Need::Root],
        run: nfs::run,
    },
    Entry {
        name: "nfs-copy",
        doc: "Whether copy has an NFS server copy, and what it does where none can: two servers",
        needs: &[Need::Root],
        run: nfs_copy::run,
    },
    Entry {
        name: "reduce",
        doc: "Whether estimates of deduplication keep their word: 100 streams of 64 GiB in 96 MiB",
        needs: &[],
        run: reduce::run,
    },
    Entry {
        name: "copy",
        doc: "What copy takes beside cp, dd, rsync and gzip, and what it does to reads of a run",
        needs: &[Need::Root, Need::Loop, Need::Blkio, Need::Cachestat, Need::Nbdkit],
        run: copy::run,
    },
    Entry {
        name: "db-time",
        doc: "Whether size predicts what a faster disk buys: six databases on pairs of caps",
        needs: &[
            Need::Root,
            Need::Loop,
            Need::Blkio,
            Need::Postgres,
            Need::PostgresVersions,
            Need::Mariadb,
        ],
        run: db_time::run,
    },
    Entry {
        name: "size",
        doc: "Whether size predicts: a watched load, driven on a disk that carries it and one not",
        needs: &[Need::Root, Need::Loop, Need::Blkio],
        run: size::run,
    },
    Entry {
        name: "trace",
        doc: "Whether trace says of a log what the run counted: PostgreSQL's plans, a slow log",
        needs: &[Need::Postgres, Need::Mariadb],
        run: trace::run,
    },
    Entry {
        name: "coverage",
        doc: "Whether intervals hold the truth as often as they say: eight kinds of load",
        needs: &[],
        run: coverage::run,
    },
    Entry {
        name: "comparison",
        doc: "Whether equal storage is called equal, and lower caps slower: 36 calibrations",
        needs: &[Need::Root, Need::Loop, Need::Blkio],
        run: comparison::run,
    },
    Entry {
        name: "zoo",
        doc: "Whether storage that deceives is caught: 48 set-ups, and 20 honest ones beside them",
        needs: &[
            Need::Root,
            Need::Loop,
            Need::Blkio,
            Need::Xfs,
            Need::Btrfs,
            Need::Tmpfs,
            Need::Zram,
            Need::Nbdkit,
            Need::Postgres,
            Need::Fuse,
            Need::Overlay,
        ],
        run: zoo::run,
    },
    Entry {
        name: "long",
        doc: "Whether a recording of any length can be looked at: a week of 50 disks, 200 roles",
        needs: &[],
        run: long::run,
    },
    Entry {
        name: "mutations",
        doc: "Whether a damaged file can do more than be refused: 3,000 of each kind that is read",
        needs: &[],
        run: mutations::run,
    },
    Entry {
        name: "options",
        doc: "Whether a command line can do more than be refused: 3,000 that nobody would write",
        needs: &[],
        run: options::run,
    },
    Entry {
        name: "attacks",
        doc: "Whether a directory's owner can do more than be refused: every path of every verb",
        needs: &[Need::Root, Need::Loop],
        run: attacks::run,
    },
    Entry {
        name: "verb-cost",
        doc: "What adding a verb takes: one is added to a copy of the tree, tried and counted",
        needs: &[],
        run: verb_cost::run,
    },
];
