//! What the screen shows.

use blockstone_view::{Focus, History, Interval, Table, Timed, Value, View, registry};

/// How much of time a figure covers: so many ticks before the one that is shown, or all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// This many intervals between ticks.
    Ticks(usize),
    /// Since the first tick that is kept.
    All,
}

/// A picture of the chosen row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// How many of its operations took how long in the interval.
    Histogram,
    /// The same, instant by instant.
    HeatMap,
    /// The figure that orders the rows, or the first, instant by instant.
    Chart,
}

/// A row that pictures are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The texts that it begins with.
    pub name: String,
    /// What of it is timed one by one; none where nothing is.
    pub timed: Option<Timed>,
}

/// A place below a pane.
#[derive(Clone, Debug)]
pub struct Place {
    /// The samples of sessions that it is about.
    pub focus: Focus,
    /// The row that was chosen where its user came from.
    pub from_row: usize,
    /// The filter that was set there.
    pub from_filter: String,
}

/// What the screen shows and where its user is in it.
#[derive(Clone, Debug)]
pub struct State {
    /// The view that is shown, by its place in the registry.
    pub view: usize,
    /// Where its user went from there: a wait, a session, a statement, each from the one before.
    pub path: Vec<Place>,
    /// The row that is chosen, counted through all tables of a place.
    pub row: usize,
    /// Columns that are scrolled past, after the first.
    pub scrolled: usize,
    /// The column that orders the rows of each view; none for the order of the view itself.
    pub sort: Vec<Option<usize>>,
    /// Rows are shown whose first cells contain this.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    /// Whether help is shown.
    pub help: bool,
    /// Whether the chosen row is shown with all its columns.
    pub detail: bool,
    /// The picture that is shown in the place of tables.
    pub picture: Option<Picture>,
    /// What it is of; rows change their places while it stays.
    pub pinned: Option<Pinned>,
    /// Of which operation, where it shows one: counted through those that occurred.
    pub operation: usize,
    /// The tick that is shown; none follows the latest.
    pub at_ns: Option<u64>,
    /// How much of time figures cover.
    pub span: Span,
    /// Whether the user wants to leave.
    pub leave: bool,
}

/// What surrounds the tables.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Whose history it is: the host's name, a recording's id.
    pub title: String,
    /// Whether it goes on by itself.
    pub live: bool,
    /// What went wrong lately, or has to be known.
    pub note: Option<String>,
}

/// The spans that a user can choose between.
const SPANS: [Span; 5] =
    [Span::Ticks(1), Span::Ticks(5), Span::Ticks(15), Span::Ticks(60), Span::All];

impl Default for State {
    fn default() -> Self {
        Self {
            view: 0,
            path: Vec::new(),
            row: 0,
            scrolled: 0,
            sort: vec![None; registry::ALL.len()],
            filter: String::new(),
            typing: false,
            help: false,
            detail: false,
            picture: None,
            pinned: None,
            operation: 0,
            at_ns: None,
            span: SPANS[0],
            leave: false,
        }
    }
}

impl State {
    /// Begins with this view.
    pub fn at_view(name: Option<&str>) -> Self {
        let place = |name| registry::ALL.iter().position(|view| view.name == name);
        Self { view: name.and_then(place).unwrap_or(0), ..Self::default() }
    }

    /// The view that is shown.
    pub fn view(&self) -> &'static View {
        registry::ALL[self.view.min(registry::ALL.len() - 1)]
    }

    /// What samples are narrowed down to; none in a pane.
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
            // The very first tick ends no interval: the second one does.
            None => Some(history.interval(to_ns, history.ticks().nth(1)?)),
        }
    }

    /// The rows of the view as they are shown: filtered and in order.
    pub fn table(&self, interval: &Interval<'_>) -> Option<Table> {
        let mut table = self.view().table(interval)?;
        if let Some(column) = self.sort[self.view] {
            table.sort(column);
        }
        Some(self.filtered(table))
    }

    /// The rows that the filter leaves.
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

    /// Goes to another view.
    pub fn go_to(&mut self, view: usize) {
        self.view = view.min(registry::ALL.len() - 1);
        if let Some(first) = self.path.drain(..).next() {
            self.filter = first.from_filter;
        }
        (self.row, self.scrolled, self.detail, self.picture) = (0, 0, false, None);
    }

    /// Orders by the column after the one that orders now, or before it; past either end, by none.
    pub fn sort_by_next(&mut self, back: bool) {
        let count = self.view().columns.len();
        let sort = &mut self.sort[self.view];
        *sort = match (*sort, back) {
            (None, false) => Some(0),
            (None, true) => Some(count - 1),
            (Some(column), false) => Some(column + 1).filter(|column| *column < count),
            (Some(column), true) => column.checked_sub(1),
        };
    }

    /// Looks at more of time at once, or at less.
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

    /// Stands still where it is, or follows again.
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
