//! The program `blockstone`; everything is in the library beside it.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use blockstone_sys::heap::Ending;

#[global_allocator]
static HEAP: Ending = Ending;

fn main() -> std::process::ExitCode {
    blockstone_cli::main()
}
