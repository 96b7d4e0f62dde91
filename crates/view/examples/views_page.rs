//! Prints the page on the views that `cargo xtask generate` keeps in docs/.

#[allow(clippy::print_stdout, reason = "the page is what it is run for")]
fn main() {
    print!("{}", blockstone_view::views_page());
}
