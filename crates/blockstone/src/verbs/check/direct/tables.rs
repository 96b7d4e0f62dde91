//! The tables of `check direct`.

use blockstone_base::load::SyncFlag;
use blockstone_base::rows;
use blockstone_base::table::{
    Rows as _, Table, Value, bytes, count, flag, happened, ratio, share, text,
};
use blockstone_check::direct::findings::{
    Cell, Class, DirectFindings, OpenFile, Opened, Operation, Requested, Shape, Submitter,
};
use blockstone_report::Section;
use blockstone_report::render::json::schema::Tables;

rows! {
    /// Overview of classes.
    struct MatrixRow {
        /// Operation that was requested, on a file of its own.
        operation: &'static str = text("operation"),
        /// Whole blocks from aligned memory.
        block: Value = text("block"),
        /// 512 bytes within a block.
        sector: Value = text("512 B"),
        /// Whole blocks from memory 512 bytes after the start of a page.
        memory_512: Value = text("memory+512"),
        /// Whole blocks from memory 4 bytes after the start of a page.
        memory_4: Value = text("memory+4"),
    }
}

rows! {
    /// Operations in each shape.
    struct CellRow {
        /// Operation that was requested.
        operation: &'static str = text("operation"),
        /// How it lay in the file and in memory.
        shape: &'static str = text("shape"),
        /// `direct`, `buffered`, `dropped`, `memory`, `refused` or `unknown`.
        class: &'static str = text("class").answer(),
        /// Whether statx(2) allows this shape on this file.
        promised: Option<bool> = flag("statx"),
        /// Requests that succeeded.
        requests: u64 = count("requests"),
        /// Error of the first that did not.
        error: Value = text("error"),
        /// Pages of 4 KiB that they added to the page cache.
        added_pages: Option<u64> = count("pages added"),
        /// Times the kernel entered its direct path.
        direct_ios: Option<u64> = count("direct path"),
        /// Bytes of the file in the page cache before the requests.
        before_cached_bytes: Option<u64> = bytes("cached before"),
        /// Bytes of the file in the page cache after the requests.
        after_cached_bytes: Option<u64> = bytes("cached"),
        /// Bytes charged to the process ÷ bytes requested.
        charged_ratio: Option<f64> = ratio("charged ÷ asked"),
        /// Observations on which the class rests.
        evidence: String = text("evidence").prose(),
    }
}

rows! {
    /// Files that processes hold open.
    struct FileRow {
        /// Its path.
        file: String = text("file"),
        /// Whether its descriptors have `O_DIRECT`: `direct`, `buffered` or `both`.
        opened: &'static str = text("flags"),
        /// Mode that the server's settings request.
        requested: Value = text("set"),
        /// `direct`, `buffered`, `dropped`, `memory` or `unknown`.
        class: &'static str = text("effect").answer(),
        /// Requests that added pages to the page cache ÷ requests.
        cached_share: Value = share("via cache"),
        /// Reads and writes seen.
        requests: Option<u64> = count("requests"),
        /// Whether its descriptors have `O_DSYNC` or `O_SYNC`.
        sync: &'static str = text("sync"),
        /// Bytes of the file in the page cache at the end.
        cached_bytes: Option<u64> = bytes("cached"),
    }
}

rows! {
    /// Processes by how they request I/O.
    struct SubmitterRow {
        /// Process id.
        pid: String = text("process"),
        /// Its command line, shortened.
        title: String = text("command"),
        /// How it requests I/O, most requests first: `io_uring`, `aio` (`io_submit`), `blocking`
        /// (system calls that wait) or `mapped` (page faults); `none`.
        how: Value = text("how").answer(),
        /// Requests through `io_uring`.
        io_uring_requests: Option<u64> = count("io_uring"),
        /// Requests through AIO.
        aio_requests: Option<u64> = count("aio"),
        /// Reads and writes that block.
        blocking_requests: Option<u64> = count("blocking"),
        /// Page faults of mapped files.
        mapped_requests: Option<u64> = count("mapped"),
        /// `io_uring` instances that it has open.
        rings: Option<u64> = count("rings"),
        /// AIO contexts that it has.
        aio_contexts: Option<u64> = count("contexts"),
    }
}

rows! {
    /// Evidence by file.
    struct DetailRow {
        /// Its path.
        file: String = text("file"),
        /// `data`, `redo`, `temp`, `control` or `other`.
        file_type: String = text("type"),
        /// The setting that says how it is to be opened.
        setting: Value = text("setting"),
        /// How the settings request its writes to be made durable.
        requested_sync: Value = text("sync set"),
        /// Descriptors seen.
        descriptors: u64 = count("descriptors"),
        /// Its size.
        size_bytes: u64 = bytes("size"),
        /// Bytes of the file in the page cache that are not yet written.
        dirty_bytes: Option<u64> = bytes("dirty"),
        /// Observations on which the effect rests.
        evidence: String = text("evidence").prose(),
    }
}

pub const TABLES: Tables = &[
    ("direct-matrix", MatrixRow::COLUMNS),
    ("direct-cells", CellRow::COLUMNS),
    ("open-files", FileRow::COLUMNS),
    ("submissions", SubmitterRow::COLUMNS),
    ("open-file-details", DetailRow::COLUMNS),
];

/// Files on one screen; the page and the document have all of them.
const SCREEN_ROWS: usize = 30;

pub fn sections(findings: &DirectFindings) -> Vec<Section> {
    if !findings.is_of_path() {
        let (title, details) = ("Evidence by file", findings.files.iter().map(DetailRow::of));
        return vec![
            Section::of("open-files", files(&findings.files)),
            Section::of("submissions", submissions(findings)),
            Section::page("open-file-details", title).with([DetailRow::table(
                "open-file-details",
                title,
                details,
            )]),
        ];
    }
    let about = "Each request asks to bypass the page cache (O_DIRECT).";
    let cells = findings.cells.iter().map(CellRow::of);
    vec![
        Section::of("direct-matrix", matrix(&findings.cells)).about(about),
        Section::new("direct-evidence", "What the classes rest on").with(evidence(&findings.cells)),
        Section::page("direct-cells", "All cells").with([CellRow::table(
            "direct-cells",
            "All cells",
            cells,
        )]),
    ]
}

fn matrix(cells: &[Cell]) -> Table {
    let row = |&operation: &Operation| {
        let mut of = cells.iter().filter(|cell| cell.operation == operation).peekable();
        of.peek()?;
        let class = |shape| {
            let cell = of.clone().find(|cell| cell.shape == shape);
            happened(cell.map(|cell| cell.class.name()))
        };
        Some(MatrixRow {
            operation: operation.name(),
            block: class(Shape::Block),
            sector: class(Shape::Sector),
            memory_512: class(Shape::Memory512),
            memory_4: class(Shape::Memory4),
        })
    };
    let rows = Operation::ALL.iter().filter_map(row);
    MatrixRow::table("direct-matrix", "Class by operation and shape", rows)
}

/// One paragraph for each class and evidence, in the order of the cells.
fn evidence(cells: &[Cell]) -> Vec<String> {
    let mut groups: Vec<((Class, &str), Vec<&Cell>)> = Vec::new();
    for cell in cells {
        let key = (cell.class, cell.evidence.as_str());
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(cell),
            None => groups.push((key, vec![cell])),
        }
    }
    let text = |((class, evidence), group): ((Class, &str), Vec<&Cell>)| {
        format!("{}: {evidence} ({})", class.name(), cases(&group))
    };
    groups.into_iter().map(text).collect()
}

/// The cases of a group, in short as `read, append: block, 512` if each of these operations occurs
/// in each of these shapes.
fn cases(group: &[&Cell]) -> String {
    let operations = Operation::ALL.iter().filter(|it| group.iter().any(|c| c.operation == **it));
    let shapes = Shape::ALL.iter().filter(|it| group.iter().any(|cell| cell.shape == **it));
    let operations: Vec<&str> = operations.map(|it| it.name()).collect();
    let shapes: Vec<&str> = shapes.map(|it| it.name()).collect();
    if operations.len() * shapes.len() == group.len() {
        return format!("{}: {}", operations.join(", "), shapes.join(", "));
    }
    group.iter().map(|cell| cell.case()).collect::<Vec<_>>().join(", ")
}

fn files(files: &[OpenFile]) -> Table {
    let rows = files.iter().map(FileRow::of);
    let mut table = FileRow::table("open-files", "Open files", rows).on_screen(SCREEN_ROWS);
    if files.is_empty() {
        table.notes.push("It has no file open that lies on this machine's storage.".to_owned());
    }
    table
}

fn submissions(findings: &DirectFindings) -> Table {
    let rows = findings.submitters.iter().map(SubmitterRow::of);
    let title = "How processes request I/O";
    let mut table = SubmitterRow::table("submissions", title, rows).on_screen(SCREEN_ROWS);
    if findings.submitters.is_empty() && findings.submissions_unmeasured.is_none() {
        table.notes.push("No process requested any I/O of files in this time.".to_owned());
    }
    table
}

impl SubmitterRow {
    fn of(submitter: &Submitter) -> Self {
        let count = |of: fn(&Requested) -> u64| submitter.requested.as_ref().map(of);
        Self {
            pid: submitter.pid.to_string(),
            title: submitter.title.clone(),
            how: submitter.requested.map(|requested| requested.how()).into(),
            io_uring_requests: count(|it| it.io_uring),
            aio_requests: count(|it| it.aio),
            blocking_requests: count(|it| it.blocking),
            mapped_requests: count(|it| it.mapped),
            rings: submitter.rings,
            aio_contexts: submitter.aio_contexts,
        }
    }
}

impl CellRow {
    fn of(cell: &Cell) -> Self {
        Self {
            operation: cell.operation.name(),
            shape: cell.shape.name(),
            class: cell.class.name(),
            promised: cell.promised,
            requests: cell.requests,
            error: happened(cell.error.as_deref()),
            added_pages: cell.added_pages,
            direct_ios: cell.direct_ios,
            before_cached_bytes: cell.before_cached_bytes,
            after_cached_bytes: cell.after_cached_bytes,
            charged_ratio: cell.charged_ratio,
            evidence: cell.evidence.clone(),
        }
    }
}

impl FileRow {
    fn of(file: &OpenFile) -> Self {
        Self {
            file: file.path.clone(),
            opened: file.opened.name(),
            requested: happened(file.requested.map(Opened::name)),
            class: file.class.name(),
            cached_share: happened(file.cached_share),
            requests: file.requests,
            sync: file.sync.name(),
            cached_bytes: file.cached_bytes,
        }
    }
}

impl DetailRow {
    fn of(file: &OpenFile) -> Self {
        Self {
            file: file.path.clone(),
            file_type: file.file_type.clone(),
            setting: happened(file.setting.as_deref()),
            requested_sync: happened(file.requested_sync.map(SyncFlag::name)),
            descriptors: file.descriptors,
            size_bytes: file.size_bytes,
            dirty_bytes: file.dirty_bytes,
            evidence: file.evidence.clone(),
        }
    }
}
