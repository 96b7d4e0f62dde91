use proptest::prelude::*;

use super::*;

const EXPORT: &str = "\
OWNER,TABLE_NAME,CONSTRAINT_NAME,CONSTRAINT_TYPE,R_OWNER,R_CONSTRAINT_NAME,POSITION,COLUMN_NAME
\"DBPUMP\",\"PARENT\",\"PARENT_PK\",\"P\",,,1,\"P_ID\"
\"DBPUMP\",\"CHILD\",\"CHILD_PK\",\"P\",,,2,\"LINE\"
\"DBPUMP\",\"CHILD\",\"CHILD_PK\",\"P\",,,1,\"C_ID\"
\"DBPUMP\",\"CHILD\",\"CHILD_FK\",\"R\",\"DBPUMP\",\"PARENT_PK\",1,\"P_ID\"
\"DBPUMP\",\"Mixed Case\",,,,,,
";

fn catalogue() -> Catalogue {
    Catalogue::read(EXPORT, "keys.csv").unwrap()
}

#[test]
fn a_share_of_each_table_and_what_it_references_is_exported() {
    let wanted = Wanted::Percent { percent: 10.0, seed: 7 };
    let files = files(&catalogue(), &wanted, "LISTER").unwrap();
    let expected = "INSERT INTO BLOCKSTONE_LIST_1 SELECT t.rowid FROM \"DBPUMP\".\"CHILD\" t WHERE \
                    ORA_HASH(t.\"C_ID\" || '|' || t.\"LINE\", 999999, 7) < 100000;\n";
    assert!(files.lists.contains(expected), "{}", files.lists);
    assert!(files.lists.contains("ORA_HASH(t.rowid, 999999, 7)"), "{}", files.lists);
    let closure = "    INSERT INTO BLOCKSTONE_LIST_3 SELECT p.rowid FROM \"DBPUMP\".\"PARENT\" p
      WHERE EXISTS (SELECT 1 FROM \"DBPUMP\".\"CHILD\" c JOIN BLOCKSTONE_LIST_1 l ON l.rid = c.rowid
        WHERE c.\"P_ID\" = p.\"P_ID\")
      AND NOT EXISTS (SELECT 1 FROM BLOCKSTONE_LIST_3 x WHERE x.rid = p.rowid);\n";
    assert!(files.lists.contains(closure), "{}", files.lists);
    assert!(files.export.contains("TABLES=DBPUMP.CHILD,DBPUMP.\"Mixed Case\",DBPUMP.PARENT\n"));
    let query =
        "QUERY=DBPUMP.CHILD:\"WHERE rowid IN (SELECT rid FROM LISTER.BLOCKSTONE_LIST_1)\"\n";
    assert!(files.export.contains(query), "{}", files.export);
    for text in [&files.lists, &files.export, &files.drop] {
        assert!(text.contains("not tested with Oracle"), "{text}");
    }
    assert_eq!(files.drop.matches("DROP TABLE BLOCKSTONE_LIST_").count(), 3);
}

#[test]
fn rows_may_be_named_by_key() {
    let catalogue = catalogue();
    let keys = catalogue.read_keys("DBPUMP,CHILD,1,O'Neill\n", "list.csv").unwrap();
    let files = files(&catalogue, &Wanted::Keys(keys), "LISTER").unwrap();
    assert!(files.lists.contains("WHERE t.\"C_ID\" = '1' AND t.\"LINE\" = 'O''Neill'\n"));
    for (line, said) in [
        ("DBPUMP,CHILD,1", "line 1: it has 1 values for 2 columns"),
        ("DBPUMP,NONE,1", "line 1: there is no table DBPUMP.NONE"),
        ("\n\"DBPUMP", "line 2: a quote is not closed"),
        ("DBPUMP,Mixed Case", "it has 0 values for 0 columns"),
    ] {
        let error = catalogue.read_keys(line, "list.csv").unwrap_err().to_string();
        assert!(error.starts_with("list.csv, ") && error.contains(said), "{error}");
    }
}

#[test]
fn the_query_quotes_its_owners() {
    assert!(catalogue_query(&["A'B", "C"]).contains("IN ('A''B', 'C')"));
}

#[test]
fn a_bad_export_is_refused_by_line() {
    let cases = [
        (String::new(), "line 1: it is empty"),
        ("A,B\n".to_owned(), "line 1: the columns are not OWNER"),
        (EXPORT.replacen("\"P_ID\"\n", "\"P_ID\n", 1), "a quote is not closed"),
        (EXPORT.replace("\"P_ID\"\n", "\"P_ID\n"), "is not a name of Oracle"),
        (EXPORT.replace("Mixed Case", "a\"\"b"), "line 6: \"a\\\"b\" is not a name"),
        (EXPORT.replace(",2,\"LINE", ",1,\"LINE"), "line 4: CHILD_PK has position 1 twice"),
        (EXPORT.replace(",2,", ",x,"), "line 3: \"x\" is not a position"),
        (EXPORT.replace("\"R\",\"DBPUMP\",\"PARENT_PK\"", "\"R\",\"X\",\"Y\""), "references X.Y"),
        (EXPORT.replace("\"PARENT_PK\",1,", "\"CHILD_PK\",1,"), "another number of columns"),
        (format!("{EXPORT}a,b\n"), "line 7: a field is missing"),
    ];
    for (text, said) in cases {
        let error = Catalogue::read(&text, "keys.csv").unwrap_err().told();
        assert!(error.contains(said) && error.lines().count() == 2, "{said}: {error}");
    }
    let wanted = Wanted::Keys(Vec::new());
    assert!(files(&catalogue(), &wanted, "lister; DROP").is_err());
}

proptest! {
    #[test]
    fn any_export_is_taken(text: String, at in 0..EXPORT.len()) {
        if EXPORT.is_char_boundary(at) {
            let _ = Catalogue::read(&format!("{}{text}{}", &EXPORT[..at], &EXPORT[at..]), "f");
        }
    }
}
