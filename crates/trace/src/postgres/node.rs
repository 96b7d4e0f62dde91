//! The nodes of a plan: time and reads of each one on its own, and sums over plans.

use std::collections::HashMap;

use crate::model::RowSource;

/// Maximum number of plans of one statement that are distinguished.
const PLANS_MAX: usize = 8;
/// Maximum number of nodes kept per plan.
pub const NODES_MAX: usize = 512;
/// Times are rounded to a microsecond for each execution of a node; a negative value smaller than
/// this is not a contradiction.
const ROUNDING: f64 = 0.01;

/// A plan from the log.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    pub sql: String,
    /// `None` if the plan was only estimated.
    pub root: Option<Node>,
}

/// A node and those below it, counted the way PostgreSQL does: times are means over its executions,
/// blocks and I/O times are sums over all of them, in all processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub operation: String,
    pub rows: Option<f64>,
    pub loops: f64,
    pub ms: Option<f64>,
    pub hit_blocks: Option<f64>,
    pub read_blocks: Option<f64>,
    pub read_ms: Option<f64>,
    pub write_ms: Option<f64>,
    /// Set if the node is not an input of its parent: `InitPlan 1`, `CTE name`.
    pub subplan: Option<String>,
    /// Name of the CTE whose rows a CTE Scan reads.
    pub cte: Option<String>,
    pub children: Vec<Node>,
}

impl Node {
    fn gathers(&self) -> bool {
        self.operation.starts_with("Gather")
    }

    /// Number of processes that execute the nodes below at the same time.
    fn processes(&self) -> f64 {
        let loops = self.children.first().map_or(1.0, |child| child.loops);
        if self.gathers() { (loops / self.loops.max(1.0)).max(1.0) } else { 1.0 }
    }

    /// Time of reads and of writes as part of the response time: processes that wait at the same
    /// time count once.
    pub fn io_ns(&self) -> [Option<f64>; 2] {
        [self.wall(|node| node.read_ms), self.wall(|node| node.write_ms)]
            .map(|ms| ms.map(|ms| ms * 1e6))
    }

    fn wall(&self, of: fn(&Self) -> Option<f64>) -> Option<f64> {
        let whole = of(self)?;
        let mut at_once = 0.0;
        self.each(&mut |node| {
            if node.gathers() {
                at_once += of(node).unwrap_or(0.0) * (1.0 - 1.0 / node.processes());
            }
        });
        Some((whole - at_once).max(0.0))
    }

    /// Returns the nodes whose figures are included in this node's. A CTE is computed while it is
    /// scanned, wherever the plan shows it.
    fn inputs<'a>(&'a self, ctes: &HashMap<&str, (&'a Self, usize)>) -> Option<Vec<&'a Self>> {
        let mut inputs: Vec<&Self> =
            self.children.iter().filter(|child| child.cte_name().is_none()).collect();
        if let Some(name) = &self.cte
            && let Some((plan, scans)) = ctes.get(name.as_str())
        {
            if *scans > 1 {
                return None;
            }
            inputs.push(plan);
        }
        Some(inputs)
    }

    fn is_parallel(&self) -> bool {
        let mut found = false;
        self.each(&mut |node| found |= node.gathers());
        found
    }

    fn cte_name(&self) -> Option<&str> {
        self.subplan.as_deref()?.strip_prefix("CTE ")
    }

    fn each<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        self.children.iter().for_each(|child| child.each(visit));
    }
}

/// The part of a node's figure that is not from the nodes below. `None` if these do not add up.
fn own_part(whole: Option<f64>, below: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let whole = whole?;
    let own = whole - below.sum::<Option<f64>>()?;
    (own >= -ROUNDING * whole.max(1.0)).then_some(own.max(0.0))
}

/// Returns the lines of a plan.
fn lines(root: &Node) -> Vec<RowSource> {
    let mut ctes: HashMap<&str, (&Node, usize)> = HashMap::new();
    root.each(&mut |node| {
        if let Some(name) = node.cte_name() {
            ctes.entry(name).or_insert((node, 0));
        }
    });
    root.each(&mut |node| {
        if let Some(found) = node.cte.as_deref().and_then(|name| ctes.get_mut(name)) {
            found.1 += 1;
        }
    });
    let mut lines = Vec::new();
    add_lines(root, &Above { parent: 0, depth: 0, share: 1.0 }, &ctes, &mut lines);
    lines
}

struct Above {
    parent: u32,
    depth: u32,
    /// Fraction of the time of all processes that is response time.
    share: f64,
}

fn add_lines<'a>(
    node: &'a Node,
    place: &Above,
    ctes: &HashMap<&str, (&'a Node, usize)>,
    lines: &mut Vec<RowSource>,
) {
    if lines.len() >= NODES_MAX {
        return;
    }
    let id = lines.len() as u32 + 1;
    let below = place.share / node.processes();
    let time = |node: &Node, share: f64| node.ms.map(|ms| ms * node.loops * share * 1e6);
    let logical = |node: &Node| node.hit_blocks.zip(node.read_blocks).map(|(hit, read)| hit + read);
    let whole_ns = time(node, place.share);
    let inputs = node.inputs(ctes);
    let own = |whole: Option<f64>, of: &dyn Fn(&Node) -> Option<f64>| {
        let inputs = inputs.as_ref()?;
        own_part(whole, inputs.iter().map(|input| of(input)))
    };
    // Blocks of processes other than the one that scans a CTE are counted where it is shown.
    let shared =
        node.children.iter().any(|child| child.cte_name().is_some() && child.is_parallel());
    let own_blocks = |whole: Option<f64>, of: &dyn Fn(&Node) -> Option<f64>| {
        if shared { None } else { own(whole, of) }
    };
    lines.push(RowSource {
        id,
        parent: place.parent,
        depth: place.depth,
        executions: 1.0,
        operation: node.subplan.as_ref().map_or_else(
            || node.operation.clone(),
            |subplan| format!("{subplan}: {}", node.operation),
        ),
        rows: node.rows.unwrap_or(0.0) * node.loops,
        ns: whole_ns,
        own_ns: own(whole_ns, &|input| time(input, below)),
        logical_reads: logical(node),
        own_logical_reads: own_blocks(logical(node), &logical),
        physical_reads: node.read_blocks,
        own_physical_reads: own_blocks(node.read_blocks, &|input| input.read_blocks),
        ..RowSource::default()
    });
    let place = Above { parent: id, depth: place.depth + 1, share: below };
    node.children.iter().for_each(|child| add_lines(child, &place, ctes, lines));
}

/// Plans by statement; those of the same shape are summed.
pub struct Plans {
    row_sources_max: usize,
    count: usize,
    by_statement: HashMap<String, Vec<Vec<RowSource>>>,
    /// Executions whose plan exceeded the limit.
    left_out: u64,
}

impl Plans {
    pub fn new(row_sources_max: usize) -> Self {
        Self { row_sources_max, count: 0, by_statement: HashMap::new(), left_out: 0 }
    }

    pub fn add(&mut self, statement: &str, root: &Node) {
        let lines = lines(root);
        let plans = self.by_statement.entry(statement.to_owned()).or_default();
        let alike = |plan: &&mut Vec<RowSource>| {
            let same =
                |a: &RowSource, b: &RowSource| a.operation == b.operation && a.depth == b.depth;
            plan.len() == lines.len() && plan.iter().zip(&lines).all(|(a, b)| same(a, b))
        };
        if let Some(plan) = plans.iter_mut().find(alike) {
            plan.iter_mut().zip(&lines).for_each(|(sum, line)| add(sum, line));
        } else if plans.len() < PLANS_MAX && self.count + lines.len() <= self.row_sources_max {
            self.count += lines.len();
            let plan = plans.len() as u32;
            let named = |line| RowSource { statement: statement.to_owned(), plan, ..line };
            plans.push(lines.into_iter().map(named).collect());
        } else {
            self.left_out += 1;
        }
    }

    /// Returns all lines, by statement and plan, and a note if some are missing.
    pub fn finish(self) -> (Vec<RowSource>, Option<String>) {
        let mut all: Vec<RowSource> = self.by_statement.into_values().flatten().flatten().collect();
        all.sort_by(|a, b| (&a.statement, a.plan, a.id).cmp(&(&b.statement, b.plan, b.id)));
        let note = (self.left_out > 0)
            .then(|| format!("{} executions had one plan too many to tell apart", self.left_out));
        (all, note)
    }
}

fn add(sum: &mut RowSource, line: &RowSource) {
    sum.executions += line.executions;
    sum.rows += line.rows;
    // If a figure is unknown for one execution, the sum is unknown.
    let both = |sum: &mut Option<f64>, more: Option<f64>| *sum = sum.zip(more).map(|(a, b)| a + b);
    both(&mut sum.ns, line.ns);
    both(&mut sum.own_ns, line.own_ns);
    both(&mut sum.logical_reads, line.logical_reads);
    both(&mut sum.own_logical_reads, line.own_logical_reads);
    both(&mut sum.physical_reads, line.physical_reads);
    both(&mut sum.own_physical_reads, line.own_physical_reads);
}
