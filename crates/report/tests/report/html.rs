//! A comparison as a page.

use blockstone_judge::compare;
use blockstone_report::html;

use crate::terminal::two;

#[test]
fn a_comparison_renders_on_one_page() {
    let (a, b) = two();
    let comparison =
        compare((&a.recording.manifest, &a.findings), (&b.recording.manifest, &b.findings));
    let page = html::compare_page(&comparison).unwrap();
    assert!(page.contains("difference not established"));
    assert!(page.contains("slower"));
    assert!(page.len() < 200_000, "a comparison needs no chart library");
}
