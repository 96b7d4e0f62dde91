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

    pub fn spent(&self) -> Option<(u64, u64)> {
        match self.0 {}
    }
}
