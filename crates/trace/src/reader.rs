//! Bytes of any log → a trace.

use std::io::Read;

use crate::error::TraceError;
use crate::format::{Format, LogReader, Options};
use crate::model::{Kind, Trace};
use crate::normal::{self, Dialect};
use crate::registry::recognise;

/// Number of bytes examined to recognise a format.
const HEAD_BYTES: usize = 64 << 10;
/// Number of bytes examined if those do not suffice: a log that was rotated may begin inside a
/// long statement.
const LONGEST_HEAD_BYTES: usize = 4 << 20;

/// Takes the bytes of one or more files of the same format.
pub struct Reader {
    options: Options,
    format: Option<&'static Format>,
    inner: Option<Box<dyn LogReader>>,
    /// Start of a file whose format has not been recognised yet.
    head: Vec<u8>,
    in_head: bool,
}

impl Reader {
    pub fn new(options: impl Into<Options>) -> Self {
        let options = options.into();
        Self { options, format: None, inner: None, head: Vec::new(), in_head: true }
    }

    /// Takes the next bytes of the current file.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), TraceError> {
        while self.in_head {
            let size = if self.head.len() < HEAD_BYTES { HEAD_BYTES } else { LONGEST_HEAD_BYTES };
            let taken = bytes.len().min(size - self.head.len());
            self.head.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.head.len() < size {
                return Ok(());
            }
            match recognise(&self.head) {
                Err(TraceError::Unknown) if size < LONGEST_HEAD_BYTES => {}
                _ => self.leave_head()?,
            }
        }
        if let Some(inner) = &mut self.inner {
            inner.feed(bytes);
        }
        Ok(())
    }

    /// Ends the current file; another one may follow.
    pub fn end_of_file(&mut self) -> Result<(), TraceError> {
        if self.in_head {
            self.leave_head()?;
        }
        if let Some(inner) = &mut self.inner {
            inner.end_of_file();
        }
        self.in_head = true;
        Ok(())
    }

    /// Ends the current file, if it has not ended yet, and returns the trace.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        if !self.in_head || !self.head.is_empty() || self.inner.is_none() {
            self.end_of_file()?;
        }
        match (self.inner, self.format) {
            (Some(inner), Some(format)) if !inner.found() => Err(match inner.reason() {
                Some((what, hint)) => TraceError::Unread { what, hint },
                None => TraceError::Nothing { what: format.name, hint: format.if_nothing },
            }),
            (Some(inner), Some(format)) => {
                let mut trace = inner.finish();
                let of_oracle = matches!(format.kind, Kind::OracleSql | Kind::Tkprof);
                if of_oracle && !self.options.keep_text {
                    for statement in &mut trace.statements {
                        statement.text = normal::normalised(&statement.text, Dialect::Oracle);
                    }
                }
                Ok(Trace { kind: trace.kind.or(Some(format.kind)), ..trace })
            }
            _ => Err(TraceError::Empty),
        }
    }

    fn leave_head(&mut self) -> Result<(), TraceError> {
        let head = std::mem::take(&mut self.head);
        let format = recognise(&head)?;
        match self.format {
            Some(first) if first.kind != format.kind => {
                return Err(TraceError::Mixed { first: first.name, second: format.name });
            }
            _ => self.format = Some(format),
        }
        self.in_head = false;
        self.inner.get_or_insert_with(|| (format.reader)(self.options)).feed(&head);
        Ok(())
    }
}

/// Reads one file to its end.
pub fn read(mut source: impl Read, options: impl Into<Options>) -> Result<Trace, TraceError> {
    let mut reader = Reader::new(options);
    let mut buffer = vec![0; 128 << 10];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return reader.finish(),
            Ok(taken) => reader.feed(&buffer[..taken])?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}
