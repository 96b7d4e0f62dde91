//! A connection that closes without waiting. When the driver's own client is dropped, it reads
//! until all its requests are answered, however long the server takes or however much it sends.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Client {
    driver: postgres::Client,
    /// Read by the stream below the driver.
    closing: Arc<AtomicBool>,
}

impl Client {
    /// Over the network, `closing` must be that of the connector which made the connection.
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
