//! What one file imports, read from its tokens: its modules, its `use` declarations and the paths
//! in its code. Items under `#[cfg(test)]` are passed over.

/// A module as its file writes it down: the file's own, and one for each `mod name { … }` in it.
#[derive(Debug, Default)]
pub struct Scope {
    /// Below the file's module; empty for that module itself.
    pub inside: Vec<String>,
    /// What `use` brings into scope.
    pub imports: Vec<Import>,
    /// Paths of two names and more in the code: `crate::disk::open`.
    pub paths: Vec<Vec<String>>,
    /// Names of items that are defined here.
    pub items: Vec<String>,
    /// Modules in files of their own that only tests have.
    pub test_modules: Vec<String>,
}

/// One name of a `use` declaration.
#[derive(Debug)]
pub struct Import {
    /// What it is called here; none for `*`.
    pub name: Option<String>,
    pub path: Vec<String>,
    /// Whether it has a visibility of its own, thus hands the name on.
    pub is_public: bool,
}

const DEFINES: &[&str] =
    &["struct", "enum", "union", "fn", "const", "static", "type", "trait", "macro_rules"];

/// Reads the code of a file: text without comments and strings.
pub fn scopes(code: &str) -> Vec<Scope> {
    let tokens = tokens(code);
    let mut scan = Scan { tokens: &tokens, at: 0, scopes: vec![Scope::default()], open: vec![] };
    while scan.at < tokens.len() {
        scan.step();
    }
    scan.scopes
}

/// Words, `::`, and every other character by itself.
fn tokens(code: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

struct Scan<'a> {
    tokens: &'a [&'a str],
    at: usize,
    scopes: Vec<Scope>,
    /// The open braces: for the one of a module, the scope to return to.
    open: Vec<Option<Vec<String>>>,
}

impl<'a> Scan<'a> {
    fn token(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).copied().unwrap_or_default()
    }

    /// The scope that the code at this point belongs to: the last one made or returned to.
    fn scope(&mut self) -> &mut Scope {
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    fn step(&mut self) {
        match self.token(0) {
            "#" if self.token(1) == "[" => self.attribute(),
            "use" => self.import(),
            "mod" if self.token(2) == "{" => {
                let outer = self.scope().inside.clone();
                let inside = [outer.as_slice(), &[self.token(1).to_owned()]].concat();
                self.scopes.push(Scope { inside, ..Scope::default() });
                self.open.push(Some(outer));
                self.at += 3;
            }
            "{" => {
                self.open.push(None);
                self.at += 1;
            }
            "}" => {
                if let Some(Some(outer)) = self.open.pop() {
                    self.scopes.push(Scope { inside: outer, ..Scope::default() });
                }
                self.at += 1;
            }
            word if is_name(word) => self.word(),
            _ => self.at += 1,
        }
    }

    /// A name by itself, a path, or the keyword before a definition.
    fn word(&mut self) {
        let word = self.token(0);
        if DEFINES.contains(&word) {
            let name = if word == "macro_rules" { self.token(2) } else { self.token(1) };
            if is_name(name) {
                let name = name.to_owned();
                self.scope().items.push(name);
            }
        }
        // A path that begins with `::` names another crate.
        let is_extern = self.at > 0 && self.tokens[self.at - 1] == "::";
        let path = self.path();
        if path.len() > 1 && !is_extern {
            self.scope().paths.push(path);
        }
    }

    /// Names joined by `::`, as far as they go.
    fn path(&mut self) -> Vec<String> {
        let mut path = vec![self.token(0).to_owned()];
        self.at += 1;
        while self.token(0) == "::" && is_name(self.token(1)) {
            path.push(self.token(1).to_owned());
            self.at += 2;
        }
        path
    }

    /// An attribute, and the item behind it when only tests have that.
    fn attribute(&mut self) {
        let is_for_tests = matches!(
            self.tokens[self.at + 2..],
            ["cfg", "(", "test", ")", ..] | ["cfg", "(", "all", "(", "test", ..]
        );
        self.at += 1;
        self.group();
        if is_for_tests {
            while self.token(0) == "#" {
                self.at += 1;
                self.group();
            }
            self.skip_item();
        }
    }

    /// Passes over an item, a field or a variant.
    fn skip_item(&mut self) {
        let start = self.at;
        let is_import = (0..6).map(|ahead| self.token(ahead)).any(|token| token == "use");
        let is_part = !self.tokens[start..].iter().take(6).any(|token| {
            DEFINES.contains(token) || ["use", "mod", "impl", "extern", "let"].contains(token)
        });
        while self.at < self.tokens.len() {
            match self.token(0) {
                "mod" if self.token(2) == ";" => {
                    let name = self.token(1).to_owned();
                    self.scope().test_modules.push(name);
                    self.at += 1;
                }
                ";" => return self.at += 1,
                "," if is_part => return self.at += 1,
                "}" | ")" | "]" => return,
                "{" if !is_import => return self.group(),
                "{" | "(" | "[" => self.group(),
                _ => self.at += 1,
            }
        }
    }

    /// Passes over a pair of brackets and all in it.
    fn group(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.token(0) {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth <= 0 {
                return;
            }
        }
    }

    fn import(&mut self) {
        let before = self.at.checked_sub(1).map_or("", |at| self.tokens[at]);
        let is_public = before == "pub" || before == ")";
        self.at += 1;
        if is_name(self.token(0)) {
            self.tree(&[], is_public);
        }
    }

    /// A part of a `use` declaration: what follows the names of `prefix`.
    fn tree(&mut self, prefix: &[String], is_public: bool) {
        let mut path = prefix.to_vec();
        loop {
            match self.token(0) {
                "{" => {
                    self.at += 1;
                    while !["}", ""].contains(&self.token(0)) {
                        self.tree(&path, is_public);
                        if self.token(0) == "," {
                            self.at += 1;
                        }
                    }
                    return self.at += 1;
                }
                "*" => {
                    self.at += 1;
                    return self.scope().imports.push(Import { name: None, path, is_public });
                }
                "self" if !path.is_empty() => self.at += 1,
                name if is_name(name) => {
                    path.push(name.to_owned());
                    self.at += 1;
                }
                _ => return self.at += 1,
            }
            if self.token(0) != "::" {
                break;
            }
            self.at += 1;
        }
        let mut name = path.last().cloned();
        if self.token(0) == "as" {
            name = Some(self.token(1).to_owned());
            self.at += 2;
        }
        self.scope().imports.push(Import { name, path, is_public });
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
