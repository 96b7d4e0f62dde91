//! Reports as Markdown, as converters make them of HTML.

/// Summaries of tables, and the headings that reports as HTML have above them.
const HEADINGS: [(&str, &str); 12] = [
    ("different time model", "Time Model Statistics"),
    ("operating systems statistics", "Operating System Statistics"),
    ("foreground wait class", "Foreground Wait Class"),
    ("top SQL by elapsed", "SQL ordered by Elapsed Time"),
    ("top SQL by CPU", "SQL ordered by CPU Time"),
    ("Key Instance activity", "Key Instance Activity Stats"),
    ("non-key Instance activity", "Other Instance Activity Stats"),
    ("Instance activity", "Instance Activity Stats"),
    ("for different functions", "IOStat by Function summary"),
    ("for different file types", "IOStat by Filetype summary"),
    ("for different tablespaces", "Tablespace IO Stats"),
    ("advisory", "Buffer Pool Advisory"),
];

/// Converts a report: with bars at both ends of each row, or only between cells.
pub fn markdown(html: &str, is_framed: bool) -> String {
    let mut text = "# WORKLOAD REPOSITORY report for\n\n".to_owned();
    for table in html.split("<table").skip(1) {
        let summary = table.split("summary=\"").nth(1).unwrap().split('"').next().unwrap();
        if let Some((_, heading)) = HEADINGS.iter().find(|(mark, _)| summary.contains(mark)) {
            text += &format!("### {heading}\n\n  * a note of the section\n\n");
        }
        for (index, row) in table.split("<tr>").skip(1).enumerate() {
            let cells: Vec<String> = row.split("</t").filter_map(cell).collect();
            let line = |cells: &[String]| {
                if is_framed {
                    format!("| {} |\n", cells.join(" | "))
                } else {
                    format!("{}  \n", cells.join("| "))
                }
            };
            text += &line(&cells);
            if index == 0 {
                text += &line(&vec!["---".to_owned(); cells.len()]).replace("| -", "|-");
            }
        }
        text += "\n* * *\n\n[Back to Top](#top)\n\n";
    }
    text + "End of Report\n"
}

/// Returns what is behind the start tag of a cell.
fn cell(text: &str) -> Option<String> {
    let (_, text) =
        text.rsplit_once('>').filter(|(tag, _)| tag.contains("<td") || tag.contains("<th"))?;
    let is_id = text.len() == 13 && text.bytes().all(|it| it.is_ascii_alphanumeric());
    Some(if is_id { format!("[{text}](#{text})") } else { text.replace('*', "\\*") })
}
