//! All comparisons. Adding one takes a file and a line here.

use blockstone_testkit::Need;

use super::{Options, agreement, engine, flash, instance, pgio, reduce, watch};
use crate::goals::Entry;

pub const ALL: &[Entry<Options>] = &[
    Entry {
        name: "engine",
        doc: "What an I/O costs beside fio: IOPS and processor time, in memory and on disk",
        needs: &[Need::Fio, Need::Perf],
        run: engine::run,
    },
    Entry {
        name: "agreement",
        doc: "Whether IOPS and latency on the disk agree with fio, as closely as fio with itself",
        needs: &[Need::Fio],
        run: agreement::run,
    },
    Entry {
        name: "instance",
        doc: "What the miniature instance costs: visits, reads beside a bare pread, commits",
        needs: &[],
        run: instance::run,
    },
    Entry {
        name: "flash",
        doc: "Flash pages a second that the simulated translation layer writes, and its memory",
        needs: &[],
        run: flash::run,
    },
    Entry {
        name: "pgio",
        doc: "Blocks that PostgreSQL reads a CPU-second beside pgio, and CPU of our side",
        needs: &[Need::Root, Need::Postgres],
        run: pgio::run,
    },
    Entry {
        name: "reduce",
        doc: "How fast deduplication is counted: a core from the page cache, and from disk",
        needs: &[Need::Duperemove],
        run: reduce::run,
    },
    Entry {
        name: "watch",
        doc: "What recording every layer once a second costs, beside collectl",
        needs: &[Need::Root, Need::Collectl],
        run: watch::run,
    },
];
