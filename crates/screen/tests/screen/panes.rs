//! Panes of tables.

use blockstone_base::column::{Cell, Kind};
use blockstone_record::testing::probe;
use blockstone_screen::{Key, State};
use blockstone_view::{History, registry};

use super::{SECOND_NS, keys, painted};

/// Two roles over eleven seconds: the second is idle until the last one.
fn history() -> History {
    let counters = "cpu_ns run_queue_ns read_calls requested_read_bytes read_bytes write_calls \
                    requested_write_bytes write_bytes";
    let columns = [(Kind::Gauge, "processes"), (Kind::Counter, counters)];
    let mut history = History::new(vec![probe("processes", &columns), probe("host", &[])]);
    for tick in 0..=10_u64 {
        let row = |cpu_ns: u64| {
            let mut cells = vec![Cell::Value(3), Cell::from(cpu_ns)];
            cells.resize(9, Cell::Value(0));
            cells
        };
        let t_ns = tick * SECOND_NS;
        history.push("processes", t_ns, "postgres/checkpointer", row(tick * SECOND_NS / 2));
        let late = if tick == 10 { SECOND_NS } else { 0 };
        history.push("processes", t_ns, "postgres/walwriter", row(late));
        history.push("host", t_ns, "", Vec::new());
    }
    history
}

#[test]
fn it_can_be_read_on_eighty_columns_and_says_when_there_is_no_room() {
    let (history, state) = (history(), State::at_view(Some("processes")));
    let (screen, rows) = painted(&state, &history, 80, 24);
    assert_eq!(rows, 2);
    for text in ["db1", "postgres/checkpointer", "50 %", "100 %", "? help", "live"] {
        assert!(screen.contains(text), "{text} is not on\n{screen}");
    }
    for (width, height) in [(20, 5), (1, 1), (39, 24), (80, 7)] {
        let (screen, _) = painted(&state, &history, width, height);
        assert!(!screen.contains("checkpointer"), "{screen}");
    }
    assert!(painted(&state, &history, 20, 5).0.contains("too small"));
    // Every pane can be drawn at any size.
    for view in registry::ALL {
        for (width, height) in [(40, 8), (41, 19), (200, 60)] {
            painted(&State::at_view(Some(view.name)), &history, width, height);
        }
    }
}

#[test]
fn the_overview_has_a_part_for_each_layer_and_leads_to_the_panes() {
    let (history, mut state) = (history(), State::at_view(None));
    let (screen, rows) = painted(&state, &history, 80, 24);
    assert_eq!(rows, 0);
    for text in ["Host ──", "Disks ──", "I/O by role ──", "Sessions by wait ──", "--db", "100 %"]
    {
        assert!(screen.contains(text), "{text} is not on\n{screen}");
    }
    let first = screen.lines().nth(1).unwrap();
    assert_eq!(first.trim(), "1 overview  2 host  3 storage  4 database  5 processor time");
    for (width, height) in [(40, 8), (41, 19), (200, 60)] {
        painted(&state, &history, width, height);
    }
    // Keys that act on rows change nothing here.
    let rows = "dbhmtosS/<>".chars().map(Key::Char);
    let rows: Vec<Key> = rows.chain([Key::Enter, Key::Esc, Key::F(4), Key::F(6)]).collect();
    keys(&mut state, &history, &rows);
    assert_eq!(painted(&state, &history, 80, 24).0, screen);
    // The host comes before the processes, which are the last pane with data in this history.
    keys(&mut state, &history, &[Key::Tab, Key::Right]);
    assert_eq!((state.overview, state.view().name), (false, "processes"));
    keys(&mut state, &history, &[Key::Char('3')]);
    assert_eq!(state.view().name, "disks");
    keys(&mut state, &history, &[Key::Char('2'), Key::BackTab]);
    assert!(state.overview);
    keys(&mut state, &history, &[Key::Left]);
    assert_eq!(state.view().name, "processes", "the last pane of this history");
    keys(&mut state, &history, &[Key::Char('1')]);
    assert!(state.overview);
}

#[test]
fn rows_are_selected_as_in_a_pager() {
    let (history, mut state) = (history(), State::at_view(Some("processes")));
    for (key, row) in [
        (Key::Char('j'), 1),
        (Key::Char('j'), 1),
        (Key::Char('k'), 0),
        (Key::Char('G'), 1),
        (Key::Char('g'), 0),
        (Key::PageDown, 1),
        (Key::PageUp, 0),
    ] {
        keys(&mut state, &history, &[key]);
        assert_eq!(state.row, row, "{key:?}");
    }
    keys(&mut state, &history, &[Key::F(1)]);
    assert!(state.help);
    keys(&mut state, &history, &[Key::Esc, Key::F(10)]);
    assert!(state.leave);
}

#[test]
fn rows_are_ordered_filtered_and_looked_into() {
    let (history, mut state) = (history(), State::at_view(Some("processes")));
    // By role, by processes, by CPU: the one that was busy at the end comes first.
    keys(&mut state, &history, &[Key::Char('s'), Key::Char('s'), Key::Char('s')]);
    let (screen, _) = painted(&state, &history, 80, 24);
    let place = |text: &str| screen.find(text).unwrap();
    assert!(place("postgres/walwriter") < place("postgres/checkpointer"), "{screen}");
    assert!(screen.contains("CPU▾"), "{screen}");

    keys(&mut state, &history, &"/check".chars().map(Key::Char).collect::<Vec<_>>());
    let (screen, rows) = painted(&state, &history, 80, 24);
    assert!(rows == 1 && !screen.contains("walwriter"), "{screen}");
    keys(&mut state, &history, &[Key::Enter, Key::Enter]);
    let (screen, _) = painted(&state, &history, 80, 24);
    assert!(state.detail && screen.contains("storage w"), "{screen}");
    keys(&mut state, &history, &[Key::Esc, Key::Esc]);
    assert_eq!(painted(&state, &history, 80, 24).1, 2);
}

#[test]
fn help_lists_all_keys_on_eighty_columns() {
    let (history, mut state) = (history(), State::at_view(Some("processes")));
    keys(&mut state, &history, &[Key::Char('?')]);
    let (screen, _) = painted(&state, &history, 80, 24);
    for text in [
        "drill down into wait, session, statement; Esc goes back ",
        "histogram of the latencies of the row's I/Os or waits ",
        "chart of the row's column over time; s takes the next ",
        "q F10  quit ",
        "g G first, last ",
        "n/e no evidence",
        "n/p not permitted",
    ] {
        assert!(screen.contains(text), "{text} is not on\n{screen}");
    }
}

#[test]
fn time_stands_still_goes_back_and_follows_again() {
    let (history, mut state) = (history(), State::at_view(Some("processes")));
    let to_s = |state: &State| state.interval(&history).unwrap().to_ns / SECOND_NS;
    assert_eq!(to_s(&state), 10);
    keys(&mut state, &history, &[Key::Char(' ')]);
    assert!(painted(&state, &history, 80, 24).0.contains("PAUSED"));
    keys(&mut state, &history, &[Key::Char('['), Key::Char('[')]);
    assert_eq!(to_s(&state), 8);
    keys(&mut state, &history, &[Key::Home, Key::Char('[')]);
    assert_eq!(to_s(&state), 1, "the first interval ends with the second tick");
    keys(&mut state, &history, &[Key::Char('}')]);
    assert_eq!((to_s(&state), state.at_ns), (10, None), "at the end it follows again");
    keys(&mut state, &history, &[Key::Char('+')]);
    let interval = state.interval(&history).unwrap();
    assert_eq!((interval.from_ns / SECOND_NS, interval.to_ns / SECOND_NS), (5, 10));
    for _ in 0..9 {
        keys(&mut state, &history, &[Key::Char('+')]);
    }
    assert_eq!(state.interval(&history).unwrap().from_ns, 0);
    let trend = State::at_view(Some("processes")).trend(&history, "postgres/walwriter", 2, 4);
    assert_eq!(trend, [0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn every_key_is_harmless_in_every_pane() {
    let history = history();
    for view in registry::ALL {
        let mut state = State::at_view(Some(view.name));
        for key in "1234567890abcsS<>+-[]{} pz".chars().map(Key::Char).chain([
            Key::Up,
            Key::Down,
            Key::Enter,
            Key::Esc,
            Key::Tab,
            Key::BackTab,
            Key::Left,
            Key::Right,
            Key::Home,
            Key::End,
            Key::Backspace,
            Key::Char('?'),
            Key::Enter,
        ]) {
            keys(&mut state, &history, &[key]);
            assert!(!state.leave);
        }
        keys(&mut state, &history, &[Key::Char('q')]);
        assert!(state.leave);
    }
    let empty = History::new(Vec::new());
    let mut state = State::default();
    keys(&mut state, &empty, &[Key::Char(' '), Key::Char('['), Key::Home, Key::End]);
    assert!(painted(&state, &empty, 80, 24).0.contains("waiting for the second tick"));
}
