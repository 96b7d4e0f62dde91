//! Messages between the sides of a check, and the log that a witness makes of them.

use blockstone_check::coherence::findings::{ReadMode, WriteMode};
use blockstone_check::coherence::{Ask, Reply};
use blockstone_check::durability::findings::{Description, Method, Pattern, Stream};
use blockstone_check::durability::{Ledger, testimony};
use blockstone_check::meet::{FRAME, Frame, Hello, Kind, Message, read, with_text};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("these are written as JSON")
}

pub fn conversations() -> Vec<Vec<u8>> {
    let asks = [
        Ask::Time,
        Ask::Start { id: 7 },
        Ask::Write { mode: WriteMode::Direct, block: 3, version: 41 },
        Ask::ReadSector { mode: ReadMode::Held, block: 3, sector: 1 },
        Ask::End(None),
    ];
    let mut ranks = Hello::new("coherence", 1, 2).bytes();
    for ask in asks {
        ranks.extend(with_text(Kind::Message, 0, &text(&ask)));
    }
    let step = r#"{"is_write":true,"block":1,"version":9,"start_ns":1,"end_ns":2}"#;
    let history = format!(r#"{{"start_ns":1,"end_ns":5,"answer":{{"History":[{step},{step}]}}}}"#);
    ranks.extend(with_text(Kind::Message, 0, &history));

    let stream = Stream { method: Method::Fsync, pattern: Pattern::Append };
    let (host, path) = ("db1".to_owned(), "/data".to_owned());
    let streams = vec![stream; 2];
    let description = Description { host, path, device_bytes: Some(1 << 30), streams };
    let mut log = with_text(Kind::Begin, 9, &text(&description));
    log.extend(Frame::new(Kind::Of, 9, 0).bytes());
    for sequence in 1..=3 {
        for stream in 0..2 {
            log.extend(Frame { kind: Kind::Point, stream, a: sequence, b: 7 }.bytes());
        }
    }
    log.extend(Frame::new(Kind::Outcome, 9, 1).bytes());
    let (ledger, _) = Ledger::replay(&mut &log[..]).expect("memory can be read");
    let known = ledger.testimony(9).map(|known| text(&known)).unwrap_or_default();
    let mut answers = with_text(Kind::Testimony, 9, &known);
    answers.extend(Frame::new(Kind::Durable, 6, 0).bytes());
    answers.extend(with_text(Kind::Refused, 0, "this run is known already"));
    vec![ranks, log, answers]
}

/// Recomputes the checksums of frames and of their texts.
fn sealed(input: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    let mut at = 0;
    while let Some(frame) = bytes.get(at..at + FRAME) {
        let kind = Kind::ALL.get(usize::from(frame[0]).wrapping_sub(1));
        let length = frame[16..24].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        let mut end = at + FRAME;
        if kind.is_some_and(|kind| kind.text_max().is_some()) {
            end = end.saturating_add(length).min(bytes.len());
            let hash = xxh3_64(&bytes[at + FRAME..end]) as u32;
            bytes[at + 4..at + 8].copy_from_slice(&hash.to_le_bytes());
        }
        let sum = xxh3_64(&bytes[at..at + 24]);
        bytes[at + 24..at + FRAME].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
    bytes
}

/// Reads the input as each side would.
pub fn talk(input: &[u8]) -> bool {
    let bytes = sealed(input);
    let (ledger, good) = Ledger::replay(&mut &bytes[..]).expect("memory can be read");
    assert!(good <= bytes.len() as u64);
    drop((ledger.witnessed(), ledger.testimony(0)));
    let mut from = &bytes[..];
    loop {
        match read(&mut from) {
            Ok(Some(message)) if makes_sense(&message) => {}
            Ok(None) => return true,
            Ok(Some(_)) | Err(_) => return false,
        }
    }
}

fn makes_sense(Message { frame, text }: &Message) -> bool {
    fn parses<'a, T: serde::Deserialize<'a>>(text: &'a str) -> bool {
        serde_json::from_str::<T>(text).is_ok()
    }
    match frame.kind {
        Kind::Hello => parses::<Hello>(text),
        Kind::Message => parses::<Ask>(text) || parses::<Reply>(text),
        Kind::Begin => parses::<Description>(text),
        Kind::Testimony => testimony(text).is_ok(),
        _ => true,
    }
}
