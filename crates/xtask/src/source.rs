//! Rust text, far enough understood to search the code without its comments and strings.

/// `text` with everything in comments, strings and character literals replaced by spaces; lines
/// stay where they are.
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let length = blank_length(&chars, at);
        if length == 0 {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        let end = (at + length).min(chars.len());
        out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    out
}

/// How many characters from `at` on are a comment, a string or a character literal; 0 for code.
fn blank_length(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => chars[at..].iter().take_while(|&&c| c != '\n').count(),
        '/' if next == Some('*') => block_comment(&chars[at..]),
        '"' => string(&chars[at..]),
        'r' if !follows_word(chars, at) => raw_string(&chars[at..]),
        '\'' => character(&chars[at..]),
        _ => 0,
    }
}

/// Whether the character before `at` belongs to a word, so that an `r` there ends a name. The
/// prefixes of byte and C strings are part of their literal.
fn follows_word(chars: &[char], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|index| chars[index]) else { return false };
    (before.is_alphanumeric() || before == '_') && !matches!(before, 'b' | 'c')
}

/// Block comments nest.
fn block_comment(chars: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string(chars: &[char]) -> usize {
    let mut at = 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// `r"…"`, `r#"…"#` and so on; 0 when the `r` begins something else.
fn raw_string(chars: &[char]) -> usize {
    let hashes = chars[1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let closing: Vec<char> = std::iter::once('"').chain((0..hashes).map(|_| '#')).collect();
    let start = 2 + hashes;
    let found = chars[start..].windows(closing.len()).position(|window| window == closing);
    found.map_or(chars.len(), |position| start + position + closing.len())
}

/// `'a'` or `'\n'`; 0 for a lifetime, which no quote closes.
fn character(chars: &[char]) -> usize {
    if chars.get(1) == Some(&'\\') {
        let rest = chars.iter().skip(3).position(|&c| c == '\'');
        return rest.map_or(chars.len(), |position| position + 4);
    }
    if chars.get(2) == Some(&'\'') { 3 } else { 0 }
}

/// Whether `line` contains `word` as a word of its own.
pub fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_remains_and_lines_stay() {
        let blanked = |text: &str| !code_only(text).contains("unsafe");
        assert!(blanked("// unsafe\n"));
        assert!(blanked("/* a /* unsafe */ unsafe */"));
        assert!(blanked("let a = \"un \\\" unsafe\";"));
        assert!(blanked("let a = r#\"a \" unsafe\"#;"));
        assert!(blanked("let a = br\"unsafe\";"));
        let kept = ["unsafe {}", "let c = '\"'; unsafe {}", "let c = '\\''; unsafe {}"];
        assert!(kept.iter().all(|text| code_only(text).contains("unsafe")));
        let lifetime = "fn f<'a>(a: &'a str) { unsafe {} }";
        assert_eq!(code_only(lifetime), lifetime);
        let lines = "a // b\n\"c\nd\"\ne\n";
        assert_eq!(code_only(lines).lines().count(), lines.lines().count());
    }

    #[test]
    fn a_word_is_whole() {
        assert!(has_word("unsafe {", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
        assert!(!has_word("deny(my_unsafe)", "unsafe"));
    }
}
