//! The tables of `check coherence`.

use blockstone_base::rows;
use blockstone_base::table::{Rows as _, Table, Value, count, happened, text, time};
use blockstone_check::coherence::findings::{
    Cell, Class, CoherenceFindings, ReadMode, WitnessOperation, WriteMode,
};
use blockstone_report::Section;
use blockstone_report::render::json::schema::Tables;

rows! {
    /// Overview of classes.
    struct MatrixRow {
        /// How one rank writes.
        write: &'static str = text("write"),
        /// Another reads through the page cache, its descriptor open.
        held: Value = text("held"),
        /// The same, from a descriptor that is opened for each read.
        reopened: Value = text("reopened"),
        /// Another reads with `O_DIRECT`.
        direct: Value = text("direct"),
        /// Another reads from memory that is mapped to the file.
        mapped: Value = text("mapped"),
    }
}

rows! {
    /// Cases that were tried.
    struct CaseRow {
        /// Case that was tried: `ping-pong/buffered/held` says how data were written and read.
        case: String = text("case"),
        /// `linearizable`, `sequential`, `reopen`, `timer`, `never`, `torn` or `unknown`.
        class: &'static str = text("class").answer(),
        /// Operations that were judged.
        operations: u64 = count("operations"),
        /// Reads that did not return what was acknowledged before them.
        stale: u64 = count("stale"),
        /// Median time from the acknowledgement of a write to the end of the first read that
        /// returns it.
        lag_ns_p50: Value = time("lag p50"),
        /// The same, 99th percentile.
        lag_ns_p99: Value = time("lag p99"),
        /// The longest.
        lag_ns_max: Value = time("lag max"),
        /// Error of the kernel, if the case could not be tried.
        error: Value = text("error"),
        /// Observations on which the class rests.
        evidence: String = text("evidence"),
    }
}

rows! {
    /// Two operations of a case: the second should have seen the first.
    struct WitnessRow {
        /// Case that was tried.
        case: String = text("case"),
        /// `write`, `read`, or the operation on a name.
        operation: String = text("operation"),
        /// The rank that did it.
        rank: u32 = count("rank"),
        /// Block or name that was accessed.
        subject: String = text("subject"),
        /// Version that it wrote or returned.
        version: u64 = count("version"),
        /// Since the check started, on the clock of rank 0.
        start_ns: u64 = time("start"),
        /// Time at which the operation ended, on the clock of rank 0; missing if it was not
        /// acknowledged.
        end_ns: Value = time("end"),
    }
}

pub const TABLES: Tables = &[
    ("coherence-matrix", MatrixRow::COLUMNS),
    ("coherence-cases", CaseRow::COLUMNS),
    ("coherence-others", CaseRow::COLUMNS),
    ("coherence-witness", WitnessRow::COLUMNS),
];

pub fn sections(findings: &CoherenceFindings) -> Vec<Section> {
    let mut sections = Vec::new();
    let cells = &findings.cells;
    if cells.iter().any(|cell| cell.case.starts_with("ping-pong/")) {
        let about = "One rank writes, and then another reads.";
        sections.push(Section::of("coherence-matrix", matrix(cells)).about(about));
    }
    let others = cells.iter().filter(|cell| !cell.case.starts_with("ping-pong/"));
    let others = CaseRow::table("coherence-others", "Other cases", others.map(CaseRow::of));
    if !cells.is_empty() {
        sections.push(Section::of("coherence-others", others));
        let said = evidence(cells);
        if !said.is_empty() {
            let title = "What the other classes rest on";
            sections.push(Section::new("coherence-evidence", title).with(said));
        }
        let all = CaseRow::table("coherence-cases", "All cases", cells.iter().map(CaseRow::of));
        sections.push(Section::page("coherence-cases", "All cases").with([all]));
    }
    if cells.iter().any(|cell| cell.witness.is_some()) {
        let title = "Operations that contradict each other";
        let table =
            WitnessRow::table("coherence-witness", title, cells.iter().flat_map(WitnessRow::of));
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
    let row = |write: &WriteMode| {
        let class = |read: ReadMode| {
            let case = format!("ping-pong/{}/{}", write.name(), read.name());
            let cell = cells.iter().find(|cell| cell.case == case);
            happened(cell.map(|cell| cell.class.name()))
        };
        MatrixRow {
            write: write.name(),
            held: class(ReadMode::Held),
            reopened: class(ReadMode::Reopened),
            direct: class(ReadMode::Direct),
            mapped: class(ReadMode::Mapped),
        }
    };
    let title = "Class by how one writes and another reads";
    MatrixRow::table("coherence-matrix", title, WriteMode::ALL.iter().map(row))
}

impl CaseRow {
    fn of(cell: &Cell) -> Self {
        Self {
            case: cell.case.clone(),
            class: cell.class.name(),
            operations: cell.operations,
            stale: cell.stale,
            lag_ns_p50: happened(cell.lag_ns_p50),
            lag_ns_p99: happened(cell.lag_ns_p99),
            lag_ns_max: happened(cell.lag_ns_max),
            error: happened(cell.error.as_deref()),
            evidence: cell.evidence.clone(),
        }
    }
}

impl WitnessRow {
    fn of(cell: &Cell) -> impl Iterator<Item = Self> {
        let row = move |it: &WitnessOperation| Self {
            case: cell.case.clone(),
            operation: it.operation.clone(),
            rank: it.rank,
            subject: it.subject.clone(),
            version: it.version,
            start_ns: it.start_ns,
            end_ns: happened(it.end_ns),
        };
        cell.witness.iter().flatten().map(row)
    }
}
