//! Import cycles between files of one crate. A module may use its own children and they may use it;
//! everything else has to form layers, so that a file can be understood after what it imports and
//! before what imports it.

mod crate_map;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::Finding;
use super::tree::{SourceFile, Tree};
use crate_map::CrateMap;

const HINT: &str = "move what both need into a file below them, or let the caller pass it in";

/// Names that files import from each other, by user and used file.
type Ties = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Files of a crate must not import each other in a cycle.
pub fn circles(tree: &Tree) -> Vec<Finding> {
    let packages: BTreeSet<&str> = tree.rust().map(SourceFile::package).collect();
    packages.iter().flat_map(|package| circles_of(&CrateMap::of(tree, package))).collect()
}

fn circles_of(map: &CrateMap) -> Vec<Finding> {
    let ties = map.ties();
    let circles = strongly_connected(map.files.len(), &ties);
    circles.iter().map(|circle| finding(map, circle, &ties)).collect()
}

fn finding(map: &CrateMap, circle: &[usize], ties: &Ties) -> Finding {
    let mut what = format!("{} files import each other in a circle", circle.len());
    for (&(user, used), names) in ties {
        if circle.contains(&user) && circle.contains(&used) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (from, to) = (map.files[user], map.files[used]);
            let _ = write!(what, "\n    {from} -> {to}: {}", names.join(", "));
        }
    }
    Finding { path: map.files[circle[0]].to_owned(), line: 1, what, hint: HINT }
}

/// Returns the groups of two or more files that all reach each other, in the order of files.
fn strongly_connected(count: usize, ties: &Ties) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..count).map(|from| reachable(from, ties)).collect();
    let mut groups = Vec::new();
    let mut placed: BTreeSet<usize> = BTreeSet::new();
    for file in 0..count {
        if !placed.contains(&file) && reached[file].contains(&file) {
            let mutual = |other: &usize| reached[*other].contains(&file);
            let group: Vec<usize> = reached[file].iter().copied().filter(mutual).collect();
            placed.extend(&group);
            groups.push(group);
        }
    }
    groups
}

/// Returns the files that can be reached in one step or more; a file reaches itself only through
/// others.
fn reachable(from: usize, ties: &Ties) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for &(_, used) in ties.range((file, 0)..=(file, usize::MAX)).map(|(tie, _)| tie) {
            if reached.insert(used) {
                open.push(used);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| {
            SourceFile::new(format!("crates/a/src/{path}"), text.to_string())
        };
        Tree { files: files.iter().map(file).collect(), packages: Vec::new() }
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let findings = circles(&tree(files));
        findings.into_iter().map(|f| f.what.replace("crates/a/src/", "")).collect()
    }

    #[test]
    fn a_circle_is_found_with_its_files_and_names() {
        let found = found(&[
            ("lib.rs", "mod group;\nmod disk;\nmod cache;\nmod top;"),
            ("group.rs", "use crate::disk::{Disk, open};\nfn f() { crate::cache::fill(); }"),
            ("disk.rs", "use super::cache::{Cache as Pool, self};\nuse std::fs;"),
            ("cache.rs", "fn f(g: &crate::group::Group) {}"),
            ("top.rs", "use crate::group::Group;"),
        ]);
        assert_eq!(
            found,
            ["3 files import each other in a circle\
              \n    group.rs -> disk.rs: Disk, open\
              \n    group.rs -> cache.rs: fill\
              \n    disk.rs -> cache.rs: Cache\
              \n    cache.rs -> group.rs: Group"]
        );
    }

    #[test]
    fn two_circles_of_a_crate_are_two_findings() {
        let found = found(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
            ("a.rs", "use crate::b::B;\nuse crate::c::C;"),
            ("b.rs", "use crate::a::A;"),
            ("c.rs", "use crate::d::D;"),
            ("d.rs", "use crate::c::C;"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("a.rs -> b.rs: B") && !found[0].contains("c.rs"), "{found:?}");
    }

    #[test]
    fn a_module_and_its_children_may_use_each_other() {
        let files = [
            ("lib.rs", "mod disk;\npub use disk::Disk;"),
            ("disk.rs", "mod file;\nuse file::File;\npub struct Disk(File);"),
            ("disk/file.rs", "use super::Disk;\nuse crate::disk::DiskError;\nmod deep;"),
            ("disk/file/deep.rs", "use super::super::Disk;\nfn f(f: super::File) {}"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn siblings_may_not_even_through_names_that_their_parent_hands_on() {
        for (left, right) in [
            ("use super::right::Right;", "use super::left::Left;"),
            ("use super::Right;", "use crate::disk::Left;"),
            ("use super::*;\nfn f(r: &super::Right) {}", "fn f() { super::left::f() }"),
            ("fn f() { use crate::Right; }", "use crate::disk;\nfn f() { disk::left::f() }"),
        ] {
            let found = found(&[
                ("lib.rs", "mod disk;\npub use disk::*;"),
                ("disk.rs", "mod left;\nmod right;\nuse left::Left;\npub use self::right::Right;"),
                ("disk/left.rs", left),
                ("disk/right.rs", right),
            ]);
            assert_eq!(found.len(), 1, "{left} / {right}");
            assert!(found[0].contains("disk/left.rs -> disk/right.rs: "), "{found:?}");
            assert!(found[0].contains("disk/right.rs -> disk/left.rs: "), "{found:?}");
        }
    }

    #[test]
    fn tests_comments_strings_and_other_crates_tie_nothing() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod testing;"),
            ("a.rs", "use crate::b::B;\nuse other::a::C;\nfn a() {}"),
            (
                "b.rs",
                "// crate::a::a()\n#[cfg(test)]\nuse crate::a::A;\n\
                 const S: &str = \"crate::a::a\";\n\
                 #[cfg(test)]\nimpl B {\n    fn f() { crate::a::a() }\n}\n\
                 fn g() { std::a::a() }\n\
                 #[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            ),
            ("testing.rs", "use crate::a::A;\nuse crate::b::B;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn a_module_within_a_file_belongs_to_the_file() {
        let inner = "mod names {\n    use super::super::b::B;\n    use super::X;\n}\nstruct X;";
        let files = [("lib.rs", "mod a;\nmod b;"), ("a.rs", inner), ("b.rs", "use crate::a::X;")];
        assert!(found(&files)[0].contains("a.rs -> b.rs: B"));
        let names = ("b.rs", "fn f() { crate::a::names::g() }");
        let files = [("lib.rs", "mod a;\nmod b;"), ("a.rs", inner), names];
        assert!(found(&files)[0].contains("b.rs -> a.rs: g"));
    }
}
