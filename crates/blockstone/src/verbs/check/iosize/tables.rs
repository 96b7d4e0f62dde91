//! The tables of `check iosize`.

use blockstone_base::row;
use blockstone_base::table::{Heading, Row, Table, Value, bytes, count, share, text};
use blockstone_check::iosize::findings::{Flow, IosizeFindings, Size, first_of};
use blockstone_report::Section;

const FLOWS: &[Heading] = &[
    text("file", "file", "Its path."),
    text("direction", "direction", "read or write."),
    text("class", "class", "as-asked, merged, split, cached or unknown."),
    bytes("asked_bytes_mean", "asked", "Mean of what a call moved."),
    count("added_pages", "pages added", "Pages added to the page cache."),
    bytes("device_bytes_mean", "device", "Mean of a request to the device."),
    text("asked", "sizes asked", "Exact sizes of calls, the commonest first, by kind of call."),
    text("device", "at the device", "Exact sizes of requests, the commonest first."),
    share("sequential_share", "sequential", "Calls that begin where the last one ended ÷ calls."),
    share("aligned_share", "aligned", "Calls that begin and end at multiples of 4 KiB ÷ calls."),
];

const TOOLS: &[Heading] = &[
    text("tool", "tool", "The program that was run."),
    text("direction", "direction", "read or write."),
    text("class", "class", "as-asked, merged, split, cached or unknown."),
    text("asked", "asked", "Exact sizes of calls, the commonest first, by kind of call."),
    text("device", "device", "Exact sizes of requests to the device, the commonest first."),
    text("version", "version", "What the program says of itself."),
];

const COMMANDS: &[Heading] = &[
    text("tool", "tool", "The program that was run."),
    text("command", "command", "With its arguments."),
    count("exit_code", "exit code", "How it ended."),
];

const SIZES: &[Heading] = &[
    text("file", "file", "Its path, or the program that was run."),
    text("direction", "direction", "read or write."),
    text("layer", "layer", "The kind of call, or the device."),
    count("size_bytes", "bytes", "The exact size."),
    count("count", "count", "How often."),
];

pub const TABLES: &[(&str, &[Heading])] = &[
    ("iosize-flows", FLOWS),
    ("iosize-tools", TOOLS),
    ("iosize-commands", COMMANDS),
    ("iosize-sizes", SIZES),
];

/// Files on one screen; the page and the document have all of them.
const SCREEN_ROWS: usize = 12;
/// Sizes named in one cell.
const NAMED: usize = 1;

pub fn sections(findings: &IosizeFindings) -> Vec<Section> {
    let mut sections = Vec::new();
    if findings.tools.is_empty() {
        let mut table = Table::new("iosize-flows", "Sizes by file", FLOWS).on_screen(SCREEN_ROWS);
        table = table.with(findings.total.iter().chain(&findings.flows).map(flow_row));
        sections.push(Section::of("iosize-flows", table));
    } else {
        let tools = findings.tools.iter().flat_map(|tool| {
            tool.flows.iter().map(|flow| {
                row![
                    tool.name.as_str(),
                    flow.direction.name(),
                    flow.class.name(),
                    asked(flow),
                    first_of(&flow.device, NAMED),
                    tool.version.as_str()
                ]
            })
        });
        let table = Table::new("iosize-tools", "Sizes by tool", TOOLS).with(tools);
        sections.push(Section::of("iosize-tools", table));
        let commands = findings.tools.iter().map(|tool| {
            let code = tool.exit.map_or(Value::default(), |code| Value::from(f64::from(code)));
            row![tool.name.as_str(), tool.command.as_str(), code]
        });
        let table = Table::new("iosize-commands", "Commands", COMMANDS).with(commands);
        sections.push(Section::page("iosize-commands", "Commands").with([table]));
    }
    let flows = findings.flows.iter();
    let flows = flows.chain(findings.tools.iter().flat_map(|tool| &tool.flows));
    let table = Table::new("iosize-sizes", "All sizes", SIZES).with(flows.flat_map(size_rows));
    sections.push(Section::page("iosize-sizes", "All sizes").with([table]));
    sections
}

fn flow_row(flow: &Flow) -> Row {
    let known = |number: Option<f64>| number.map_or(Value::default(), Value::from);
    row![
        flow.path.as_str(),
        flow.direction.name(),
        flow.class.name(),
        known(flow.asked_bytes_mean()),
        flow.added_pages,
        known(flow.device_bytes_mean()),
        asked(flow),
        first_of(&flow.device, NAMED),
        known(flow.sequential_share()),
        known(flow.aligned_share())
    ]
}

fn asked(flow: &Flow) -> String {
    let kinds = flow.calls.iter();
    let kinds = kinds.map(|calls| format!("{} {}", calls.kind, first_of(&calls.sizes, NAMED)));
    kinds.collect::<Vec<_>>().join("; ")
}

fn size_rows(flow: &Flow) -> Vec<Row> {
    let row = |layer: &str, size: &Size| {
        row![flow.path.as_str(), flow.direction.name(), layer, size.size_bytes, size.count]
    };
    let calls = flow.calls.iter();
    let calls = calls.flat_map(|calls| calls.sizes.iter().map(|size| row(calls.kind, size)));
    calls.chain(flow.device.iter().map(|size| row("device", size))).collect()
}
