//! Random bytes from the kernel, for names, salts and passwords.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Fills `bytes`; early in the boot of a machine, waits until the kernel has gathered enough
/// entropy.
pub fn fill(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(filled) => bytes = &mut bytes[filled..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_filled() {
        let mut drawn = [[0; 1000]; 2];
        for bytes in &mut drawn {
            fill(bytes).unwrap();
            assert_ne!(bytes[990..], [0; 10]);
        }
        assert_ne!(drawn[0], drawn[1]);
    }
}
