//! The state of the screen: what is shown, and where the user is.

use std::collections::BTreeMap;

use blockstone_view::registry::{self, Group};
use blockstone_view::{Focus, History, Interval, Table, Timed, Value, View};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// This many intervals between ticks.
    Ticks(usize),
    /// Since the oldest tick in the history.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// A histogram of the row's latencies in the interval.
    Histogram,
    HeatMap,
    /// The column that orders the rows, or the first suitable one, over time.
    Chart,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The leading text cells of the row.
    pub name: String,
    /// The latencies of the row; `None` if none are measured.
    pub timed: Option<Timed>,
}

#[derive(Clone, Debug)]
pub struct Position {
    pub focus: Focus,
    pub from_row: usize,
    pub from_filter: String,
}

#[derive(Clone, Debug, Default)]
pub struct State {
    /// Whether the overview is shown instead of a pane.
    pub overview: bool,
    pub view: usize,
    /// The path of places below the pane, each reached from the one before.
    pub path: Vec<Position>,
    /// The selected row, counted across all tables of a place.
    pub row: usize,
    pub scrolled: usize,
    /// The sort column of each view, by view index. Views not listed keep their own order.
    pub sort: BTreeMap<usize, usize>,
    /// Only rows with a text cell that contains this text are shown.
    pub filter: String,
    pub typing: bool,
    pub help: bool,
    /// Whether the selected row is shown with all its columns.
    pub detail: bool,
    pub picture: Option<Picture>,
    /// The row shown in the picture, which may meanwhile move in the table.
    pub pinned: Option<Pinned>,
    /// The operation shown in the picture, as an index into the operations that occurred.
    pub operation: usize,
    /// The tick shown; `None` follows the latest.
    pub at_ns: Option<u64>,
    pub span: Span,
    pub leave: bool,
    /// Work that the last key asks of the source.
    pub request: Option<Request>,
}

/// Work that a key asks of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Count the I/O of all processes.
    CountEverybody,
    /// Keep the recent past as a recording.
    Keep,
    /// Watch the databases of this host.
    Connect,
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
    /// Creates a state at a pane. Without a name, or if no pane has it, it is at the overview.
    pub fn at_view(name: Option<&str>) -> Self {
        let place = |name| registry::ALL.iter().position(|view| view.name == name);
        let view = name.and_then(place);
        Self { overview: view.is_none(), view: view.unwrap_or(0), ..Self::default() }
    }

    /// Returns the heading of the pane; `None` at the overview.
    pub fn group(&self) -> Option<usize> {
        let is_of = |group: &Group| group.views.iter().any(|view| view.name == self.view().name);
        registry::GROUPS.iter().position(is_of).filter(|_| !self.overview)
    }

    pub fn view(&self) -> &'static View {
        registry::ALL[self.view.min(registry::ALL.len() - 1)]
    }

    /// Returns the focus of the place; `None` in a pane.
    pub fn focus(&self) -> Option<&Focus> {
        self.path.last().map(|place| &place.focus)
    }

    /// Returns the interval shown; `None` before the second tick.
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

    /// Returns the rows of the view, filtered and sorted.
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

    /// Goes to the first pane with data under a heading.
    pub fn go_to_group(&mut self, group: usize, history: &History) {
        let Some(group) = registry::GROUPS.get(group) else { return };
        let first = group.views.iter().find(|view| is_known(view, history));
        self.go_to_view(first.unwrap_or(&group.views[0]));
    }

    /// Goes to the next pane with data, or to the previous one; the overview comes before the
    /// first.
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

    pub(crate) fn go_to_view(&mut self, view: &View) {
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

    /// Sorts by the next or the previous column; beyond either end, restores the view's own order.
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

    /// Moves `steps` ticks forward, or back if negative; at the last tick it follows the latest
    /// again.
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

    /// Returns the last `count` intervals of one tick each, up to the tick shown.
    pub fn past<'a>(&self, history: &'a History, count: usize) -> Vec<Interval<'a>> {
        let to_ns = self.at_ns.unwrap_or(u64::MAX);
        let before = history.ticks().rev().skip_while(|tick| *tick > to_ns);
        let mut ticks: Vec<u64> = before.take(count + 1).collect();
        ticks.reverse();
        ticks.windows(2).map(|edges| history.interval(edges[0], edges[1])).collect()
    }
}

/// Whether the history has data for the pane.
pub fn is_known(view: &View, history: &History) -> bool {
    view.is_in(history)
}
