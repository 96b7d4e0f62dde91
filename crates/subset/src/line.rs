//! Positions in a text.

/// Returns the line, from one, of a position in a text.
pub fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}
