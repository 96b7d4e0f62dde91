//! Commits and checkpoints taken apart: how many share a flush, what a flush takes, who writes.

use blockstone_figures::{Interval, ratio};

use super::load_profile::transactions;
use crate::table::{
    Bytes, Count, Shape, Value, View, count, flow, level, mean_of, mean_size, mean_time, share,
    total, unmerged,
};

pub const VIEW: View = View {
    name: "durability",
    title: "Commits and checkpoints",
    doc: "Commits and checkpoints taken apart: commits a flush, times of redo, who writes blocks.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        count("commits_per_s", "commits/s", "Commits a second."),
        mean_of(
            "redo_flushes_per_s",
            "commits_per_redo_flush",
            "group size",
            Count,
            "Commits for each flush of the redo.",
        ),
        count("redo_writes_per_s", "redo writes/s", "Writes of the redo a second."),
        mean_size(
            "redo_writes_per_s",
            "redo_write_bytes",
            "redo write",
            "Redo for each write of it.",
        ),
        mean_time(
            "redo_writes_per_s",
            "redo_write_await_ns",
            "write time",
            "Mean time of a write of the redo.",
        ),
        count("redo_flushes_per_s", "redo flushes/s", "Flushes of the redo a second."),
        mean_time(
            "redo_flushes_per_s",
            "redo_flush_await_ns",
            "flush time",
            "Mean time of a flush of the redo.",
        ),
        unmerged("redo_bytes_per_transaction", "redo each", Bytes, "Redo of a transaction."),
        count("full_page_images_per_s", "full pages/s", "Whole pages written to the redo."),
        count("redo_buffer_full_per_s", "buffer full/s", "Times the redo buffer was full."),
        total("checkpoints_timed", "timed", Count, "Checkpoints started by the timer."),
        total(
            "checkpoints_requested",
            "requested",
            Count,
            "Checkpoints started for another reason.",
        ),
        share("checkpoint_write_share", "writing", "Time in which checkpoints wrote."),
        share("checkpoint_sync_share", "syncing", "Time in which checkpoints flushed files."),
        count("checkpoint_written_blocks_per_s", "by checkpoint/s", "Blocks written so."),
        count("writer_written_blocks_per_s", "by writer/s", "Blocks written to make room."),
        count("session_written_blocks_per_s", "by sessions/s", "Blocks sessions had to write."),
        level("checkpoint_age_bytes", "age", Bytes, "Redo since the last checkpoint."),
        flow("redo_bytes_per_s", "redo", "Redo generated a second."),
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
