//! Plans of `auto_explain.log_format = text`.

use super::node::{NODES_MAX, Node, Plan};
use crate::lines::is_sane;

/// Parses a plan; `None` if the text is not one.
pub fn read(body: &str) -> Option<Plan> {
    let text = body.strip_prefix("Query Text: ")?;
    let mut lines = text.lines();
    let mut sql = String::new();
    let mut nodes: Vec<Flat> = Vec::new();
    let mut subplan = None;
    for line in &mut lines {
        if let Some(node) = flat(line, subplan.take()) {
            nodes.push(node);
            if nodes.len() >= NODES_MAX {
                return None;
            }
        } else if let Some(node) = nodes.last_mut() {
            let detail = line.trim_start();
            let words = ["InitPlan ", "SubPlan ", "CTE "];
            if words.iter().any(|word| detail.starts_with(word)) {
                let name = detail.split(" (").next().unwrap_or(detail);
                subplan = Some(name.to_owned());
            } else {
                node.detail(detail);
            }
        } else if !line.starts_with("Query Parameters: ") {
            if !sql.is_empty() {
                sql.push('\n');
            }
            sql.push_str(line);
        }
    }
    if nodes.is_empty() {
        return None;
    }
    let timed = nodes.iter().any(|flat| flat.node.read_ms.is_some());
    let counted = nodes.iter().any(|flat| flat.node.read_blocks.is_some());
    for flat in &mut nodes {
        flat.complete(counted, timed);
    }
    let root = nest(nodes).filter(|root| root.rows.is_some());
    Some(Plan { sql, root })
}

/// A node and its indentation.
struct Flat {
    indent: usize,
    node: Node,
}

/// Parses
/// `->  Seq Scan on t  (cost=0.00..1.00 rows=1 width=4) (actual time=0.1..0.2 rows=1 loops=1)`.
fn flat(line: &str, subplan: Option<String>) -> Option<Flat> {
    let (operation, costs) = line.split_once("  (cost=")?;
    let indent = operation.len() - operation.trim_start().len();
    let operation = operation.trim_start();
    let operation = operation.strip_prefix("->").map_or(operation, str::trim_start);
    let mut node = Node { operation: operation.to_owned(), subplan, ..Node::default() };
    if let Some(rest) = operation.strip_prefix("CTE Scan on ") {
        node.cte = rest.split(' ').next().map(str::to_owned);
    }
    if let Some((_, actual)) = costs.split_once("(actual ") {
        for word in actual.trim_end_matches(')').split(' ') {
            match word.split_once('=') {
                Some(("time", range)) => {
                    node.ms = range.split_once("..").and_then(|(_, total)| number(total));
                }
                Some(("rows", rows)) => node.rows = number(rows),
                Some(("loops", loops)) => node.loops = number(loops).unwrap_or(0.0),
                _ => {}
            }
        }
    } else if costs.ends_with("(never executed)") {
        (node.rows, node.ms) = (Some(0.0), Some(0.0));
    }
    Some(Flat { indent, node })
}

impl Flat {
    fn detail(&mut self, line: &str) {
        let node = &mut self.node;
        if let Some(buffers) = line.strip_prefix("Buffers: ") {
            let [hit, read, _] = sums(buffers, ["hit", "read", "written"]);
            node.hit_blocks = Some(hit);
            node.read_blocks = Some(read);
        } else if let Some(times) = line.strip_prefix("I/O Timings: ") {
            let [read, write, _] = sums(times, ["read", "write", "extend"]);
            node.read_ms = Some(read);
            node.write_ms = Some(write);
        }
    }

    /// Fills in the zeros that the text leaves out: if any node has a figure, it is zero for those
    /// without it. If none has it, it was not measured.
    fn complete(&mut self, counted: bool, timed: bool) {
        let zero = |value: &mut Option<f64>, known: bool| {
            if known {
                value.get_or_insert(0.0);
            }
        };
        zero(&mut self.node.hit_blocks, counted);
        zero(&mut self.node.read_blocks, counted);
        zero(&mut self.node.read_ms, timed);
        zero(&mut self.node.write_ms, timed);
    }
}

/// Parses `shared hit=1 read=2, temp read=3 written=4` into sums by name.
fn sums(text: &str, names: [&str; 3]) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for word in text.split([' ', ',']) {
        let Some((name, value)) = word.split_once('=') else { continue };
        if let Some(at) = names.iter().position(|known| *known == name) {
            sums[at] += number(value).unwrap_or(0.0);
        }
    }
    sums
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| is_sane(*value))
}

/// Places each node below the one that is indented less. A node is finished when one follows that
/// is not below it, so the stack holds the path to the latest.
fn nest(nodes: Vec<Flat>) -> Option<Node> {
    let mut stack: Vec<Flat> = Vec::new();
    let close = |stack: &mut Vec<Flat>| {
        if let Some(done) = stack.pop()
            && let Some(parent) = stack.last_mut()
        {
            parent.node.children.push(done.node);
        }
    };
    for flat in nodes {
        while stack.len() > 1 && stack.last().is_some_and(|last| last.indent >= flat.indent) {
            close(&mut stack);
        }
        stack.push(flat);
    }
    while stack.len() > 1 {
        close(&mut stack);
    }
    stack.pop().map(|flat| flat.node)
}
