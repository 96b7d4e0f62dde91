//! A file that one calibration creates and others read after it.

use std::path::Path;
use std::sync::Arc;

use blockstone_base::units::Bytes;

use crate::error::CalibrateError;
use crate::testfile::TestFile;

/// A test file that outlives its calibration: still locked, and removed with the last clone.
#[derive(Clone, Debug)]
pub struct HeldFile(Arc<TestFile>);

impl HeldFile {
    pub(crate) fn new(file: TestFile) -> Self {
        Self(Arc::new(file))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn size_bytes(&self) -> Result<Bytes, CalibrateError> {
        Ok(Bytes(self.0.main().size_bytes()?))
    }

    /// Creates a file next to it, of the same size, that is one hole.
    pub fn hole(&self) -> Result<Self, CalibrateError> {
        Ok(Self::new(self.0.hole()?))
    }

    /// Reads it into the page cache.
    pub fn cache(&self) -> Result<(), CalibrateError> {
        self.0.buffered(self.size_bytes()?)?;
        Ok(())
    }

    pub(crate) fn again(&self, direct: bool) -> Result<TestFile, CalibrateError> {
        Ok(self.0.again(direct)?)
    }
}
