//! A message of a log.

/// Longer messages are cut, and a plan that is cut is not parsed.
pub const MESSAGE_BYTES: usize = 512 << 10;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// Empty if it is not known.
    pub process: String,
    pub at_s: Option<f64>,
    pub text: String,
}

/// Adds to the text of a message, if it is not too long.
pub fn append(text: &mut String, between: &str, more: &str) {
    if text.len() + more.len() < MESSAGE_BYTES {
        text.push_str(between);
        text.push_str(more);
    }
}
