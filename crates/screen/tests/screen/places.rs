//! Drills down from a wait to its sessions and statements, and back.

use blockstone_base::column::{Cell, Kind, Schema};
use blockstone_base::database::{SESSION, SESSIONS, STATEMENT_TEXT};
use blockstone_record::manifest::ProbeInfo;
use blockstone_record::testing::probe;
use blockstone_screen::{Key, State};
use blockstone_view::{Focus, History, registry};
use serde_json::json;

use super::{SECOND_NS, keys, painted};

const UPDATE: &str = "UPDATE stock SET quantity = quantity - ? WHERE item = ?";

struct Found {
    session: &'static str,
    state: &'static str,
    wait: (&'static str, &'static str),
    statement: &'static str,
    blockers: &'static str,
}

/// Ten samples a second for six seconds: session 11 waits for a row that 12 has locked, 12 is on
/// CPU and ends after four seconds, and 13 reads half of the time.
fn history() -> History {
    let host = probe("host", &[]);
    let of = |schema: &Schema| ProbeInfo::of(schema);
    let mut history = History::new(vec![host, of(&SESSION), of(&SESSIONS), of(&STATEMENT_TEXT)]);
    let at_work = "active";
    for sample in 0..=60_u64 {
        let t_ns = sample * SECOND_NS / 10;
        if sample % 10 == 0 {
            history.push("host", t_ns, "", Vec::new());
        }
        history.push("sessions", t_ns, "", vec![Cell::Value(1); SESSIONS.columns.len()]);
        let mut found = vec![Found {
            session: "11",
            state: at_work,
            wait: ("Lock", "transactionid"),
            statement: "7001",
            blockers: if sample <= 40 { "12" } else { "" },
        }];
        if sample <= 40 {
            let wait = ("On CPU", "");
            let statement = "7002";
            found.push(Found { session: "12", state: at_work, wait, statement, blockers: "" });
        }
        if sample % 2 == 0 {
            let wait = ("IO", "DataFileRead");
            let statement = if sample % 4 == 0 { "7001" } else { "" };
            found.push(Found { session: "13", state: at_work, wait, statement, blockers: "" });
        }
        for found in found {
            push(&mut history, t_ns, &found);
        }
    }
    history.push("statement_text", 0, "7001", vec![Cell::Text(UPDATE.to_owned())]);
    history.push("statement_text", 0, "7002", vec![Cell::Text("SELECT ?".to_owned())]);
    history
}

fn push(history: &mut History, t_ns: u64, found: &Found) {
    let cell = |name: &str| match name {
        "role" => "session",
        "user" => "bench",
        "database" => "shop",
        "state" => found.state,
        "wait_class" => found.wait.0,
        "event" => found.wait.1,
        "query_id" => found.statement,
        "blockers" => found.blockers,
        _ => "",
    };
    let cells = SESSION.columns.iter().map(|column| match column.kind {
        Kind::State => Cell::Text(cell(column.name).to_owned()),
        _ => Cell::Unmeasured,
    });
    history.push("session", t_ns, found.session, cells.collect());
}

/// Returns the line that begins with `start`, with single blanks.
fn line(screen: &str, start: &str) -> String {
    let mut lines = screen.lines().filter(|line| line.starts_with(start));
    let line = lines.next().unwrap_or_else(|| panic!("no line begins with {start}:\n{screen}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_wait_leads_to_its_sessions_and_these_to_their_statements() {
    let history = history();
    let mut state = State::at_view(Some("active-sessions"));
    state.at_ns = Some(4 * SECOND_NS);
    let (screen, rows) = painted(&state, &history, 80, 24);
    assert_eq!(rows, 3, "{screen}");
    assert!(line(&screen, "IO").starts_with("IO DataFileRead 0.5 20 %"), "{screen}");

    // The waits are ordered by their time: CPU, Lock, IO.
    let down = state.row;
    keys(&mut state, &history, &[Key::Down, Key::Down, Key::Enter]);
    let (screen, rows) = painted(&state, &history, 80, 24);
    assert!(screen.contains("active-sessions › IO DataFileRead"), "{screen}");
    assert!(screen.contains("0.5 average active sessions, 20 % of DB time"), "{screen}");
    assert!(line(&screen, "13").starts_with("13 0.5 100 % 5 UPDATE stock SET q"), "{screen}");
    assert_eq!((rows, down), (3, 0), "one session and two statements: {screen}");

    keys(&mut state, &history, &[Key::Enter]);
    let (screen, _) = painted(&state, &history, 80, 24);
    assert!(screen.contains("IO DataFileRead › session 13"), "{screen}");
    assert!(screen.contains("bench · on shop · active · IO · DataFileRead"), "{screen}");
    assert!(line(&screen, "UPDATE stock").contains("0.3 60 % 3 1"), "{screen}");

    keys(&mut state, &history, &[Key::Down, Key::Enter]);
    let (screen, _) = painted(&state, &history, 80, 24);
    assert!(screen.contains(UPDATE), "{screen}");
    assert!(line(&screen, "Lock").starts_with("Lock transactionid 1 77 % 1 1"), "{screen}");
    assert_eq!(line(&screen, "11").split(' ').nth(1), Some("1"));

    keys(&mut state, &history, &[Key::Esc, Key::Backspace, Key::Esc]);
    assert!(state.path.is_empty());
    assert_eq!((state.row, painted(&state, &history, 80, 24).1), (2, 3), "where it was left");
}

#[test]
fn a_session_that_ended_is_said_to_be_gone_and_its_blocker_is_found() {
    let history = history();
    let mut state = State::at_view(Some("sessions"));
    state.at_ns = Some(4 * SECOND_NS);
    keys(&mut state, &history, &"/transactionid".chars().map(Key::Char).collect::<Vec<_>>());
    keys(&mut state, &history, &[Key::Enter, Key::Char('b')]);
    let (screen, _) = painted(&state, &history, 80, 24);
    assert!(screen.contains("sessions › session 12"), "{screen}");
    assert!(screen.contains("SELECT ?") && screen.contains("On CPU"), "{screen}");
    // Two ticks later the session is gone. The screen says so and stays at this place.
    keys(&mut state, &history, &[Key::Char(']'), Key::Char(']')]);
    let (screen, rows) = painted(&state, &history, 80, 24);
    assert_eq!(rows, 0, "{screen}");
    assert!(screen.contains("session 12"), "{screen}");
    assert!(screen.contains("not active in these ticks, last active at 4 s"), "{screen}");
    keys(&mut state, &history, &[Key::Enter, Key::Char('b'), Key::Char('d'), Key::Char('d')]);
    keys(&mut state, &history, &[Key::Char('['), Key::Char('[')]);
    assert!(painted(&state, &history, 80, 24).0.contains("SELECT ?"));
    keys(&mut state, &history, &[Key::Esc, Key::Esc]);
    assert_eq!(state.filter, "transactionid", "the filter of the pane is there again");
}

#[test]
fn every_place_can_be_painted_however_small_and_is_the_same_in_a_replay() {
    let history = history();
    let mut state = State::at_view(Some("active-sessions"));
    state.at_ns = Some(3 * SECOND_NS);
    // A replay has the rows of all time; a live screen forgets old ones.
    let mut live = history.clone();
    live.forget_before(2 * SECOND_NS);
    for _ in 0..4 {
        for (width, height) in [(20, 24), (40, 8), (41, 12), (80, 24), (200, 60)] {
            let [replayed, seen] =
                [&history, &live].map(|history| painted(&state, history, width, height).0);
            let table = |text: &str| text.lines().skip(1).take(14).collect::<Vec<_>>().join("\n");
            assert_eq!(table(&replayed), table(&seen));
        }
        keys(&mut state, &history, &[Key::Enter]);
    }
    assert_eq!(state.path.len(), 4);
    assert!(painted(&state, &history, 40, 24).0.contains("… › "), "a long way is cut");
    keys(&mut state, &history, &[Key::Tab]);
    assert!(state.path.is_empty(), "another pane leaves the place");
}

#[test]
fn what_the_screen_shows_of_a_place_can_be_asked_for_by_conditions() {
    let history = history();
    let interval = history.interval(3 * SECOND_NS, 4 * SECOND_NS);
    let focus: Focus = ["event=DataFileRead", "query_id=7001"]
        .map(|text| text.parse().unwrap())
        .into_iter()
        .collect();
    let focused = interval.only(&focus);
    let objects = json!(blockstone_view::objects(&focused));
    assert_eq!(objects["where"], json!({ "event": "DataFileRead", "query_id": "7001" }));
    let sampled = registry::find("sampled-sessions").unwrap();
    let rows = json!(sampled.table(&focused));
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert_eq!((&rows[0]["session"], &rows[0]["samples"]), (&json!("13"), &json!(3)));
    let blocked: Focus = std::iter::once("blockers=12".parse().unwrap()).collect();
    let rows = json!(sampled.table(&interval.only(&blocked)));
    assert_eq!(rows[0]["session"], "11");
}
