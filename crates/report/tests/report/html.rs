//! The page as text; how it renders is in `chromium`.

use blockstone_base::Capability;
use blockstone_record::manifest::End;
use blockstone_report::html;

use crate::fixture::Fixture;

/// The page without the chart library, whose text is not ours.
fn page(fixture: &Fixture) -> String {
    let page = html::page(&fixture.recording, &fixture.findings).unwrap();
    let start = page.find("<script type=\"text/javascript\">").unwrap();
    let end = start + page[start..].find("</script>").unwrap();
    format!("{}{}", &page[..start], &page[end..])
}

#[test]
fn the_page_is_one_file_and_asks_the_network_for_nothing() {
    let page = page(&Fixture::clean());
    assert!(page.contains("default-src 'none'"));
    for outside in ["http://", "https://", " src=", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "the page holds `{outside}`");
    }
}

#[test]
fn texts_from_the_recording_cannot_become_markup() {
    const EVIL: &str = "/tmp/<script>alert(1)</script>&\"'";
    let mut fixture = Fixture::clean();
    let manifest = &mut fixture.recording.manifest;
    EVIL.clone_into(&mut manifest.target.path);
    EVIL.clone_into(&mut manifest.host.hostname);
    EVIL.clone_into(&mut manifest.file.as_mut().unwrap().path);
    manifest.argv = vec![EVIL.to_owned()];
    manifest.settings.insert(EVIL.to_owned(), EVIL.into());
    manifest.target.direct_io.capability = Capability::degraded(EVIL);
    manifest.target.devices[0].model = Some(EVIL.to_owned());
    manifest.end = End::Failed { error: EVIL.to_owned() };
    manifest.phases[3].note = Some(EVIL.to_owned());
    EVIL.clone_into(&mut fixture.findings.verdicts[0].evidence);
    for label in ["random-read/psync/x1", "cache-map/4M"] {
        let point = fixture.findings.points.iter_mut().find(|p| p.label == label).unwrap();
        point.condemned_by = vec![EVIL.to_owned()];
        point.label.push_str(EVIL);
    }
    fixture.findings.summary[0].1.condemned_by = vec![EVIL.to_owned()];
    let page = page(&fixture);
    assert!(!page.contains("<script>alert"), "a path became a script");
    assert!(page.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn every_chart_has_a_caption_and_every_header_cell_a_scope() {
    let page = page(&Fixture::clean());
    let charts = page.matches("role=\"img\"").count();
    assert!(charts >= 8, "{charts} charts");
    assert_eq!(page.matches("<figcaption").count(), charts);
    assert_eq!(page.matches("data-plot=").count(), charts);
    assert_eq!(page.matches("<th>").count(), 0);
    let tables = page.matches("<table").count();
    assert_eq!(page.matches("<caption>").count(), tables);
}

#[test]
fn a_condemned_number_is_struck_through_and_never_a_headline() {
    let clean = page(&Fixture::clean());
    assert!(clean.contains("class=\"cards headline\""));
    assert!(!clean.contains("<s>"));
    let page = page(&Fixture::condemned());
    assert!(page.contains("<strong>No headline.</strong>"));
    assert!(!page.contains("class=\"cards headline\""));
    assert!(page.contains("<p class=\"value\"><s>79,650</s>"));
    assert!(!page.contains("<p class=\"value\">79,650"));
    assert!(page.contains("circle-open"), "condemned points are drawn hollow");
}

#[test]
fn an_unfinished_recording_says_so_in_a_banner() {
    for (end, words) in [
        (End::Interrupted { signal: "SIGTERM".to_owned() }, "Interrupted by SIGTERM"),
        (End::Failed { error: "write vda: EIO".to_owned() }, "Failed (write vda: EIO)"),
        (End::Running, "Not finished"),
    ] {
        let mut fixture = Fixture::interrupted();
        fixture.recording.manifest.end = end;
        assert!(page(&fixture).contains(words), "{words}");
    }
}

#[test]
fn nothing_measured_still_renders() {
    let mut fixture = Fixture::interrupted();
    fixture.findings.points.clear();
    fixture.findings.summary.clear();
    fixture.findings.verdicts.clear();
    fixture.recording.manifest.phases.clear();
    fixture.recording.manifest.file = None;
    assert!(page(&fixture).contains("It was not measured that far"));
}
