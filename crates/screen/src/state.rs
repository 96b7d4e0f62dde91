//! The state of the screen: what it shows.

use std::collections::BTreeMap;

use blockstone_view::registry::{self, Group};
use blockstone_view::{Focus, History, Interval, Table, Timed, Value, View};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// This many intervals between ticks.
    Ticks(usize),
    /// Since the first tick that is kept.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// A histogram of its latencies in the interval.
    Histogram,
    HeatMap,
    /// The figure that orders the rows, or the first, over time.
    Chart,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Its leading text cells.
    pub name: String,
    /// What its latencies are of; none if none are measured.
    pub timed: Option<Timed>,
}

#[derive(Clone, Debug)]
pub struct Place {
    pub focus: Focus,
    pub from_row: usize,
    pub from_filter: String,
}

#[derive(Clone, Debug, Default)]
pub struct State {
    /// Whether the overview is shown, in place of a pane.
    pub overview: bool,
    pub view: usize,
    /// The places drilled down to from there, each from the one before.
    pub path: Vec<Place>,
    /// The selected row, counted through all tables of a place.
    pub row: usize,
    pub scrolled: usize,
    /// The sort column of views that are not in their own order, by their index.
    pub sort: BTreeMap<usize, usize>,
    /// Only rows with a text cell that contains this are shown.
    pub filter: String,
    pub typing: bool,
    pub help: bool,
    /// Whether the selected row is shown with all its columns.
    pub detail: bool,
    pub picture: Option<Picture>,
    /// The row it shows, which may move in the table meanwhile.
    pub pinned: Option<Pinned>,
    /// Which of the operations that occurred it shows, if it shows one.
    pub operation: usize,
    /// The tick that is shown; none follows the latest.
    pub at_ns: Option<u64>,
    pub span: Span,
    pub leave: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Frame {
    pub title: String,
    pub live: bool,
    pub note: Option<String>,
}

const SPANS: [Span; 5] =
    [Span::Ticks(1), Span::Ticks(5), Span::Ticks(15), Span::Ticks(60), Span::All];

impl Default for Span {
    fn default() -> Self {
        SPANS[0]
    }
}

impl State {
    /// At a pane; without a name, or one of no pane, at the overview.
    pub fn at_view(name: Option<&str>) -> Self {
        let place = |name| registry::ALL.iter().position(|view| view.name == name);
        let view = name.and_then(place);
        Self { overview: view.is_none(), view: view.unwrap_or(0), ..Self::default() }
    }

    /// The heading of the pane; none at the overview.
    pub fn group(&self) -> Option<usize> {
        let is_of = |group: &Group| group.views.iter().any(|view| view.name == self.view().name);
        registry::GROUPS.iter().position(is_of).filter(|_| !self.overview)
    }

    pub fn view(&self) -> &'static View {
        registry::ALL[self.view.min(registry::ALL.len() - 1)]
    }

    /// The focus of the place; none in a pane.
    pub fn focus(&self) -> Option<&Focus> {
        self.path.last().map(|place| &place.focus)
    }

    /// The interval that is shown; none before the second tick.
    pub fn interval<'a>(&self, history: &'a History) -> Option<Interval<'a>> {
        let at_ns = self.at_ns.unwrap_or(u64::MAX);
        let to_ns = history.tick_at(at_ns).or_else(|| history.ticks().nth(1))?;
        let before = history.ticks().rev().skip_while(|tick| *tick >= to_ns);
        let from_ns = match self.span {
            Span::Ticks(count) => before.take(count).last(),
            Span::All => before.last(),
        };
        match from_ns {
            Some(from_ns) => Some(history.interval(from_ns, to_ns)),
            // The first tick ends no interval; show the one that the second tick ends.
            None => Some(history.interval(to_ns, history.ticks().nth(1)?)),
        }
    }

    /// The rows of the view as they are shown: filtered and in order.
    pub fn table(&self, interval: &Interval<'_>) -> Option<Table> {
        let mut table = self.view().table(interval)?;
        if let Some(&column) = self.sort.get(&self.view) {
            table.sort(column);
        }
        Some(self.filtered(table))
    }

    pub(crate) fn filtered(&self, mut table: Table) -> Table {
        let wanted = self.filter.to_lowercase();
        table.rows.retain(|row| {
            row.iter().any(|value| match value {
                Value::Text(text) => text.to_lowercase().contains(&wanted),
                _ => wanted.is_empty(),
            })
        });
        table
    }

    pub fn go_to_overview(&mut self) {
        self.go_to(self.view);
        self.overview = true;
    }

    /// Goes to the first pane under a heading that there is something to show in.
    pub fn go_to_group(&mut self, group: usize, history: &History) {
        let Some(group) = registry::GROUPS.get(group) else { return };
        let first = group.views.iter().find(|view| is_known(view, history));
        self.go_to_view(first.unwrap_or(&group.views[0]));
    }

    /// Goes to the next pane that there is something to show in, or back to the one before; the
    /// overview stands before the first.
    pub fn go_on(&mut self, history: &History, back: bool) {
        let views = registry::GROUPS.iter().flat_map(|group| group.views);
        let mut panes: Vec<&View> = views.copied().filter(|view| is_known(view, history)).collect();
        if back {
            panes.reverse();
        }
        let here = panes.iter().position(|view| view.name == self.view().name);
        let next = match here.filter(|_| !self.overview) {
            Some(here) => panes.get(here + 1),
            None => panes.first(),
        };
        match next {
            Some(view) => self.go_to_view(view),
            None => self.go_to_overview(),
        }
    }

    fn go_to_view(&mut self, view: &View) {
        let place = registry::ALL.iter().position(|other| other.name == view.name);
        self.go_to(place.unwrap_or(0));
    }

    pub fn go_to(&mut self, view: usize) {
        self.overview = false;
        self.view = view.min(registry::ALL.len() - 1);
        if let Some(first) = self.path.drain(..).next() {
            self.filter = first.from_filter;
        }
        (self.row, self.scrolled, self.detail, self.picture) = (0, 0, false, None);
    }

    /// Sorts by the next or the previous column; past either end, in the view's own order.
    pub fn sort_by_next(&mut self, history: &History, back: bool) {
        let count = self.view().width(history);
        let next = match (self.sort.remove(&self.view), back) {
            (None, false) => Some(0),
            (None, true) => Some(count - 1),
            (Some(column), false) => Some(column + 1).filter(|column| *column < count),
            (Some(column), true) => column.checked_sub(1),
        };
        self.sort.extend(next.map(|column| (self.view, column)));
    }

    pub fn widen(&mut self, wider: bool) {
        let now = SPANS.iter().position(|span| *span == self.span).unwrap_or(0);
        let next = if wider { (now + 1).min(SPANS.len() - 1) } else { now.saturating_sub(1) };
        self.span = SPANS[next];
    }

    /// Goes `steps` ticks forward, or back; at the end it follows again.
    pub fn step(&mut self, history: &History, steps: i64) {
        let ticks: Vec<u64> = history.ticks().collect();
        let Some(last) = ticks.len().checked_sub(1) else { return };
        let now = self
            .at_ns
            .map_or(last, |at| ticks.partition_point(|tick| *tick <= at).saturating_sub(1));
        let next = now.saturating_add_signed(steps as isize).clamp(1.min(last), last);
        self.at_ns = (next < last || (steps <= 0 && self.at_ns.is_some())).then(|| ticks[next]);
    }

    /// Pauses at the tick shown, or follows the latest again.
    pub fn pause(&mut self, history: &History) {
        self.at_ns = match self.at_ns {
            Some(_) => None,
            None => history.ticks().next_back(),
        };
    }

    /// The last `count` intervals of one tick up to the one that is shown.
    pub fn past<'a>(&self, history: &'a History, count: usize) -> Vec<Interval<'a>> {
        let to_ns = self.at_ns.unwrap_or(u64::MAX);
        let before = history.ticks().rev().skip_while(|tick| *tick > to_ns);
        let mut ticks: Vec<u64> = before.take(count + 1).collect();
        ticks.reverse();
        ticks.windows(2).map(|edges| history.interval(edges[0], edges[1])).collect()
    }
}

/// Whether the history has what the pane shows.
pub fn is_known(view: &View, history: &History) -> bool {
    view.is_in(history)
}
