//! The tables of `check coherence`.

use blockstone_base::row;
use blockstone_base::table::{Heading, Table, Value, count, text, time};
use blockstone_check::coherence::findings::{Cell, Class, CoherenceFindings, ReadMode, WriteMode};
use blockstone_report::Section;

const MATRIX: &[Heading] = &[
    text("write", "write", "How one rank writes."),
    text("held", "held", "Another reads through the page cache, its descriptor open."),
    text("reopened", "reopened", "The same, from a descriptor that is opened for each read."),
    text("direct", "direct", "Another reads with O_DIRECT."),
    text("mapped", "mapped", "Another reads from memory that is mapped to the file."),
];

const CASES: &[Heading] = &[
    text("case", "case", "What was tried."),
    text("class", "class", "linearizable, sequential, reopen, timer, never, torn or unknown."),
    count("operations", "operations", "Operations that were judged."),
    count("stale", "stale", "Reads that did not return what was acknowledged before them."),
    time("lag_ns_p50", "lag p50", "From the acknowledgement to the end of the read that has it."),
    time("lag_ns_p99", "lag p99", "The same, 99th percentile."),
    time("lag_ns_max", "lag max", "The longest."),
    text("evidence", "evidence", "What was seen."),
];

const WITNESS: &[Heading] = &[
    text("case", "case", "What was tried."),
    text("operation", "operation", "write or read."),
    text("rank", "rank", "Who did it."),
    text("subject", "subject", "Where."),
    text("version", "version", "What it wrote or returned."),
    time("start_ns", "start", "Since the check started."),
    time("end_ns", "end", "Since the check started; empty if it was not acknowledged."),
];

pub const TABLES: &[(&str, &[Heading])] = &[
    ("coherence-matrix", MATRIX),
    ("coherence-cases", CASES),
    ("coherence-others", CASES),
    ("coherence-witness", WITNESS),
];

pub fn sections(findings: &CoherenceFindings) -> Vec<Section> {
    let mut sections = Vec::new();
    let cells = &findings.cells;
    if cells.iter().any(|cell| cell.case.starts_with("ping-pong/")) {
        let about = "One rank writes, and then another reads.";
        sections.push(Section::of("coherence-matrix", matrix(cells)).about(about));
    }
    let others = cells.iter().filter(|cell| !cell.case.starts_with("ping-pong/"));
    let others = Table::new("coherence-others", "Other cases", CASES).with(others.map(case));
    if !cells.is_empty() {
        sections.push(Section::of("coherence-others", others));
        let said = evidence(cells);
        if !said.is_empty() {
            let title = "What the other classes rest on";
            sections.push(Section::new("coherence-evidence", title).with(said));
        }
        let all = Table::new("coherence-cases", "All cases", CASES).with(cells.iter().map(case));
        sections.push(Section::page("coherence-cases", "All cases").with([all]));
    }
    let witnesses = cells.iter().filter(|cell| cell.witness.is_some());
    if witnesses.clone().next().is_some() {
        let title = "Operations that contradict each other";
        let rows = witnesses.flat_map(witness_rows);
        let table = Table::new("coherence-witness", title, WITNESS).with(rows);
        sections.push(Section::page("coherence-witness", title).with([table]));
    }
    sections
}

/// Returns a paragraph for each case that is not linearizable.
fn evidence(cells: &[Cell]) -> Vec<String> {
    let others = cells.iter().filter(|cell| cell.class != Class::Linearizable);
    others.map(|cell| format!("{}: {}: {}", cell.case, cell.class.name(), cell.evidence)).collect()
}

fn matrix(cells: &[Cell]) -> Table {
    let title = "Class by how one writes and another reads";
    let mut table = Table::new("coherence-matrix", title, MATRIX);
    for write in WriteMode::ALL {
        let class = |read: &ReadMode| {
            let case = format!("ping-pong/{}/{}", write.name(), read.name());
            let cell = cells.iter().find(|cell| cell.case == case);
            Value::from(cell.map_or("", |cell| cell.class.name()))
        };
        let mut row: Vec<Value> = vec![write.name().into()];
        row.extend(ReadMode::ALL.iter().map(class));
        table.push(row);
    }
    table
}

fn case(cell: &Cell) -> blockstone_base::table::Row {
    row![
        cell.case.as_str(),
        cell.class.name(),
        cell.operations,
        cell.stale,
        known(cell.lag_ns_p50),
        known(cell.lag_ns_p99),
        known(cell.lag_ns_max),
        cell.evidence.as_str()
    ]
}

fn witness_rows(cell: &Cell) -> Vec<blockstone_base::table::Row> {
    let operations = cell.witness.iter().flatten();
    let row = |it: &blockstone_check::coherence::findings::WitnessOperation| {
        row![
            cell.case.as_str(),
            it.operation.as_str(),
            it.rank.to_string().as_str(),
            it.subject.as_str(),
            format!("v{}", it.version).as_str(),
            it.start_ns,
            known(it.end_ns)
        ]
    };
    operations.map(row).collect()
}

fn known(number: Option<u64>) -> Value {
    number.map_or(Value::default(), Value::from)
}
