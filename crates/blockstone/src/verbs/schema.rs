//! `blockstone schema`: the JSON schema of a document, derived from the types that it is written
//! from.

use anyhow::{Result, bail};
use blockstone_report::render::json::schema::Document;
use clap::{Args, FromArgMatches};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::answer;
use crate::verb::Verb;

/// Options of `schema`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone schema                  the names of all documents
  blockstone schema run > run.json   what `run --json` prints")]
struct Schema {
    /// The document, as in blockstone.NAME/2; without it, all names are listed
    name: Option<String>,
}

pub const VERB: Verb = Verb {
    name: "schema",
    about: "Print the JSON schema of a document that --json prints",
    options: Schema::augment_args,
    run: |options, _| run(Schema::from_arg_matches(options)?.name.as_deref()),
    ..Verb::PLAIN
};

pub fn documents() -> impl Iterator<Item = &'static Document> {
    super::ALL.iter().flat_map(|verb| verb.documents)
}

fn run(name: Option<&str>) -> Result<Exit> {
    let Some(name) = name else {
        let lines = documents().map(|it| format!("{:<14}  {}\n", it.name, it.about));
        answer(&lines.collect::<String>())?;
        return Ok(Exit::Done);
    };
    let Some(document) = documents().find(|document| document.name == name) else {
        let names: Vec<&str> = documents().map(|document| document.name).collect();
        bail!(Failure::new(
            format!("print schema `{name}`: unknown document"),
            format!("one of {}", names.join(", "))
        ));
    };
    answer(&format!("{:#}\n", document.schema()))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;
    use std::path::Path;

    use serde_json::{Map, Value};

    use super::*;

    /// Lists every object of the documents with its keys; those that may be absent end in `?`.
    fn keys_of_all() -> String {
        let mut lines = String::new();
        for document in documents() {
            let schema = document.schema();
            let mut objects = Map::new();
            collect(&schema, &schema, document.name, &mut objects);
            for (path, keys) in objects {
                let keys = keys.as_array().unwrap().iter().filter_map(Value::as_str);
                let mut keys: Vec<&str> = keys.collect();
                keys.sort_unstable();
                writeln!(lines, "{path}: {}", keys.join(" ")).unwrap();
            }
        }
        lines
    }

    fn collect(root: &Value, schema: &Value, path: &str, objects: &mut Map<String, Value>) {
        if let Some(at) = schema["$ref"].as_str() {
            return collect(root, root.pointer(&at[1..]).unwrap(), path, objects);
        }
        for (key, part) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = schema["required"]
                .as_array()
                .is_some_and(|keys| keys.contains(&key.as_str().into()));
            let known = objects.entry(path).or_insert_with(|| Value::Array(Vec::new()));
            let key = format!("{key}{}", if is_required { "" } else { "?" });
            let known = known.as_array_mut().unwrap();
            if !known.contains(&key.as_str().into()) {
                known.push(key.as_str().into());
            }
            collect(root, part, &format!("{path}.{key}"), objects);
        }
        if schema["additionalProperties"].is_object() {
            collect(root, &schema["additionalProperties"], &format!("{path}.*"), objects);
        }
        if schema["items"].is_object() {
            collect(root, &schema["items"], &format!("{path}[]"), objects);
        }
        let parts = ["prefixItems", "oneOf", "anyOf", "allOf"].map(|key| schema[key].as_array());
        for part in parts.into_iter().flatten().flatten() {
            collect(root, part, path, objects);
        }
    }

    /// Scripts rely on keys: within a version of a document, keys are only added. When one is
    /// added, and for a new document, `UPDATE_EXPECTED=1 cargo test -p blockstone --lib schema`
    /// writes the list.
    #[test]
    fn documents_keep_their_keys() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/verbs/schema/keys.txt");
        let keys = keys_of_all();
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(&file, &keys).unwrap();
        }
        let listed = std::fs::read_to_string(file).unwrap();
        let document = |line: &str| line.split(['.', ':']).next().map(str::to_owned);
        let known: BTreeSet<_> = listed.lines().map(document).collect();
        let keys = keys.lines().filter(|line| known.contains(&document(line)));
        for (line, listed) in keys.clone().zip(listed.lines()) {
            assert_eq!(line, listed);
        }
        assert_eq!(keys.count(), listed.lines().count());
    }

    /// An alternative of an object that lists keys next to it is closed by that object.
    fn assert_closed(schema: &Value, is_part: bool) {
        let Value::Object(members) = schema else {
            let parts = schema.as_array().into_iter().flatten();
            return parts.for_each(|part| assert_closed(part, is_part));
        };
        let lists_keys = members.contains_key("properties");
        let closing = ["additionalProperties", "unevaluatedProperties"];
        let is_closed = closing.iter().any(|key| members.contains_key(*key));
        assert!(!lists_keys || is_part || is_closed, "{schema:#}");
        for (key, part) in members {
            assert_closed(part, lists_keys && ["oneOf", "anyOf", "allOf"].contains(&key.as_str()));
        }
    }

    #[test]
    fn every_object_is_closed_and_every_name_is_given_once() {
        let mut names: Vec<&str> = documents().map(|document| document.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for document in documents() {
            let schema = document.schema();
            assert_eq!(
                schema["title"],
                format!("blockstone.{}/{}", document.name, document.version)
            );
            assert_closed(&schema, false);
            assert!(jsonschema::meta::is_valid(&schema), "{}", document.name);
        }
    }
}
