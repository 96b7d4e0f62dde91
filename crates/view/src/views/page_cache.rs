//! Page cache of the files that databases hold open.

use blockstone_figures::{Interval, Missing, ratio};

use crate::table::{Bytes, Count, Shape, Share, Text, Value, View, level, sorted, text, unmerged};

pub const VIEW: View = View {
    name: "page-cache",
    title: "Page cache of databases",
    doc: "What the page cache holds of the files that watched processes have open: for each \
          server, and for the files that have most of it. Examined every 10 s.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("server", "server", "The server or group."),
        text("file", "file", "The file; empty in the sum of all files of a server."),
        level("cached_bytes", "cached", Bytes, "Bytes of it in the page cache."),
        unmerged("cached_share", "of file", Share, "Their share of its size."),
        unmerged("page_cache_share", "of cache", Share, "Their share of the whole page cache."),
        level("dirty_bytes", "dirty", Bytes, "Those that are to be written, or are being written."),
        level("size_bytes", "size", Bytes, "Its size."),
        level(
            "open_mode",
            "opened",
            Text,
            "`direct` if every descriptor bypasses the page cache (O_DIRECT), `buffered` if none \
             does, or `both`.",
        ),
        level("files", "files", Count, "Files that were looked at."),
        level(
            "unseen_files",
            "unseen",
            Count,
            "Files that this user may not open, or that take too long.",
        ),
    ],
    rows,
};

const PROBE: &str = "cached_files";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let rows = interval.objects(PROBE).into_iter().map(|object| {
        let level = |column| interval.level(PROBE, object, column);
        let text = |column| Value::from(interval.text(PROBE, object, column));
        let cached = level("cached_bytes");
        vec![
            text("server"),
            text("file"),
            cached.into(),
            ratio(cached, level("size_bytes")).into(),
            ratio(cached, interval.level("memory", "", "file_cache_bytes")).into(),
            level("dirty_bytes").into(),
            level("size_bytes").into(),
            text("open_mode"),
            level("files").into(),
            level("unseen_files").into(),
        ]
    });
    // A file that was not among the first at the last reading has no row.
    let known = rows.filter(|row| row[2] != Value::Missing(Missing::Unknown));
    sorted(known.collect(), 2)
}
