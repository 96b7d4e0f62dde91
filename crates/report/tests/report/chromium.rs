//! The pages in a real browser: every chart must be drawn, no script may fail. With
//! `BLOCKSTONE_PAGES=DIR` the pages stay in DIR, to be looked at.

use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_judge::compare;
use blockstone_report::html;

use crate::terminal::two;

/// The pages by name.
fn pages() -> Vec<(&'static str, String)> {
    let (a, b) = two();
    let comparison =
        compare((&a.recording.manifest, &a.findings), (&b.recording.manifest, &b.findings));
    let mut pages = vec![("compare", html::compare_page(&comparison).unwrap())];
    pages.push(("flash", crate::flash::page()));
    // One file and none of it have no chart that these do not have.
    let drawn = ["reduce-few", "reduce-many", "reduce-sampled"];
    pages.extend(crate::reduce::pages().into_iter().filter(|(name, _)| drawn.contains(name)));
    pages
}

#[test]
fn every_chart_is_drawn_and_no_script_fails() {
    let scratch = tempfile::Builder::new().prefix("blockstone-report-").tempdir().unwrap();
    let kept = std::env::var_os("BLOCKSTONE_PAGES").map(PathBuf::from);
    let dir = kept.as_deref().unwrap_or(scratch.path());
    let pages = pages();
    for (name, page) in &pages {
        std::fs::write(dir.join(format!("{name}.html")), page).unwrap();
    }
    blockstone_testkit::require!(Chromium);
    for (name, page) in &pages {
        let (dom, log) = drawn(&dir.join(format!("{name}.html")), scratch.path());
        let charts = page.matches("data-plot=\"").count();
        assert_eq!(dom.matches("class=\"main-svg\"").count() > 0, charts > 0, "{name}: {log}");
        assert_eq!(dom.matches("class=\"plot js-plotly-plot\"").count(), charts, "{name}: {log}");
        assert!(!log.contains("CONSOLE") || !log.contains("rror"), "{name}: {log}");
    }
}

/// The document after its scripts ran, and what the browser logged.
fn drawn(page: &Path, scratch: &Path) -> (String, String) {
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", scratch.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
