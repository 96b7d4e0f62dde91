//! The page of any report, as text and in a browser.

mod sample;

use blockstone_report::render::html;

#[test]
fn the_sample_is_kept_to_be_looked_at() {
    let page = html::page(&sample::report()).unwrap();
    if let Some(dir) = std::env::var_os("BLOCKSTONE_PAGES") {
        std::fs::write(std::path::Path::new(&dir).join("sample.html"), &page).unwrap();
    }
    assert!(page.len() < 600_000, "{}", page.len());
}
