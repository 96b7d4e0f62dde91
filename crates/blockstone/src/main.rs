//! The program `blockstone`; everything is in the library beside it.

fn main() -> std::process::ExitCode {
    blockstone_cli::main()
}
