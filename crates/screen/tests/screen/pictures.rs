//! Histograms, maps and charts against known counts.

use blockstone_base::column::{Cell, Kind};
use blockstone_record::testing::probe;
use blockstone_screen::{Key, Span, State};
use blockstone_view::History;

use super::{SECOND_NS, keys, painted};

/// Starts of the buckets of this history's probe. They end at 1 µs, 16 µs and 1 ms; the last has no
/// end.
const STARTS: [u64; 4] = [0, 8_192, 524_288, 1 << 40];

/// Six ticks. In the tick that ends at second n, sessions made 4ⁿ reads of 8 to 16 µs, and in the
/// last one 2 of half a millisecond and 3 flushes of more than a day.
fn history() -> History {
    let states = (Kind::State, "layer role file file_type operation mode");
    let counters = STARTS.iter().fold("ios bytes queue_ns elapsed_ns".to_owned(), |all, start| {
        format!("{all} ios_from_{start}ns")
    });
    let kernel = probe("kernel_io", &[states, (Kind::Counter, &counters)]);
    let mut history = History::new(vec![probe("host", &[]), kernel]);
    let row = |operation: &str, buckets: [u64; 4]| {
        let texts = ["block", "db/session", "/data/1", "data", operation, "sync"];
        let ios: u64 = buckets.iter().sum();
        let mut cells: Vec<Cell> = texts.map(|text| Cell::Text(text.to_owned())).into();
        cells.extend([ios, ios * 8_192, ios * 1_000, ios * 10_000].map(Cell::from));
        cells.extend(buckets.map(Cell::from));
        cells
    };
    let mut reads = 0;
    for second in 0..=5_u64 {
        let t_ns = second * SECOND_NS;
        history.push("host", t_ns, "", Vec::new());
        let late = u64::from(second == 5);
        reads += if second == 0 { 0 } else { 4_u64.pow(second as u32) };
        history.push("kernel_io", t_ns, "reads", row("read", [0, reads, 2 * late, 0]));
        history.push("kernel_io", t_ns, "flushes", row("flush", [0, 0, 0, 3 * late]));
    }
    history
}

fn shown(key: char, width: u16, height: u16) -> String {
    let history = history();
    let mut state = State::at_view(Some("io-by-role"));
    keys(&mut state, &history, &[Key::Char(key)]);
    painted(&state, &history, width, height).0
}

fn line<'a>(screen: &'a str, start: &str) -> &'a str {
    let found = screen.lines().find(|line| line.starts_with(start));
    found.unwrap_or_else(|| panic!("no line begins with {start}:\n{screen}")).trim_end()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn a_histogram_says_how_many_took_how_long() {
    let screen = shown('h', 80, 24);
    assert!(screen.contains("io-by-role › requests to devices, db/session"), "{screen}");
    assert_eq!(words(line(&screen, "     ")), ["read", "flush"], "{screen}");
    assert_eq!(words(line(&screen, "count")), ["count", "1,026", "3"], "{screen}");
    assert_eq!(words(line(&screen, "mean")), ["mean", "10", "µs", "10", "µs"], "{screen}");
    assert_eq!(words(line(&screen, "in queue")), ["in", "queue", "1", "µs", "1", "µs"]);
    assert_eq!(words(line(&screen, "p99 ")), ["p99", "524", "µs", "–"], "{screen}");
    assert_eq!(words(line(&screen, "<16.4 µs"))[2], "1,024", "{screen}");
    assert_eq!(words(line(&screen, "<1.05 ms"))[2..], ["2", "▏"], "{screen}");
    assert_eq!(words(line(&screen, "≥17.2 s"))[2], "3", "{screen}");
    assert!(line(&screen, "<16.4 µs").contains("█████"), "{screen}");
    assert!(line(&screen, "≥17.2 s").contains("█████"), "each operation has its own scale");
}

#[test]
fn where_there_are_fewer_lines_than_octaves_none_is_lost() {
    for height in 8..24 {
        let screen = shown('h', 80, height);
        assert_eq!(words(line(&screen, "count"))[1], "1,026");
        assert!(screen.lines().last().unwrap().starts_with("? help"), "{screen}");
        let bars = screen.lines().filter(|line| line.starts_with(['<', '≥']));
        let numbers =
            bars.flat_map(words).filter_map(|word| word.replace(',', "").parse::<u64>().ok());
        let total: u64 = numbers.sum();
        assert_eq!(total, if height > 10 { 1_029 } else { 0 }, "{screen}");
    }
}

#[test]
fn a_map_is_dark_where_many_are() {
    let screen = shown('m', 80, 24);
    // 1,024 in the last cell: the shades begin at 1, ⁴√1024 = 6, 32 and 182.
    let legend = words(line(&screen, "read"));
    assert_eq!(legend[5..13], ["░", "1", "▒", "6", "▓", "32", "█", "182"], "{screen}");
    let cells: String = line(&screen, "<16.4 µs").chars().skip(10).collect();
    assert_eq!(cells, "░▒▓██", "4, 16, 64, 256 and 1,024 reads: {screen}");
    let cells: String = line(&screen, "<1.05 ms").chars().skip(10).collect();
    assert_eq!(cells, "    ░", "{screen}");
    assert!(line(&screen, "          0 ns").ends_with("5 s"), "{screen}");
    let history = history();
    let mut state = State::at_view(Some("io-by-role"));
    keys(&mut state, &history, &[Key::Char('m'), Key::Char('o')]);
    let screen = painted(&state, &history, 80, 24).0;
    let cells: String = line(&screen, "≥17.2 s").chars().skip(10).collect();
    assert_eq!(cells, "    █", "flushes, all of them in the last cell: {screen}");
    // All ticks: five columns, one per interval.
    (state.operation, state.span) = (0, Span::All);
    let screen = painted(&state, &history, 40, 24).0;
    let cells: String = line(&screen, "<16.4 µs").chars().skip(10).collect();
    assert_eq!(cells.chars().count(), 5, "{screen}");
}

#[test]
fn a_chart_has_a_scale_and_a_picture_stays_with_its_row() {
    let history = history();
    let mut state = State::at_view(Some("io-by-role"));
    keys(&mut state, &history, &[Key::Char('t')]);
    let screen = painted(&state, &history, 80, 24).0;
    let title = "db/session r sync/s: now 1,026, mean 273, max 1,026";
    assert!(screen.contains(title), "{screen}");
    assert!(line(&screen, "1,026").ends_with('█'), "{screen}");
    // The next column, which now also orders the rows.
    keys(&mut state, &history, &[Key::Char('s'), Key::Char('s'), Key::Char('s'), Key::Char('s')]);
    let screen = painted(&state, &history, 80, 24).0;
    assert!(screen.contains("db/session read: now 8.4 MB/s"), "{screen}");
    // At a tick without the row, the picture stays until it is closed.
    keys(&mut state, &history, &[Key::Home, Key::Esc]);
    assert!(state.picture.is_none());
}

#[test]
fn pictures_are_the_same_in_a_replay_and_small_ones_do_no_harm() {
    let history = history();
    let mut live = history.clone();
    live.forget_before(3 * SECOND_NS);
    for key in ['h', 'm', 't'] {
        for (width, height) in [(20, 24), (40, 8), (41, 9), (60, 11), (80, 24), (200, 60)] {
            let mut state = State::at_view(Some("io-by-role"));
            keys(&mut state, &history, &[Key::Char(key)]);
            let replayed = painted(&state, &history, width, height).0;
            let seen = painted(&state, &live, width, height).0;
            let body = |text: &str| text.lines().skip(1).take(12).collect::<Vec<_>>().join("\n");
            if key == 'h' {
                assert_eq!(body(&replayed), body(&seen));
            }
        }
    }
    let mut state = State::at_view(Some("disks"));
    keys(&mut state, &history, &[Key::Char('h')]);
    assert!(painted(&state, &history, 80, 24).0.contains("`block`"));
}
