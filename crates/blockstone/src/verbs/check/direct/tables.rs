//! The tables of `check direct`.

use blockstone_base::row;
use blockstone_base::table::{Heading, Missing, Table, Value, bytes, count, ratio, share, text};
use blockstone_check::direct::findings::{Cell, Class, DirectFindings, OpenFile, Operation, Shape};
use blockstone_report::Section;

/// Columns of the overview of classes.
const MATRIX: &[Heading] = &[
    text("operation", "operation", "What was requested, on a file of its own."),
    text("block", "block", "Whole blocks from aligned memory."),
    text("sector", "512 B", "512 bytes within a block."),
    text("memory_512", "memory+512", "Whole blocks from memory 512 bytes behind a page's start."),
    text("memory_4", "memory+4", "Whole blocks from memory 4 bytes behind a page's start."),
];

const CELLS: &[Heading] = &[
    text("operation", "operation", "What was requested."),
    text("shape", "shape", "How it lay in the file and in memory."),
    text("class", "class", "direct, buffered, dropped, memory, refused or unknown."),
    text("promised", "statx", "Whether statx(2) allows this shape on this file."),
    count("requests", "requests", "Requests that succeeded."),
    text("error", "error", "What the kernel answered to the first that did not."),
    count("added_pages", "pages added", "Pages that they added to the page cache."),
    count("direct_ios", "direct path", "Times the kernel entered its direct path."),
    bytes("after_cached_bytes", "cached", "Of the file in the page cache afterwards."),
    ratio("charged_ratio", "charged ÷ asked", "Bytes charged to the process ÷ bytes asked for."),
    text("evidence", "evidence", "What the class rests on."),
];

const FILES: &[Heading] = &[
    text("file", "file", "Its path."),
    text("opened", "flags", "Whether its descriptors have O_DIRECT: direct, buffered or both."),
    text("requested", "set", "What the server's settings ask for."),
    text("class", "effect", "direct, buffered, dropped, memory or unknown."),
    share("cached_share", "via cache", "Requests that added pages to the page cache ÷ requests."),
    count("requests", "requests", "Reads and writes seen."),
    text("sync", "sync", "Whether they have O_DSYNC or O_SYNC."),
    bytes("cached_bytes", "cached", "Of the file in the page cache at the end."),
];

const DETAILS: &[Heading] = &[
    text("file", "file", "Its path."),
    text("file_type", "type", "data, redo, temp, control or other."),
    text("setting", "setting", "The setting that says how it is to be opened."),
    count("descriptors", "descriptors", "Descriptors seen."),
    bytes("size_bytes", "size", "Its size."),
    bytes("dirty_bytes", "dirty", "Of it in the page cache and not yet written."),
    text("evidence", "evidence", "What the effect rests on."),
];

pub const TABLES: &[(&str, &[Heading])] = &[
    ("direct-matrix", MATRIX),
    ("direct-cells", CELLS),
    ("open-files", FILES),
    ("open-file-details", DETAILS),
];

/// Files on one screen; the page and the document have all of them.
const SCREEN_ROWS: usize = 30;

pub fn sections(findings: &DirectFindings) -> Vec<Section> {
    if !findings.is_of_path() {
        let details = Table::new("open-file-details", "Evidence by file", DETAILS);
        return vec![
            Section::of("open-files", files(&findings.files)),
            Section::page("open-file-details", "Evidence by file")
                .with([details.with(findings.files.iter().map(detail))]),
        ];
    }
    let about = "Each request asks to bypass the page cache (O_DIRECT).";
    vec![
        Section::of("direct-matrix", matrix(&findings.cells)).about(about),
        Section::new("direct-evidence", "What the classes rest on").with(evidence(&findings.cells)),
        Section::page("direct-cells", "All cells").with([cells(&findings.cells)]),
    ]
}

fn matrix(cells: &[Cell]) -> Table {
    let mut table = Table::new("direct-matrix", "Class by operation and shape", MATRIX);
    for &operation in Operation::ALL {
        let of = |shape: Shape| {
            cells.iter().find(|cell| cell.operation == operation && cell.shape == shape)
        };
        if Shape::ALL.iter().all(|&shape| of(shape).is_none()) {
            continue;
        }
        let class = |shape: Shape| of(shape).map_or("", |cell| cell.class.name());
        let mut row: Vec<Value> = vec![operation.name().into()];
        row.extend(Shape::ALL.iter().map(|&shape| Value::from(class(shape))));
        table.push(row);
    }
    table
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

fn cells(cells: &[Cell]) -> Table {
    let row = |cell: &Cell| {
        let promised = match cell.promised {
            Some(true) => "allows it",
            Some(false) => "does not",
            None => "says nothing",
        };
        row![
            cell.operation.name(),
            cell.shape.name(),
            cell.class.name(),
            promised,
            cell.requests,
            cell.error.as_deref().unwrap_or_default(),
            known(cell.added_pages),
            known(cell.direct_ios),
            known(cell.after_cached_bytes),
            cell.charged_ratio.map_or(Value::from(Missing::Unknown), Value::from),
            cell.evidence.as_str()
        ]
    };
    Table::new("direct-cells", "All cells", CELLS).with(cells.iter().map(row))
}

fn files(files: &[OpenFile]) -> Table {
    let row = |file: &OpenFile| {
        row![
            file.path.as_str(),
            file.opened.name(),
            file.requested.map_or("", |requested| requested.name()),
            file.class.name(),
            file.cached_share.map_or(Value::default(), Value::from),
            known(file.requests),
            file.sync.name(),
            known(file.cached_bytes)
        ]
    };
    let mut table = Table::new("open-files", "Open files", FILES).on_screen(SCREEN_ROWS);
    table = table.with(files.iter().map(row));
    if files.is_empty() {
        table.notes.push("It has no file open that lies on this machine's storage.".to_owned());
    }
    table
}

fn detail(file: &OpenFile) -> blockstone_base::table::Row {
    row![
        file.path.as_str(),
        file.file_type.as_str(),
        file.setting.as_deref().unwrap_or_default(),
        file.descriptors,
        file.size_bytes,
        known(file.dirty_bytes),
        file.evidence.as_str()
    ]
}

fn known(number: Option<u64>) -> Value {
    number.map_or(Value::from(Missing::Unknown), Value::from)
}
