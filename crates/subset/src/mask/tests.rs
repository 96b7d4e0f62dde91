use blockstone_base::hint::Hint as _;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::catalogue::{Column, ForeignKey, Table};

/// Returns a table with columns `name type`, optionally followed by ` not null`.
fn table(name: &str, columns: &[&str], unique: &[usize]) -> Table {
    let columns = columns.iter().map(|column| {
        let (name, kind) = column.split_once(' ').unwrap();
        let nullable = !kind.ends_with(" not null");
        let type_name = kind.trim_end_matches(" not null").to_owned();
        Column { name: name.to_owned(), type_name, nullable, generated: false }
    });
    Table {
        name: format!("public.{name}"),
        columns: columns.collect(),
        identity: vec![0],
        unique: unique.iter().map(|column| vec![*column]).collect(),
        ..Table::default()
    }
}

/// Returns persons, their orders, and tables that reference the orders.
fn shop() -> Catalogue {
    let person = ["id bigint not null", "email text", "first_name varchar(20)", "note json"];
    let orders = [
        "id uuid not null",
        "person_id integer",
        "phone varchar(8)",
        "total numeric(9,2) not null",
    ];
    let key = |table, columns: usize, references, referenced: usize| ForeignKey {
        table,
        columns: vec![columns],
        references,
        referenced: vec![referenced],
        ..ForeignKey::default()
    };
    Catalogue {
        tables: vec![
            table("person", &person, &[0, 1]),
            table("orders", &orders, &[0]),
            table("log", &["at timestamp", "person bigint"], &[]),
        ],
        keys: vec![key(1, 1, 0, 0), key(2, 1, 1, 1)],
    }
}

fn rule(option: &str) -> Rule {
    match parse(option).unwrap() {
        Given::Rule(rule) => rule,
        other => panic!("{other:?}"),
    }
}

fn mask(options: &[&str]) -> Result<Mask, MaskError> {
    let rules: Vec<Rule> = options.iter().map(|option| rule(option)).collect();
    Mask::new(b"secret", &rules, &shop())
}

fn masked(mask: &Mask, table: usize, row: &str) -> String {
    let mut out = Vec::new();
    mask.line(table, row.as_bytes(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

const PERSON: usize = 0;
const ORDERS: usize = 1;
const LOG: usize = 2;

#[test]
fn one_rule_masks_all_that_is_connected() {
    let mask = mask(&["orders.person_id=hash"]).unwrap();
    let names: Vec<&str> = mask.columns().map(|(place, _)| place).collect();
    assert_eq!(names, ["public.person.id", "public.orders.person_id", "public.log.person"]);
    let parent = masked(&mask, PERSON, "4711\ta@b.c\tX\t{}");
    let child = masked(&mask, ORDERS, "1\t4711\t\\N\t1.00");
    assert_eq!(parent.split('\t').next(), child.split('\t').nth(1));
    assert!(parent.ends_with("\ta@b.c\tX\t{}") && !parent.starts_with("4711"), "{parent}");
    assert!(mask.applies(LOG) && mask.applies(PERSON));
}

#[test]
fn null_stays_null_and_escapes_hold() {
    let mask = mask(&["person.email=hash", "first_name=fake"]).unwrap();
    assert_eq!(masked(&mask, PERSON, "1\t\\N\t\\N\tx"), "1\t\\N\t\\N\tx");
    let row = masked(&mask, PERSON, "1\ta\\tb\\\\c\\nd\tX\tx");
    let fields: Vec<&str> = row.split('\t').collect();
    assert_eq!((fields.len(), fields[1].len()), (4, "a\\tb\\\\c\\nd".len()), "{row}");
    assert_eq!(&fields[1][1..3], "\\t");
    let error = mask.line(PERSON, b"1", &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "public.person: a row has 1 fields, not 4");
    assert!(!mask.applies(ORDERS));
}

#[test]
fn contradictions_are_refused_with_a_hint() {
    let cases: [(&[&str], &str); 10] = [
        (&["person.id=hash", "log.person=null"], "hash and null would break the join"),
        (&["person.id=null"], "part of a key"),
        (&["person.id=fake"], "part of a key"),
        (&["orders.total=null"], "NOT NULL"),
        (&["orders.total=fake"], "not clear from its name"),
        (&["orders.phone=fake"], "holds 8 characters"),
        (&["person.note=hash"], "does not mask"),
        (&["person.note=fake"], "not clear from its name"),
        (&["nothing=hash"], "no such column"),
        (&["person.email=hash", "email=fake"], "hash and fake"),
    ];
    for (options, said) in cases {
        let error = mask(options).err().map(|error| error.told()).unwrap_or_default();
        let (what, hint) = error.split_once('\n').unwrap_or_default();
        assert!(what.contains(said) && hint.starts_with("hint: "), "{options:?}: {error}");
        assert!(error.starts_with("--mask "), "{error}");
    }
}

#[test]
fn types_that_cannot_be_joined_are_refused() {
    let mut catalogue = shop();
    catalogue.tables[LOG].columns[1].type_name = "text".into();
    let error = Mask::new(b"k", &[rule("log.person=hash")], &catalogue).err().unwrap().to_string();
    assert!(error.contains("they need one type"), "{error}");
}

#[test]
fn generated_columns_have_no_field_and_no_mask() {
    let mut catalogue = shop();
    catalogue.tables[PERSON].columns[1].generated = true;
    let mask = Mask::new(b"k", &[rule("first_name=fake")], &catalogue).unwrap();
    assert!(masked(&mask, PERSON, "1\tX\t{}").starts_with("1\t"));
    let error = Mask::new(b"k", &[rule("email=hash")], &catalogue).err().unwrap().to_string();
    assert!(error.contains("is computed"), "{error}");
}

#[test]
fn a_value_of_another_type_is_an_error_that_does_not_show_it() {
    let mask = mask(&["orders.total=hash"]).unwrap();
    let row = b"1\t2\tx\tsecret value";
    let error = mask.line(ORDERS, row, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.starts_with("public.orders.total: ") && !error.contains("secret"), "{error}");
}

#[test]
fn the_key_decides() {
    let of = |key: &[u8]| {
        masked(&Mask::new(key, &[rule("person.id=hash")], &shop()).unwrap(), LOG, "now\t1")
    };
    assert_eq!(of(b"one"), of(b"one"));
    assert_ne!(of(b"one"), of(b"two"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn joins_and_unique_keys_hold(
        parents in prop::collection::btree_set(1_i32..i32::MAX, 1..20),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let mask = mask(&["person.id=hash"]).unwrap();
        let parent = |value: i32| masked(&mask, PERSON, &format!("{value}\ta\tb\tc"));
        let all: Vec<i32> = parents.into_iter().collect();
        let masked_parents: BTreeSet<String> = all.iter().map(|id| parent(*id)).collect();
        prop_assert_eq!(masked_parents.len(), all.len());
        for pick in picks {
            let value = *pick.get(&all);
            let child = masked(&mask, LOG, &format!("now\t{value}"));
            let child = format!("{}\ta\tb\tc", child.split('\t').nth(1).unwrap());
            prop_assert!(masked_parents.contains(&child));
        }
    }

    #[test]
    fn unique_text_stays_unique(
        values in prop::collection::btree_set("[a-zA-Z0-9@. äß]{0,12}", 1..30),
    ) {
        // One for all cases: it keeps the permutations of short texts.
        static MASK: LazyLock<Mask> = LazyLock::new(|| mask(&["person.email=hash"]).unwrap());
        let of = |value: &String| masked(&MASK, PERSON, &format!("1\t{value}\tx\ty"));
        let masked: BTreeSet<String> = values.iter().map(of).collect();
        prop_assert_eq!(masked.len(), values.len());
    }
}
