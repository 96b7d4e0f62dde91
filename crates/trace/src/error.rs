//! Reasons why a file is rejected.

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("read trace: the file is empty\nhint: trace the session first, or give another file")]
    Empty,
    #[error("read trace: the file is {what}\nhint: {hint}")]
    Other { what: &'static str, hint: &'static str },
    #[error(
        "read trace: the format is not known\n\
         hint: an Oracle SQL trace, a slow query log or a log of PostgreSQL is expected"
    )]
    Unknown,
    #[error("read trace: {what} holds no call and no wait\nhint: {hint}")]
    Nothing { what: &'static str, hint: &'static str },
    #[error(
        "read trace: this file is {second}, those before are {first}\n\
         hint: give files of one kind"
    )]
    Mixed { first: &'static str, second: &'static str },
    #[error("read trace: {0}")]
    Io(#[from] std::io::Error),
}
