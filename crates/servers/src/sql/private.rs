//! A private server: created for a run, reached through a socket in its own directory, and removed
//! with the run.

use std::path::Path;

use blockstone_sys::account;
use blockstone_sys::child::Signal;
use blockstone_sys::page_cache::PageCacheBound;

use super::error::SqlError;
use super::host::ServerAddress;
use super::scratch::{Home, Server};
use crate::spec::TargetSpec;

#[derive(Debug)]
pub struct PrivateServer<A> {
    pub address: A,
    home: Home,
    server: Server,
    /// Removed after the server has exited.
    page_cache: Option<PageCacheBound>,
    end: Signal,
}

/// Steps that differ between databases.
pub trait Recipe: Sized {
    type Address: ServerAddress;
    /// Users to run it as if this program is the superuser: the first that exists is used.
    const USERS: &'static [&'static str];
    /// The signal that stops it immediately; its data are no longer needed.
    const END: Signal;

    /// Finds the programs that create and run it.
    fn find(spec: &TargetSpec) -> Result<Self, SqlError>;

    /// Returns the path of the server program.
    fn program(&self) -> &Path;

    /// Creates what it needs in its home, and starts it.
    fn start(&self, spec: &TargetSpec, home: &Home) -> Result<Server, SqlError>;

    fn address(&self, home: &Home) -> Self::Address;
}

impl<A: ServerAddress> PrivateServer<A> {
    /// Creates and starts it in the first place of `spec`. If that fails, the place is left as it
    /// was.
    pub fn make<R: Recipe<Address = A>>(spec: &TargetSpec) -> Result<Self, SqlError> {
        let recipe = R::find(spec)?;
        let home = Home::make(&spec.first_place(), recipe.program(), R::USERS)?;
        let bound = |most| PageCacheBound::create(Path::new("/"), most).map_err(SqlError::from);
        let page_cache = spec.options.page_cache_bytes.map(bound).transpose()?;
        let started = recipe.start(spec, &home).and_then(|mut server| {
            let join = |pid| page_cache.as_ref().map_or(Ok(()), |bound| bound.add(pid));
            join(server.pid())?;
            let address = recipe.address(&home);
            server.wait_for(|| Ok(address.connect().ok().map(drop)))?;
            // Adds children that the server started before it was added itself.
            for child in account::children(Path::new("/"), server.pid()) {
                join(child.pid)?;
            }
            Ok((server, address))
        });
        match started {
            Ok((server, address)) => Ok(Self { address, home, server, page_cache, end: R::END }),
            Err(error) => {
                // If opening a target fails, its place is left as it was.
                home.remove();
                Err(error)
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Whether it is still running.
    pub fn is_running(&mut self) -> bool {
        self.server.is_running()
    }

    pub fn explained(&self, error: SqlError) -> SqlError {
        self.server.explained(error)
    }
}

impl<A> Drop for PrivateServer<A> {
    fn drop(&mut self) {
        self.server.stop(self.end);
        self.home.remove();
        self.page_cache = None;
    }
}
