//! Where in a text something is.

/// The line, from one, of a place in a text.
pub fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}
