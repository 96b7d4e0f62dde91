//! Paths and texts of others in messages and tables.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path for messages: control characters and bytes that are not UTF-8 appear as `\x..`, so that a
/// file name cannot control a terminal.
pub fn shown(path: &Path) -> String {
    let mut text = String::new();
    let escape = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            let _ = write!(text, "\\x{byte:02x}");
        }
    };
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() {
                escape(&mut text, letter.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(letter);
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

/// The directory that contains the last name of `path`: `.` for a name alone, `/` for itself.
pub fn parent_dir(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// A text on one line, cut to `characters`.
pub fn one_line(text: &str, characters: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // A character has four bytes at most; statements may have megabytes.
        if line.len() > 4 * characters {
            break;
        }
    }
    line.chars().take(characters).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_name_cannot_control_a_terminal() {
        let name = OsStr::from_bytes(b"a\x1b[2J\xff\xc2\x85b");
        assert_eq!(shown(Path::new(name)), "a\\x1b[2J\\xff\\xc2\\x85b");
    }

    #[test]
    fn every_path_has_a_directory() {
        for (path, dir) in [("a", "."), ("a/b", "a"), ("/a", "/"), ("/", "/"), ("./a", ".")] {
            assert_eq!(parent_dir(Path::new(path)), Path::new(dir), "{path}");
        }
    }

    #[test]
    fn a_statement_of_many_lines_is_one() {
        assert_eq!(one_line("select  1\n\tfrom t", 100), "select 1 from t");
        assert_eq!(one_line("äöü x", 2), "äö");
    }
}
