//! Commits and checkpoints in detail: commits per flush, time of a flush, and the writers.

use blockstone_figures::{Interval, ratio};

use super::load_profile::transactions;
use crate::table::{
    Bytes, Count, Shape, Value, View, count, flow, level, mean_of, mean_size, mean_time, share,
    total, unmerged,
};

pub const VIEW: View = View {
    name: "durability",
    title: "Commits and checkpoints",
    doc: "Commits and checkpoints: commits per flush, times of redo writes and flushes, who \
          writes blocks.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        count("commits_per_s", "commits/s", "Commits per second."),
        mean_of(
            "redo_flushes_per_s",
            "commits_per_redo_flush",
            "group size",
            Count,
            "Commits per redo flush.",
        ),
        count("redo_writes_per_s", "redo writes/s", "Redo writes per second."),
        mean_size("redo_writes_per_s", "redo_write_bytes", "redo write", "Bytes per redo write."),
        mean_time(
            "redo_writes_per_s",
            "redo_write_await_ns",
            "write time",
            "Mean time of a redo write.",
        ),
        count("redo_flushes_per_s", "redo flushes/s", "Redo flushes per second."),
        mean_time(
            "redo_flushes_per_s",
            "redo_flush_await_ns",
            "flush time",
            "Mean time of a redo flush.",
        ),
        unmerged("redo_bytes_per_transaction", "redo/transaction", Bytes, "Redo per transaction."),
        count(
            "full_page_images_per_s",
            "full pages/s",
            "Full-page images written to the redo, per second.",
        ),
        count(
            "redo_buffer_full_per_s",
            "buffer full/s",
            "How often the redo buffer was full, per second.",
        ),
        total("checkpoints_timed", "timed", Count, "Checkpoints started by the timer."),
        total(
            "checkpoints_requested",
            "requested",
            Count,
            "Checkpoints started for another reason.",
        ),
        share(
            "checkpoint_write_share",
            "writing",
            "Share of the time in which a checkpoint wrote.",
        ),
        share(
            "checkpoint_sync_share",
            "syncing",
            "Share of the time in which a checkpoint flushed files.",
        ),
        count(
            "checkpoint_written_blocks_per_s",
            "by checkpoint/s",
            "Blocks written by checkpoints, per second.",
        ),
        count(
            "writer_written_blocks_per_s",
            "by writer/s",
            "Blocks written to free buffers, per second.",
        ),
        count(
            "session_written_blocks_per_s",
            "by sessions/s",
            "Blocks written by sessions, per second.",
        ),
        level("checkpoint_age_bytes", "age", Bytes, "Redo since the last checkpoint."),
        flow("redo_bytes_per_s", "redo", "Redo generated per second."),
    ],
    rows,
};

const PROBE: &str = "database";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    if interval.objects(PROBE).is_empty() {
        return Vec::new();
    }
    let of = |probe: &'static str| move |column| interval.moved(probe, "", column);
    let (instance, database, sql) = (of("instance"), of(PROBE), of("sql"));
    let per_s = |moved: crate::Known| Value::from(moved.map(|moved| moved / interval.seconds()));
    let share = |column| Value::from(interval.share(PROBE, "", column));
    vec![vec![
        per_s(instance("commits")),
        ratio(instance("commits"), database("redo_flushes")).into(),
        per_s(instance("redo_writes")),
        ratio(instance("redo_bytes"), instance("redo_writes")).into(),
        ratio(database("redo_write_ns"), instance("redo_writes")).into(),
        per_s(database("redo_flushes")),
        ratio(database("redo_flush_ns"), database("redo_flushes")).into(),
        ratio(instance("redo_bytes"), transactions(interval)).into(),
        per_s(sql("full_page_images")),
        per_s(database("redo_buffer_full")),
        database("checkpoints_timed").into(),
        database("checkpoints_requested").into(),
        share("checkpoint_write_ns"),
        share("checkpoint_sync_ns"),
        per_s(database("checkpoint_written_blocks")),
        per_s(database("writer_written_blocks")),
        per_s(database("session_written_blocks")),
        interval.level(PROBE, "", "checkpoint_age_bytes").into(),
        per_s(instance("redo_bytes")),
    ]]
}
