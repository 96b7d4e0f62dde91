//! A private server: made for a run, reached through a socket in its own directory, gone with it.

use std::sync::{Mutex, PoisonError};

use blockstone_sys::child::Signal;

use super::error::SqlError;
use super::scratch::{Home, Server};
use crate::spec::TargetSpec;

#[derive(Debug)]
pub struct PrivateServer<A> {
    pub address: A,
    home: Home,
    server: Server,
    end: Signal,
}

/// What differs between the servers of databases.
pub trait Recipe {
    type Address;
    /// The user it runs as where this program is the superuser: the first that exists.
    const USERS: &'static [&'static str];
    /// What ends it at once; nothing in it is needed any more.
    const END: Signal;

    /// Makes what it needs in its home, and starts it.
    fn start(&self, spec: &TargetSpec, home: &Home) -> Result<Server, SqlError>;

    fn address(home: &Home) -> Self::Address;

    fn answers(address: &Self::Address) -> bool;
}

impl<A> PrivateServer<A> {
    /// Makes and starts it in the first place of `spec`.
    ///
    /// # Errors
    /// When it cannot be made or does not answer. Its place is then as it was.
    pub fn make<R: Recipe<Address = A>>(recipe: &R, spec: &TargetSpec) -> Result<Self, SqlError> {
        let place = spec.places.first().map(|place| place.path.clone()).unwrap_or_default();
        let home = Home::make(&place, R::USERS)?;
        let started = recipe.start(spec, &home).and_then(|mut server| {
            let address = R::address(&home);
            server.wait_for(|| Ok(R::answers(&address).then_some(())))?;
            Ok((server, address))
        });
        match started {
            Ok((server, address)) => Ok(Self { address, home, server, end: R::END }),
            Err(error) => {
                // A target that fails to open leaves its place as it was.
                let _ = std::fs::remove_dir_all(home.path());
                Err(error)
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }
}

impl<A> Drop for PrivateServer<A> {
    fn drop(&mut self) {
        self.server.stop(self.end);
        let _ = std::fs::remove_dir_all(self.home.path());
    }
}

/// The private server of a target that has one, until it is torn down.
#[derive(Debug)]
pub struct Holder<A>(Mutex<Option<PrivateServer<A>>>);

impl<A> Holder<A> {
    pub fn new(server: Option<PrivateServer<A>>) -> Self {
        Self(Mutex::new(server))
    }

    /// `error` with what the log of the server says.
    pub fn explained(&self, error: SqlError) -> SqlError {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(private) => private.server.explained(error),
            None => error,
        }
    }

    /// Ends it; `false` when there is none.
    pub fn end(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}
