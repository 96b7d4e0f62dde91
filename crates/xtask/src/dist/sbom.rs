//! `blockstone-VERSION-TRIPLE.cdx.json`: the components of the binary, in `CycloneDX` 1.5.

use anyhow::Result;
use serde_json::json;

use super::Release;
use super::licences::Component;

/// Returns the file's name and contents.
pub fn package(release: &Release) -> (String, Vec<u8>) {
    let name = format!("blockstone-{}-{}.cdx.json", release.version, release.triple);
    (name, release.bill_of_materials.clone().into_bytes())
}

/// Returns the document. It has no serial number, which would differ for equal inputs.
pub fn document(version: &str, time_s: u64, components: &[Component]) -> Result<String> {
    let component = |one: &Component| {
        let (name, version) = one.name.split_once(' ').unwrap_or((&one.name, ""));
        let mut entry = json!({
            "type": "library",
            "name": if one.is_crate { name } else { &one.name },
            "licenses": [{"expression": one.licence}],
        });
        if one.is_crate {
            let address = format!("pkg:cargo/{name}@{version}");
            entry["version"] = json!(version);
            entry["purl"] = json!(address);
            entry["bom-ref"] = json!(address);
        } else {
            // Not all of their licences are SPDX expressions.
            entry["licenses"] = json!([{"license": {"name": one.licence}}]);
        }
        entry
    };
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": jiff::Timestamp::from_second(time_s.try_into()?)?.to_string(),
            "component": {
                "type": "application",
                "name": "blockstone",
                "version": version,
                "bom-ref": "blockstone",
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            },
        },
        "components": components.iter().map(component).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
