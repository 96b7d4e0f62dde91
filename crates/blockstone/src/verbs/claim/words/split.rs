//! Splits the text of a claim into words.

use crate::verbs::claim::units;

/// Characters that separate words and mean nothing else in a claim.
const DROPPED: [char; 22] = [
    '(', ')', '[', ']', '{', '}', '"', '\'', '“', '”', '‘', '’', ';', '|', '•', '·', '*', '~', '≈',
    '!', '?', '…',
];
/// Characters that are words of their own.
const WORDS: [char; 5] = ['=', '→', '@', '≥', '≤'];
const DASHES: [char; 3] = ['-', '–', '—'];
const SIGNS: [char; 3] = ['x', 'X', '×'];

pub fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let mut rest = word;
        while let Some((piece, next)) = first(rest) {
            let ends = next.starts_with([',', ';', ':', ')']);
            push(piece, ends, &mut found);
            rest = next;
        }
    }
    found
}

/// Adds a word, divided where a number of equal things ends: `2x2Gb`.
fn push<'a>(word: &'a str, ends: bool, found: &mut Vec<&'a str>) {
    let bare = if ends && word.ends_with(SIGNS) { word } else { word.trim_end_matches(SIGNS) };
    let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let (count, rest) = word.split_at(digits);
    let sign = rest.chars().next().filter(|c| SIGNS.contains(c));
    let (Some(sign), false) = (sign.filter(|_| !count.is_empty()), bare == word && ends) else {
        found.push(word);
        return;
    };
    let (sign, rest) = rest.split_at(sign.len_utf8());
    if rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()) {
        found.extend([count, sign, rest].into_iter().filter(|part| !part.is_empty()));
    } else {
        found.push(word);
    }
}

/// Divides text without spaces into its first word and the rest.
fn first(text: &str) -> Option<(&str, &str)> {
    let text =
        text.trim_start_matches(|c: char| DROPPED.contains(&c) || [',', ':', '.'].contains(&c));
    let begins = text.chars().next()?;
    if let Some(rest) = text.strip_prefix("->") {
        return Some(("→", rest));
    }
    let operator = [">=", "<=", ">", "<"].into_iter().find(|sign| text.starts_with(sign));
    let single = (WORDS.contains(&begins) || begins == '+' || DASHES.contains(&begins))
        .then(|| begins.len_utf8());
    if let Some(length) = operator.map(str::len).or(single) {
        let (word, rest) = text.split_at(length);
        let word = if DASHES.contains(&begins) { "-" } else { word };
        return Some((word, rest));
    }
    let mut before = None;
    for (at, c) in text.char_indices() {
        let (head, tail) = text.split_at(at);
        let after = tail[c.len_utf8()..].chars().next();
        if ends_before(head, before, c, after) {
            return Some((head, tail));
        }
        // A dash or a slash between a number and a name: `10-gigabit`, `40TB/day`.
        if c == '-' && is_number(head) && after.is_some_and(char::is_alphabetic) {
            return Some((head, &tail[1..]));
        }
        if c == '/' && at > 0 && units::is_divisor(&tail[1..]) {
            return Some((head, tail));
        }
        if c == '/' && at == 0 {
            let divided = units::is_divisor(&tail[1..]);
            return Some((if divided { "per" } else { "/" }, &tail[1..]));
        }
        before = Some(c);
    }
    Some((text, ""))
}

/// Whether a word ends before this character.
fn ends_before(head: &str, before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    let (digit_before, digit_after) =
        (before.is_ascii_digit(), after.is_some_and(|c| c.is_ascii_digit()));
    let starts_with_digit = head.starts_with(|c: char| c.is_ascii_digit());
    match c {
        ',' | ':' => !(digit_before && digit_after),
        '.' => !after.is_some_and(char::is_alphanumeric),
        '/' => starts_with_digit && digit_after,
        '+' => digit_before,
        '<' | '>' => true,
        c if DASHES.contains(&c) => {
            (starts_with_digit && digit_after)
                || (c != '-' && !after.is_some_and(char::is_alphabetic))
        }
        c => DROPPED.contains(&c) || WORDS.contains(&c),
    }
}

fn is_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',')
}
