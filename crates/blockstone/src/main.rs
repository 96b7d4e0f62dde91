//! The program `blockstone`; all of its code is in the library.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use blockstone_sys::heap::Ending;

#[global_allocator]
static HEAP: Ending = Ending;

fn main() -> std::process::ExitCode {
    blockstone_cli::main()
}
