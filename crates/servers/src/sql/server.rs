//! Common behaviour of all database servers as targets: an address, a schema that is removed with
//! the run, and possibly a private server that is too.

use std::fmt;

use blockstone_base::units::Bytes;
use parking_lot::Mutex;

use super::content::Content;
use super::error::SqlError;
use super::host::{ServerAddress, without_password};
use super::patience;
use super::private::{PrivateServer, Recipe};
use super::removed_left;
use crate::family::{Family, IoRefused, Settings};
use crate::spec::{Storage, TargetSpec};
use crate::target::{Demand, TargetError};

/// The address of a private server.
pub const SCRATCH: &str = "scratch";

pub fn storage<A: ServerAddress>(spec: &TargetSpec) -> Result<Storage, TargetError> {
    if spec.address == SCRATCH {
        return Ok(Storage::Named);
    }
    let address = A::parse(&spec.address)?;
    let mut link = address.connect()?;
    let directory = address.within_limit(|| Ok(A::data_directory(&mut link)))?;
    Ok(Storage::Served(directory.filter(|dir| address.is_local() && dir.is_dir())))
}

/// Returns the space that a private server needs in its place: `row_bytes` per row, and `aside`.
/// Settings are only for private servers.
pub fn demand(
    spec: &TargetSpec,
    family: &Family,
    row_bytes: u64,
    aside: u64,
) -> Result<Demand, TargetError> {
    if spec.address == SCRATCH {
        return Ok(Content::new(spec).demand(spec, row_bytes, aside));
    }
    if !spec.settings.is_empty() {
        let (name, option) = (family.name, family.options[0].name);
        Err(SqlError::unsuitable(
            format!("{name}:{}", without_password(&spec.address)),
            "settings cannot be given to a running server",
            format!("--{option} is for {name}:{SCRATCH}"),
        ))?;
    }
    Ok(Demand { places: vec![Bytes(0); spec.places.len()] })
}

/// Returns the setting with which a private server uses the requested kind of I/O.
pub fn io(spec: &TargetSpec, (name, value): (&str, &str)) -> Result<Settings, IoRefused> {
    if spec.address != SCRATCH {
        let hint = "the server's own settings say how it reads and writes";
        return IoRefused::of("the server was not started by this run", hint);
    }
    if spec.settings.iter().any(|(given, _)| given.replace('-', "_") == name) {
        return IoRefused::of(format!("the setting {name} is given too"), "omit one of them");
    }
    Ok(vec![(name.to_owned(), value.to_owned())])
}

/// Removes the schema that a run left on the server; returns whether there was one. Fails if a
/// schema of that name was not created by a run.
pub fn remove_left<A: ServerAddress>(address: &str) -> Result<bool, TargetError> {
    let address = A::parse(address)?;
    let mut owner = address.connect()?;
    let found = address.within_limit(|| {
        address.take(&mut owner)?;
        A::found_schema(&mut owner)
    })?;
    match found {
        None => Ok(false),
        Some(true) => Ok(address.border().cross(|| A::drop_schema(&mut owner)).map(|()| true)?),
        Some(false) => Err(SqlError::not_ours(address.name()).into()),
    }
}

/// Resources of a run on a server until it is torn down: the lock, the schema, and the server if it
/// is private.
pub struct Owned<A: ServerAddress> {
    pub address: A,
    /// The server's process, if the server is private.
    pub pid: Option<u32>,
    /// Notes for the reader about the start of the run.
    pub notes: Vec<String>,
    /// The connection that holds the lock and cleans up; `None` after that.
    owner: Mutex<Option<A::Connection>>,
    private: Mutex<Option<PrivateServer<A>>>,
}

impl<A: ServerAddress> fmt::Debug for Owned<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("address", &self.address.name()).finish_non_exhaustive()
    }
}

impl<A: ServerAddress> Owned<A> {
    /// Connects to the server, or creates one by the recipe `R`. Returns the result of `check`,
    /// which is called before anything is changed; `make` creates schema and tables.
    pub fn open<R: Recipe<Address = A>, T>(
        spec: &TargetSpec,
        check: impl FnOnce(&A, &mut A::Connection) -> Result<T, SqlError>,
        make: impl FnOnce(&mut A::Connection) -> Result<(), SqlError>,
    ) -> Result<(Self, T), SqlError> {
        let scratch = spec.address == SCRATCH;
        let private = scratch.then(|| PrivateServer::make::<R>(spec)).transpose()?;
        let address = match &private {
            Some(private) => private.address.clone(),
            None => A::parse(&spec.address)?,
        };
        let mut owner = address.connect()?;
        let (checked, found) = address.within_limit(|| {
            let checked = check(&address, &mut owner)?;
            address.take(&mut owner)?;
            Ok((checked, A::found_schema(&mut owner)?))
        })?;
        let mut notes = Vec::new();
        match found {
            None => {}
            Some(true) => {
                address.border().cross(|| A::drop_schema(&mut owner))?;
                notes.push(removed_left(address.name()));
            }
            Some(false) => return Err(SqlError::not_ours(address.name())),
        }
        address.border().cross(|| {
            make(&mut owner).inspect_err(|_| {
                let _ = A::drop_schema(&mut owner);
            })
        })?;
        let pid = private.as_ref().map(PrivateServer::pid);
        let (owner, private) = (Mutex::new(Some(owner)), Mutex::new(private));
        Ok((Self { address, pid, notes, owner, private }, checked))
    }

    /// Adds the reason in a private server's log to `error`.
    pub fn explained(&self, error: SqlError) -> SqlError {
        match &*self.private.lock() {
            Some(private) => private.explained(error),
            None => error,
        }
    }

    pub fn tear_down(&self) -> Result<(), SqlError> {
        let owner = self.owner.lock().take();
        if self.private.lock().take().is_some() {
            return Ok(());
        }
        let Some(mut owner) = owner else { return Ok(()) };
        patience::removing(|| {
            if A::drop_schema(&mut owner).is_ok() {
                return Ok(());
            }
            // The server may have been restarted in the meantime.
            let again = self.address.connect().and_then(|mut owner| A::drop_schema(&mut owner));
            again.map_err(|error| SqlError::remains(self.address.name(), &error))
        })
    }
}
