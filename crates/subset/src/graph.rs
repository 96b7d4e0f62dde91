//! The reading order of tables.

use crate::catalogue::Catalogue;

/// Returns the strongly connected components of tables: referencing ones before referenced ones. A
/// component of several tables, or of one that references itself, has cycles.
pub fn components(catalogue: &Catalogue) -> Vec<Vec<usize>> {
    let count = catalogue.tables.len();
    let mut children = vec![Vec::new(); count];
    for key in &catalogue.keys {
        children[key.references].push(key.table);
    }
    let mut search = Search {
        children: &children,
        number: vec![None; count],
        low: vec![0; count],
        on_stack: vec![false; count],
        stack: Vec::new(),
        found: Vec::new(),
        numbered: 0,
    };
    for table in 0..count {
        if search.number[table].is_none() {
            search.visit(table);
        }
    }
    search.found
}

/// Tarjan's algorithm along the edges from parents to children. It finds a component after all
/// those reachable from it: children first. It is not recursive, as chains may be long.
struct Search<'a> {
    children: &'a [Vec<usize>],
    number: Vec<Option<usize>>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    found: Vec<Vec<usize>>,
    numbered: usize,
}

impl Search<'_> {
    fn enter(&mut self, table: usize) {
        self.number[table] = Some(self.numbered);
        self.low[table] = self.numbered;
        self.numbered += 1;
        self.on_stack[table] = true;
        self.stack.push(table);
    }

    fn visit(&mut self, first: usize) {
        self.enter(first);
        let mut path = vec![(first, 0)];
        while let Some((table, at)) = path.last_mut() {
            let table = *table;
            let Some(&child) = self.children[table].get(*at) else {
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    self.low[parent] = self.low[parent].min(self.low[table]);
                }
                self.close(table);
                continue;
            };
            *at += 1;
            match self.number[child] {
                None => {
                    self.enter(child);
                    path.push((child, 0));
                }
                Some(number) if self.on_stack[child] => {
                    self.low[table] = self.low[table].min(number);
                }
                Some(_) => {}
            }
        }
    }

    fn close(&mut self, table: usize) {
        if self.number[table] != Some(self.low[table]) {
            return;
        }
        let mut component = Vec::new();
        while let Some(member) = self.stack.pop() {
            self.on_stack[member] = false;
            component.push(member);
            if member == table {
                break;
            }
        }
        component.sort_unstable();
        self.found.push(component);
    }
}
