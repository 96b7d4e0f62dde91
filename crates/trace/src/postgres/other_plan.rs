//! Plans of `auto_explain.log_format = xml` or `yaml`, of which only the statement is read.

/// Returns the statement of a plan in XML or YAML; `None` for other plans.
pub fn statement(body: &str) -> Option<String> {
    xml(body).or_else(|| yaml(body))
}

fn xml(body: &str) -> Option<String> {
    body.strip_prefix("<explain")?;
    let (_, rest) = body.split_once("<Query-Text>")?;
    let (text, _) = rest.split_once("</Query-Text>")?;
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    Some(text.replace("&apos;", "'").replace("&#x0d;", "\r").replace("&amp;", "&"))
}

/// In the text format the statement is not quoted, and no statement begins with a quote.
fn yaml(body: &str) -> Option<String> {
    let line = body.lines().next()?.strip_prefix("Query Text: ")?;
    line.starts_with('"').then(|| serde_json::from_str(line.trim_end()).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_xml_and_yaml_are_other_plans() {
        let xml = "<explain xmlns=\"x\">\n  <Query-Text>select a &lt; 1 &amp;&amp; b</Query-Text>";
        assert_eq!(statement(xml).as_deref(), Some("select a < 1 && b"));
        let yaml = "Query Text: \"select\\n'a'\"\nPlan: \n  Node Type: \"Result\"";
        assert_eq!(statement(yaml).as_deref(), Some("select\n'a'"));
        for body in ["Query Text: select 1", "{\"Query Text\": \"x\"}", "", "<explain"] {
            assert_eq!(statement(body), None);
        }
    }
}
