//! A private server: made for a run, reached through a socket in its own directory, gone with it.

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
    /// Removed after the server ended.
    page_cache: Option<PageCacheBound>,
    end: Signal,
}

/// What differs between the servers of databases.
pub trait Recipe: Sized {
    type Address: ServerAddress;
    /// The user it runs as where this program is the superuser: the first that exists.
    const USERS: &'static [&'static str];
    /// What ends it at once; nothing in it is needed any more.
    const END: Signal;

    /// Finds the programs that make and serve it.
    fn find(spec: &TargetSpec) -> Result<Self, SqlError>;

    /// The server's.
    fn program(&self) -> &Path;

    /// Makes what it needs in its home, and starts it.
    fn start(&self, spec: &TargetSpec, home: &Home) -> Result<Server, SqlError>;

    fn address(&self, home: &Home) -> Self::Address;
}

impl<A: ServerAddress> PrivateServer<A> {
    /// Makes and starts it in the first place of `spec`. When that fails, the place is as it was.
    pub fn make<R: Recipe<Address = A>>(spec: &TargetSpec) -> Result<Self, SqlError> {
        let recipe = R::find(spec)?;
        let home = Home::make(&spec.first_place(), recipe.program(), R::USERS)?;
        let bound = |most| PageCacheBound::create(Path::new("/"), most).map_err(SqlError::from);
        let page_cache = spec.page_cache.map(bound).transpose()?;
        let started = recipe.start(spec, &home).and_then(|mut server| {
            let join = |pid| page_cache.as_ref().map_or(Ok(()), |bound| bound.add(pid));
            join(server.pid())?;
            let address = recipe.address(&home);
            server.wait_for(|| Ok(address.connect().ok().map(drop)))?;
            // It may have been faster.
            for child in account::children(Path::new("/"), server.pid()) {
                join(child.pid)?;
            }
            Ok((server, address))
        });
        match started {
            Ok((server, address)) => Ok(Self { address, home, server, page_cache, end: R::END }),
            Err(error) => {
                // A target that fails to open leaves its place as it was.
                home.remove();
                Err(error)
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Whether it has not ended yet.
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
