//! Files of a subset: masks, undeclared keys, and an export of Oracle's catalogue.

use blockstone_servers::subset::manifest::Manifest;
use blockstone_servers::subset::postgres::copied::Tuples;
use blockstone_subset::mask::{self, Mask, Transform as _};
use blockstone_subset::oracle::{self, Wanted};
use blockstone_subset::{Catalogue, Column, Table, virtual_keys};

const RULES: &str = "[[mask]]\ncolumn = \"a.email\"\nmethod = \"fake\"\nkind = \"email\"\n\
                     [[mask]]\ncolumn = \"id\"\nmethod = \"hash\"\n\
                     [[mask]]\ncolumn = \"kind\"\nvalues = [\"x\", \"y\"]\n";
const KEYS: &str = "[[key]]\ntable = \"a\"\ncolumns = [\"email\"]\nreferences = \"public.b\"\n\
                    referenced = [\"note\"]\nwhen = { column = \"id\", is = \"1\" }\n";
const EXPORT: &str = "OWNER,TABLE_NAME,CONSTRAINT_NAME,CONSTRAINT_TYPE,R_OWNER,R_CONSTRAINT_NAME,\
                      POSITION,COLUMN_NAME\n\"S\",\"P\",\"PK\",\"P\",,,1,\"ID\"\n\
                      \"S\",\"C\",\"FK\",\"R\",\"S\",\"PK\",1,\"P_ID\"\nS,\"T x\",,,,,,\n";

/// Maximum length of a text that is masked as a row, in bytes.
const ROW_MAX: usize = 4096;

fn catalogue() -> Catalogue {
    let table = |name: &str, columns: &[(&str, &str)]| Table {
        name: name.to_owned(),
        columns: columns
            .iter()
            .map(|(name, type_name)| Column {
                name: (*name).to_owned(),
                type_name: (*type_name).to_owned(),
                nullable: true,
                generated: false,
            })
            .collect(),
        identity: vec![0],
        unique: vec![vec![1]],
        ..Table::default()
    };
    let a = [("id", "bigint"), ("email", "text")];
    let b = [("id", "date"), ("note", "text"), ("kind", "text")];
    Catalogue { tables: vec![table("public.a", &a), table("public.b", &b)], keys: Vec::new() }
}

pub fn masks() -> Vec<Vec<u8>> {
    vec![RULES.into()]
}

/// Reads the rules of a file, and masks rows with them.
pub fn mask(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Ok(rules) = mask::file("masks.toml", text) else { return false };
    let catalogue = catalogue();
    let Ok(mask) = Mask::new(b"key", &rules, &catalogue) else { return false };
    let row = &input[..input.len().min(ROW_MAX)];
    let mut out = Vec::new();
    // A row may well be refused.
    let _ = mask.line(0, row, &mut out);
    let _ = mask.line(1, row, &mut out);
    true
}

pub fn rows() -> Vec<Vec<u8>> {
    vec![b"17\ta\\tb@c.d".to_vec(), b"-9223372036854775808\t\\N".to_vec(), b"\\N\t\\x41".to_vec()]
}

/// Masks rows of COPY, with masks of whole numbers and text.
pub fn row(input: &[u8]) -> bool {
    let Ok(rules) = mask::file(
        "masks.toml",
        "[[mask]]\ncolumn = \"id\"\nmethod = \"hash\"\n[[mask]]\n\
        column = \"email\"\nmethod = \"hash\"\n",
    ) else {
        return false;
    };
    let Ok(mask) = Mask::new(b"key", &rules, &catalogue()) else { return false };
    mask.line(0, &input[..input.len().min(ROW_MAX)], &mut Vec::new()).is_ok()
}

pub fn key_files() -> Vec<Vec<u8>> {
    vec![KEYS.into()]
}

pub fn keys(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let mut catalogue = catalogue();
    virtual_keys::add(&mut catalogue, text, "keys.toml").is_ok() && catalogue.check().is_ok()
}

pub fn exports() -> Vec<Vec<u8>> {
    vec![EXPORT.into()]
}

/// Returns rows that such an export names by their keys.
pub fn row_files() -> Vec<Vec<u8>> {
    vec![b"S,P,1\n".into()]
}

/// Reads an export of Oracle's catalogue, and makes the files that derive from it.
pub fn export(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Ok(catalogue) = oracle::Catalogue::read(text, "keys.csv") else { return false };
    let _ = catalogue.read_keys(text, "rows.csv");
    oracle::files(&catalogue, &Wanted::Percent { percent: 1.0, seed: 0 }, "SYSTEM").is_ok()
}

const MANIFEST: &str = r#"{"version": 1, "tool_version": "0.1", "source": "postgres://a/b",
    "product": "PostgreSQL 15", "percent": 1.0, "seed": 0, "tables": [{"schema": "public",
    "name": "a", "partitioned": false, "source_rows": 100, "rows": 2, "seeds": 1,
    "needed": [["a_fkey", 1]], "bytes": 8192}], "files": [{"schema": "public", "name": "a",
    "columns": ["id", "up"], "file": "00001.public.a.copy", "rows": 2, "bytes": 9}],
    "keys": [{"name": "a_fkey", "table": 0, "columns": ["up"], "references": 0,
    "referenced": ["id"], "rows": 1, "closed": true, "valid": true}], "sequences": [
    {"schema": "public", "name": "a_id_seq", "last_value": 7, "is_called": true}]}"#;

pub fn manifests() -> Vec<Vec<u8>> {
    vec![MANIFEST.into()]
}

/// Reads the manifest of a directory, whose files may have any names except those of other
/// directories.
pub fn manifest(input: &[u8]) -> bool {
    let Ok(manifest) = Manifest::parse(input) else { return false };
    let text = manifest.text().map(String::into_bytes);
    let again = text.ok().and_then(|text| Manifest::parse(&text).ok());
    assert!(again.is_some_and(|again| again.words() == manifest.words()));
    assert!(manifest.files.iter().all(|file| !file.file.contains('/')));
    true
}

pub fn tuple_streams() -> Vec<Vec<u8>> {
    let head = [&b"PGCOPY\n\xff\r\n\0"[..], &[0; 8]].concat();
    let rows = [0, 3, 0, 0, 0, 2, b'a', b'b', 255, 255, 255, 255, 0, 0, 0, 0, 255, 255];
    vec![[head, rows.into()].concat()]
}

/// Reads rows in COPY's binary format, as a server sends them.
pub fn tuples(input: &[u8]) -> bool {
    let Ok(mut tuples) = Tuples::new(input) else { return false };
    let mut bytes = 0;
    loop {
        match tuples.read() {
            Ok(true) => {
                let fields = (0..4).filter_map(|at| tuples.field(at));
                bytes += fields.map(<[u8]>::len).sum::<usize>();
            }
            Ok(false) => break,
            Err(_) => return false,
        }
    }
    assert!(bytes <= input.len());
    true
}
