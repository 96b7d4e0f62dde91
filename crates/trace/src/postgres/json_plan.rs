//! Plans of `auto_explain.log_format = json`.

use serde_json::{Map, Value};

use super::node::{Node, Plan};
use crate::lines::is_sane;

/// Parses a plan; `None` if the text is not one.
pub fn read(body: &str) -> Option<Plan> {
    let Ok(Value::Object(keys)) = serde_json::from_str(body) else { return None };
    let sql = keys.get("Query Text")?.as_str()?.to_owned();
    let root = keys.get("Plan").and_then(Value::as_object).map(node);
    // Without actual rows the plan was only estimated, and nothing was measured.
    Some(Plan { sql, root: root.filter(|root| root.rows.is_some()) })
}

/// Converts a node; the JSON parser bounds the depth.
fn node(keys: &Map<String, Value>) -> Node {
    let text = |key: &str| keys.get(key).and_then(Value::as_str);
    let number = |key: &str| keys.get(key).and_then(Value::as_f64).filter(|it| is_sane(*it));
    let sum = |names: [&str; 4]| {
        let known = names.iter().filter_map(|name| number(name));
        known.fold(None, |sum: Option<f64>, value| Some(sum.unwrap_or(0.0) + value))
    };
    let children = keys.get("Plans").and_then(Value::as_array).into_iter().flatten();
    Node {
        operation: operation(keys, text),
        rows: number("Actual Rows"),
        loops: number("Actual Loops").unwrap_or(0.0),
        ms: number("Actual Total Time"),
        hit_blocks: sum(["Shared Hit Blocks", "Local Hit Blocks", "", ""]),
        read_blocks: sum(["Shared Read Blocks", "Local Read Blocks", "Temp Read Blocks", ""]),
        read_ms: sum([
            "I/O Read Time",
            "Shared I/O Read Time",
            "Local I/O Read Time",
            "Temp I/O Read Time",
        ]),
        write_ms: sum([
            "I/O Write Time",
            "Shared I/O Write Time",
            "Local I/O Write Time",
            "Temp I/O Write Time",
        ]),
        subplan: text("Subplan Name").map(str::to_owned),
        cte: text("CTE Name").map(str::to_owned),
        children: children.filter_map(Value::as_object).map(node).collect(),
    }
}

/// Returns the node type, including the parts that JSON has in separate keys.
fn node_type<'a>(text: &impl Fn(&str) -> Option<&'a str>) -> String {
    let kind = text("Node Type").unwrap_or("?");
    match kind {
        "Aggregate" => {
            let part = text("Partial Mode").filter(|part| *part != "Simple");
            let strategy = match text("Strategy") {
                Some("Sorted") => "GroupAggregate",
                Some("Hashed") => "HashAggregate",
                Some("Mixed") => "MixedAggregate",
                _ => kind,
            };
            part.map_or_else(|| strategy.to_owned(), |part| format!("{part} {strategy}"))
        }
        "ModifyTable" => text("Operation").unwrap_or(kind).to_owned(),
        _ => match text("Join Type").filter(|join| *join != "Inner") {
            Some(join) if kind == "Nested Loop" => format!("{kind} {join} Join"),
            Some(join) => format!("{} {join} Join", kind.trim_end_matches(" Join")),
            None => kind.to_owned(),
        },
    }
}

/// Returns the name used by the text format: `Index Scan using a_pkey on a`.
fn operation<'a>(keys: &Map<String, Value>, text: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut name = String::new();
    if keys.get("Parallel Aware").and_then(Value::as_bool) == Some(true) {
        name.push_str("Parallel ");
    }
    name.push_str(&node_type(&text));
    if let Some(index) = text("Index Name") {
        name.extend([" using ", index]);
    }
    if let Some(relation) = text("Relation Name").or(text("CTE Name")).or(text("Function Name")) {
        name.extend([" on ", relation]);
    }
    if let Some(alias) = text("Alias")
        && text("Relation Name") != Some(alias)
        && text("CTE Name") != Some(alias)
    {
        name.extend([" ", alias]);
    }
    name
}
