//! The tables of `check iosize`.

use blockstone_base::rows;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{
    Missing, Rows as _, Table, Value, bytes, count, happened, ratio, share, text, time,
};
use blockstone_check::iosize::findings::{DirectCost, Flow, IosizeFindings, Size, Tool, first_of};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Detail, Section};

use super::second_best;

rows! {
    /// I/O by file and direction.
    struct FlowRow {
        /// Its path, or the program that was run on a file.
        file: String = text("file"),
        /// `read` or `write`.
        direction: &'static str = text("direction"),
        /// `as-asked`, `merged`, `split`, `cached` or `unknown`.
        class: &'static str = text("class").answer(),
        /// Mean of the bytes that a call moved.
        asked_bytes_mean: Value = bytes("asked"),
        /// Pages of 4 KiB added to the page cache.
        added_pages: u64 = count("pages added"),
        /// Mean of the bytes of a request to the device.
        device_bytes_mean: Value = bytes("device"),
        /// Exact sizes of calls, the most common first, by kind of call.
        asked: Value = text("sizes asked"),
        /// Exact sizes of requests, the most common first.
        device: Value = text("at the device"),
        /// Calls that begin where the last one ended ÷ calls.
        sequential_share: Value = share("sequential"),
        /// Calls that begin and end at multiples of 4 KiB ÷ calls.
        aligned_share: Value = share("aligned"),
    }
}

rows! {
    /// Evidence by file and direction.
    struct EvidenceRow {
        /// Its path, or the program that was run on a file.
        file: String = text("file"),
        /// `read` or `write`.
        direction: Value = text("direction"),
        /// Calls that did not fail.
        requests: Value = count("calls"),
        /// Requests to the device.
        device_requests: Value = count("requests"),
        /// Observations on which the class rests.
        evidence: String = text("evidence").prose(),
    }
}

rows! {
    /// I/O by program that was run.
    struct ToolRow {
        /// The program.
        tool: String = text("tool"),
        /// `read` or `write`.
        direction: &'static str = text("direction"),
        /// `as-asked`, `merged`, `split`, `cached` or `unknown`.
        class: &'static str = text("class").answer(),
        /// Exact sizes of calls, the most common first, by kind of call.
        asked: Value = text("asked"),
        /// Size that was published for its calls in Red Hat Enterprise Linux 4, of 2005.
        published_bytes: Value = bytes("in 2005"),
        /// Exact sizes of requests to the device, the most common first.
        device: Value = text("device"),
        /// Version as the program prints it.
        version: Value = text("version"),
    }
}

rows! {
    /// Predicted time of the same calls past the page cache.
    struct DirectCostRow {
        /// Path of the file, or the program that was run on one.
        file: String = text("file"),
        /// `read` or `write`.
        direction: &'static str = text("direction"),
        /// Calls that copied data.
        calls: u64 = count("calls"),
        /// Mean of the bytes that they moved.
        asked_bytes_mean: f64 = bytes("of"),
        /// Mean time of a direct call of these sizes, measured on the same file system.
        call_ns: Estimate = time("a direct call"),
        /// Time of all these calls, one after the other, if each is direct.
        direct_ns: Estimate = time("all direct").answer(),
        /// Time of direct calls of 1 MiB for the same bytes.
        large_ns: Estimate = time("of 1 MiB"),
        /// The former ÷ the latter.
        gain: Estimate = ratio("gain").answer(),
    }
}

rows! {
    /// Commands that were run.
    struct CommandRow {
        /// The program; missing for a command of the user.
        tool: Value = text("tool"),
        /// With its arguments.
        command: String = text("command"),
        /// Exit code, or 128 plus its signal.
        exit_code: Value = count("exit code"),
    }
}

rows! {
    /// Exact sizes by file and direction.
    struct SizeRow {
        /// Its path, or the program that was run.
        file: String = text("file"),
        /// `read` or `write`.
        direction: &'static str = text("direction"),
        /// The kind of call, or the device.
        layer: &'static str = text("layer"),
        /// The exact size.
        size_bytes: u64 = count("bytes"),
        /// Its frequency.
        count: u64 = count("count"),
    }
}

pub const TABLES: Tables = &[
    ("iosize-flows", FlowRow::COLUMNS),
    ("iosize-tools", ToolRow::COLUMNS),
    ("iosize-direct-costs", DirectCostRow::COLUMNS),
    ("iosize-commands", CommandRow::COLUMNS),
    ("iosize-evidence", EvidenceRow::COLUMNS),
    ("iosize-sizes", SizeRow::COLUMNS),
];

/// Files on one screen; the page and the document have all of them.
const SCREEN_ROWS: usize = 12;
/// Sizes named in one cell.
const NAMED: usize = 1;

pub fn sections(findings: &IosizeFindings) -> Vec<Section> {
    let tools = findings.tools.iter().flat_map(|tool| tool.flows.iter().map(move |it| (tool, it)));
    let of_tools = tools.clone().map(|(_, flow)| flow);
    let all = findings.total.iter().chain(&findings.flows).chain(of_tools.clone());
    let flows = FlowRow::table("iosize-flows", "Sizes by file", all.clone().map(FlowRow::of));
    let mut flows = Section::of("iosize-flows", flows.on_screen(SCREEN_ROWS));
    let tools = ToolRow::table("iosize-tools", "Sizes by tool", tools.map(ToolRow::of));
    if !tools.rows.is_empty() {
        flows = flows.detail(Detail::Page);
    }
    let mut evidence: Vec<EvidenceRow> = all.map(EvidenceRow::of).collect();
    if evidence.is_empty() {
        evidence.push(EvidenceRow::of_nothing(findings));
    }
    let sizes = findings.flows.iter().chain(of_tools).flat_map(SizeRow::of);
    let mut sections = vec![
        Section::of("iosize-tools", tools),
        flows,
        Section::of("iosize-direct-costs", direct_costs(findings)),
        page(CommandRow::table("iosize-commands", "Commands", CommandRow::of(findings))),
        page(EvidenceRow::table("iosize-evidence", "What the classes rest on", evidence)),
        page(SizeRow::table("iosize-sizes", "All sizes", sizes)),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    sections
}

/// Those with the most time first.
fn direct_costs(findings: &IosizeFindings) -> Table {
    let mut costs: Vec<&DirectCost> = findings.direct_costs.iter().collect();
    costs.sort_by(|a, b| b.direct_ns.value.total_cmp(&a.direct_ns.value));
    let rows = costs.into_iter().map(DirectCostRow::of);
    let title = "The same calls past the page cache, as predicted";
    DirectCostRow::table("iosize-direct-costs", title, rows)
}

fn page(table: Table) -> Section {
    Section::of(table.name.clone(), table).detail(Detail::Page)
}

impl FlowRow {
    fn of(flow: &Flow) -> Self {
        Self {
            file: flow.path.clone(),
            direction: flow.direction.name(),
            class: flow.class.name(),
            asked_bytes_mean: happened(flow.asked_bytes_mean()),
            added_pages: flow.added_pages,
            device_bytes_mean: happened(flow.device_bytes_mean()),
            asked: asked(flow),
            device: device(flow),
            sequential_share: happened(flow.sequential_share()),
            aligned_share: happened(flow.aligned_share()),
        }
    }
}

impl EvidenceRow {
    fn of(flow: &Flow) -> Self {
        Self {
            file: flow.path.clone(),
            direction: flow.direction.name().into(),
            requests: flow.calls.iter().map(|calls| calls.calls).sum::<u64>().into(),
            device_requests: flow.device_requests.into(),
            evidence: flow.evidence.clone(),
        }
    }

    /// The row if no call was counted.
    fn of_nothing(findings: &IosizeFindings) -> Self {
        let [direction, requests, device_requests] =
            [const { Value::Missing(Missing::Nothing) }; 3];
        let evidence = findings.charged.as_ref();
        let evidence = evidence.map_or_else(|| "nothing was counted".to_owned(), second_best);
        Self { file: "all files".to_owned(), direction, requests, device_requests, evidence }
    }
}

impl ToolRow {
    fn of((tool, flow): (&Tool, &Flow)) -> Self {
        let published = tool.published.iter().find(|(direction, _)| *direction == flow.direction);
        Self {
            tool: tool.name.clone(),
            direction: flow.direction.name(),
            class: flow.class.name(),
            asked: asked(flow),
            published_bytes: happened(published.map(|(_, bytes)| *bytes)),
            device: device(flow),
            version: named(tool.version.clone()),
        }
    }
}

impl DirectCostRow {
    fn of(cost: &DirectCost) -> Self {
        Self {
            file: cost.path.clone(),
            direction: cost.direction.name(),
            calls: cost.calls,
            asked_bytes_mean: cost.bytes as f64 / cost.calls as f64,
            call_ns: cost.call_ns,
            direct_ns: cost.direct_ns,
            large_ns: cost.large_ns,
            gain: cost.gain,
        }
    }
}

impl CommandRow {
    /// The commands of tools, or the one that the user named.
    fn of(findings: &IosizeFindings) -> Vec<Self> {
        let row = |tool: Option<&str>, command: &str, exit: Option<i32>| Self {
            tool: happened(tool),
            command: command.to_owned(),
            exit_code: happened(exit.map(f64::from)),
        };
        let tools = findings.tools.iter();
        let tools = tools.map(|it| row(Some(it.name.as_str()), &it.command, it.exit));
        let own = findings.exit.map(|code| row(None, &findings.subject, Some(code)));
        tools.chain(own).collect()
    }
}

impl SizeRow {
    fn of(flow: &Flow) -> impl Iterator<Item = Self> {
        let row = move |layer: &'static str, size: &Size| Self {
            file: flow.path.clone(),
            direction: flow.direction.name(),
            layer,
            size_bytes: size.size_bytes,
            count: size.count,
        };
        let calls = flow.calls.iter();
        let calls =
            calls.flat_map(move |calls| calls.sizes.iter().map(move |it| row(calls.kind, it)));
        calls.chain(flow.device.iter().map(move |size| row("device", size)))
    }
}

fn asked(flow: &Flow) -> Value {
    let kinds = flow.calls.iter();
    let kinds = kinds.map(|calls| format!("{} {}", calls.kind, first_of(&calls.sizes, NAMED)));
    named(kinds.collect::<Vec<_>>().join("; "))
}

fn device(flow: &Flow) -> Value {
    named(first_of(&flow.device, NAMED))
}

fn named(text: String) -> Value {
    happened((!text.is_empty()).then_some(text))
}
