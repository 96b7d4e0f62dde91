//! Prints the page on the stores that `cargo xtask generate` maintains in docs/.

#[allow(clippy::print_stdout, reason = "the page is what it is run for")]
fn main() {
    print!("{}", blockstone_cli::stores_page());
}
