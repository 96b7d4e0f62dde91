//! A connection whose end waits for nobody: when the driver's own is dropped, it reads until all
//! that it asked for is answered, however long a server takes or talks.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Client {
    driver: postgres::Client,
    /// Seen by the stream under the driver.
    closing: Arc<AtomicBool>,
}

impl Client {
    /// Over the network, `closing` is that of the connector by which it was made.
    pub fn new(driver: postgres::Client, closing: Arc<AtomicBool>) -> Self {
        Self { driver, closing }
    }
}

impl Deref for Client {
    type Target = postgres::Client;

    fn deref(&self) -> &postgres::Client {
        &self.driver
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut postgres::Client {
        &mut self.driver
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
    }
}
