//! The worked examples of docs/size.md.

use std::path::Path;

use super::super::{Turn, page_figures};

#[test]
fn each_command_of_the_page_prints_its_figures() {
    let _turn = Turn::beside();
    let page = include_str!("../../../../../docs/size.md");
    page_figures::are_printed(page, 40, Path::new("."));
}
