//! All experiments. Adding one is a file and a line here.

use blockstone_testkit::Need;

use super::{Lab, reduce, redundancy, verb_cost};
use crate::goals::Entry;

pub const ALL: &[Entry<Lab>] = &[
    Entry {
        name: "redundancy",
        doc: "What mirroring costs: 128 readers, then 128 writers on 8 disks, with 1 to 3 copies",
        needs: &[Need::Root, Need::Loop, Need::Blkio],
        run: redundancy::run,
    },
    Entry {
        name: "reduce",
        doc: "Whether estimates of deduplication keep their word: 100 streams of 64 GiB in 96 MiB",
        needs: &[],
        run: reduce::run,
    },
    Entry {
        name: "verb-cost",
        doc: "What adding a verb takes: one is added to a copy of the tree, tried and counted",
        needs: &[],
        run: verb_cost::run,
    },
];
