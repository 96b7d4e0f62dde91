//! The worked examples of docs/offload.md.

use blockstone_testkit::ScratchDir;

use super::super::{Turn, page_figures};

#[test]
fn each_command_of_the_page_prints_its_figures() {
    let _turn = Turn::beside();
    let scratch = ScratchDir::on_disk().unwrap();
    for (name, text) in [
        ("offload-counters.csv", super::RUNS),
        ("offload-reports.csv", include_str!("../../../../../docs/offload-reports.csv")),
    ] {
        std::fs::write(scratch.path().join(name), text).unwrap();
    }
    let page = include_str!("../../../../../docs/offload.md");
    page_figures::are_printed(page, 25, scratch.path());
}
