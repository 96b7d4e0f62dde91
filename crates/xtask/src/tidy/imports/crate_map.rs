//! Modules of a crate, and the file to which a path leads.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use super::super::tree::Tree;
use super::Ties;
use super::scan::{Import, Scope, scopes};

/// Files and modules of a crate, without those that exist only for tests.
pub struct CrateMap<'a> {
    /// Paths from the root of the workspace.
    pub files: Vec<&'a str>,
    /// By their path below the crate's root: `["disk", "file"]`.
    modules: BTreeMap<Vec<String>, Module>,
}

#[derive(Debug, Default)]
struct Module {
    file: usize,
    scopes: Vec<Scope>,
}

impl Module {
    fn imports(&self) -> impl Iterator<Item = &Import> {
        self.scopes.iter().flat_map(|scope| &scope.imports)
    }

    fn import(&self, name: &str) -> Option<&Import> {
        self.imports().find(|import| import.name.as_deref() == Some(name))
    }

    fn defines(&self, name: &str) -> bool {
        self.scopes.iter().flat_map(|scope| &scope.items).any(|item| item == name)
    }
}

/// Maximum number of re-exports that are followed: globs may form a cycle of their own.
const HANDS_MAX: usize = 8;

impl<'a> CrateMap<'a> {
    pub fn of(tree: &'a Tree, package: &str) -> Self {
        let folder = format!("crates/{package}/src/");
        let mut map = Self { files: Vec::new(), modules: BTreeMap::new() };
        let mut test_modules = Vec::new();
        for file in tree.rust().filter(|file| !file.is_test()) {
            let Some(inside) = file.path.strip_prefix(&folder) else { continue };
            let own = module_path(inside);
            for scope in scopes(&file.text) {
                let path = [own.as_slice(), &scope.inside].concat();
                for name in &scope.test_modules {
                    test_modules.push([path.as_slice(), slice::from_ref(name)].concat());
                }
                let file = map.files.len();
                let module = map.modules.entry(path).or_insert(Module { file, scopes: Vec::new() });
                module.scopes.push(scope);
            }
            map.files.push(&file.path);
        }
        let is_kept = |path: &Vec<String>| !test_modules.iter().any(|test| path.starts_with(test));
        map.modules.retain(|path, _| is_kept(path));
        map
    }

    /// Returns every import of one file from another that is neither above nor below it.
    pub fn ties(&self) -> Ties {
        let mut ties = Ties::new();
        for (from, module) in &self.modules {
            for path in self.uses(from, module) {
                let Some((at, names)) = self.enter(from, path) else { continue };
                let mut used = BTreeSet::new();
                self.find(&at, names, &mut used, HANDS_MAX);
                // A path that begins with an imported module takes the name after it.
                let is_whole = names.len() == path.len();
                let name = names.get(usize::from(is_whole)).or(path.last());
                let name = name.cloned().unwrap_or_default();
                for to in used {
                    if !is_kin(self.own_path(module.file), self.own_path(to)) {
                        ties.entry((module.file, to)).or_default().insert(name.clone());
                    }
                }
            }
        }
        ties
    }

    /// Returns the paths through which a module uses something.
    fn uses<'m>(
        &'m self,
        from: &'m [String],
        module: &'m Module,
    ) -> impl Iterator<Item = &'m [String]> {
        // A module that is only named is not yet used; the paths that begin with its name use it.
        let names_module = |path: &[String]| matches!(self.enter(from, path), Some((_, [])));
        let is_use = move |i: &&Import| i.is_public || i.name.is_none() || !names_module(&i.path);
        let imports = module.imports().filter(is_use).map(|import| import.path.as_slice());
        // The import of a type stands for the paths that begin with it.
        let is_new = move |path: &&Vec<String>| match module.import(&path[0]) {
            Some(import) => names_module(&import.path),
            None => true,
        };
        let paths = module.scopes.iter().flat_map(|scope| &scope.paths);
        imports.chain(paths.filter(is_new).map(Vec::as_slice))
    }

    /// Returns the path of a file's own module, which is the shortest path of its modules.
    fn own_path(&self, file: usize) -> &[String] {
        let mut own = self.modules.iter().filter(|(_, module)| module.file == file);
        own.next().map_or(&[], |(path, _)| path)
    }

    /// Returns the module in which a path begins, and the names to look up there.
    fn start<'p>(
        &self,
        from: &[String],
        path: &'p [String],
    ) -> Option<(Vec<String>, &'p [String])> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some((Vec::new(), rest)),
            "self" => Some((from.to_vec(), rest)),
            "super" => {
                let supers = path.iter().take_while(|name| *name == "super").count();
                let above = from.len().checked_sub(supers)?;
                Some((from[..above].to_vec(), &path[supers..]))
            }
            _ => {
                let module = self.modules.get(from)?;
                let child = [from, &path[..1]].concat();
                let is_known = self.modules.contains_key(&child) || module.import(first).is_some();
                // Other names belong to other crates, or to types, which `use` has imported.
                is_known.then(|| (from.to_vec(), path))
            }
        }
    }

    /// Returns the module to which a path leads, and the names that are left to look up in it.
    fn enter<'p>(
        &self,
        from: &[String],
        path: &'p [String],
    ) -> Option<(Vec<String>, &'p [String])> {
        let (mut at, mut names) = self.start(from, path)?;
        while let Some((name, deeper)) = names.split_first() {
            let child = [at.as_slice(), slice::from_ref(name)].concat();
            if !self.modules.contains_key(&child) {
                break;
            }
            (at, names) = (child, deeper);
        }
        Some((at, names))
    }

    /// Adds the file in which `names` are defined, and those that re-export them. The first name is
    /// not one of the module's children.
    fn find(&self, at: &[String], names: &[String], used: &mut BTreeSet<usize>, hands: usize) {
        let Some(module) = self.modules.get(at) else { return };
        used.insert(module.file);
        let Some((name, rest)) = names.split_first().filter(|_| hands > 0) else { return };
        if let Some(import) = module.import(name) {
            let path = [import.path.as_slice(), rest].concat();
            if let Some((at, names)) = self.enter(at, &path) {
                self.find(&at, names, used, hands - 1);
            }
        } else if !module.defines(name) {
            for target in self.globs(at, module).filter(|at| self.has(at, name, hands - 1)) {
                let path = [&["self".to_owned()], names].concat();
                if let Some((at, names)) = self.enter(&target, &path) {
                    self.find(&at, names, used, hands - 1);
                }
            }
        }
    }

    /// Returns the modules from which one imports everything.
    fn globs(&self, at: &[String], module: &Module) -> impl Iterator<Item = Vec<String>> {
        let globs = module.imports().filter(|import| import.name.is_none());
        globs.filter_map(|glob| match self.enter(at, &glob.path) {
            Some((target, [])) => Some(target),
            _ => None,
        })
    }

    /// Returns whether a module has a name, by definition, by import or as a child.
    fn has(&self, at: &[String], name: &String, hands: usize) -> bool {
        let Some(module) = self.modules.get(at) else { return false };
        module.defines(name)
            || module.import(name).is_some()
            || self.modules.contains_key(&[at, slice::from_ref(name)].concat())
            || hands > 0 && self.globs(at, module).any(|at| self.has(&at, name, hands - 1))
    }
}

/// Returns `["disk", "file"]` for `disk/file.rs`.
fn module_path(file: &str) -> Vec<String> {
    match file.trim_end_matches(".rs") {
        "lib" | "main" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

/// Returns whether one module contains the other.
fn is_kin(a: &[String], b: &[String]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}
