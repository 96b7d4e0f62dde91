//! The program `blockstone`; everything is in the library beside it.

use blockstone_sys::heap::Ending;

#[global_allocator]
static HEAP: Ending = Ending;

fn main() -> std::process::ExitCode {
    blockstone_cli::main()
}
