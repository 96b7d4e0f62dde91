//! Replacement for the loader when the feature `bpf` is off.

use std::convert::Infallible;
use std::os::fd::OwnedFd;

use super::BpfError;

#[derive(Debug)]
pub struct Loaded(Infallible);

impl Loaded {
    pub fn new(_object: &[u8]) -> Result<Self, BpfError> {
        Err(BpfError::Missing { why: "this binary was built without the feature bpf".into() })
    }

    pub fn attach<const N: usize>(
        &mut self,
        _programs: &[&str],
        _optional: [&str; N],
    ) -> Result<[bool; N], BpfError> {
        match self.0 {}
    }

    pub fn map(&self, _name: &'static str) -> Result<OwnedFd, BpfError> {
        match self.0 {}
    }

    pub fn costs(&self) -> Option<Vec<Cost>> {
        match self.0 {}
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    pub program: String,
    pub runs: u64,
    pub ns: u64,
}
