//! Imports of one file, read from its tokens: its modules, its `use` declarations and the paths in
//! its code. Items under `#[cfg(test)]` are skipped.

use std::str::FromStr as _;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A module written in a file: the file's own, or a `mod name { … }` in it.
#[derive(Debug, Default)]
pub struct Scope {
    /// Path below the file's module; empty for that module itself.
    pub inside: Vec<String>,
    /// Names that `use` brings into scope.
    pub imports: Vec<Import>,
    /// Paths of two or more names in the code: `crate::disk::open`.
    pub paths: Vec<Vec<String>>,
    pub items: Vec<String>,
    /// Modules in files of their own that exist only for tests.
    pub test_modules: Vec<String>,
}

#[derive(Debug)]
pub struct Import {
    /// Name in this scope; `None` for `*`.
    pub name: Option<String>,
    pub path: Vec<String>,
    /// Whether it has a visibility of its own and so re-exports the name.
    pub is_public: bool,
}

const DEFINES: &[&str] =
    &["struct", "enum", "union", "fn", "const", "static", "type", "trait", "macro_rules"];

pub fn scopes(code: &str) -> Vec<Scope> {
    let mut reader = Reader { scopes: vec![Scope::default()] };
    // Code that is not Rust is left to the compiler to report.
    reader.read(&tokens(TokenStream::from_str(code).unwrap_or_default()), 0);
    reader.scopes
}

enum Token {
    /// A name, `::`, or any other character; empty for a literal.
    Word(String),
    Group(Delimiter, Vec<Token>),
}

impl Token {
    fn word(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Group(Delimiter::Parenthesis, _) => ")",
            Self::Group(..) => "",
        }
    }

    fn is_name(&self) -> bool {
        self.word().starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

fn tokens(stream: TokenStream) -> Vec<Token> {
    let mut read = Vec::new();
    let mut is_joined = false;
    for tree in stream {
        let token = match tree {
            TokenTree::Group(group) => Token::Group(group.delimiter(), tokens(group.stream())),
            TokenTree::Ident(name) => Token::Word(name.to_string()),
            TokenTree::Literal(_) => Token::Word(String::new()),
            TokenTree::Punct(mark) if mark.as_char() == ':' && is_joined => {
                read.pop();
                is_joined = false;
                Token::Word("::".to_owned())
            }
            TokenTree::Punct(mark) => {
                is_joined = mark.as_char() == ':' && mark.spacing() == Spacing::Joint;
                Token::Word(mark.to_string())
            }
        };
        read.push(token);
    }
    read
}

struct Reader {
    scopes: Vec<Scope>,
}

impl Reader {
    /// Reads code that belongs to the scope with the index `own`.
    fn read(&mut self, tokens: &[Token], own: usize) {
        let mut at = 0;
        while let Some((token, after)) = tokens[at..].split_first() {
            let before = tokens[..at].last().map_or("", Token::word);
            at += match (token.word(), after) {
                ("#", [Token::Group(_, attribute), item @ ..]) if is_for_tests(attribute) => {
                    2 + self.skip(item, own)
                }
                ("#", [Token::Group(..), ..]) => 2,
                ("mod", [name, Token::Group(_, inner), ..]) => {
                    let inside = [&self.scopes[own].inside[..], &[name.word().to_owned()]].concat();
                    self.scopes.push(Scope { inside, ..Scope::default() });
                    self.read(inner, self.scopes.len() - 1);
                    3
                }
                ("use", [next, ..]) if next.is_name() => {
                    let length = after.iter().position(|token| token.word() == ";");
                    let length = length.unwrap_or(after.len());
                    let is_public = ["pub", ")"].contains(&before);
                    self.import(&after[..length], &[], is_public, own);
                    length + 1
                }
                _ if token.is_name() => self.name(&tokens[at..], before, own),
                _ => {
                    if let Token::Group(_, inner) = token {
                        self.read(inner, own);
                    }
                    1
                }
            };
        }
    }

    /// Reads a single name, a path, or the keyword before a definition; returns its number of
    /// tokens.
    fn name(&mut self, tokens: &[Token], before: &str, own: usize) -> usize {
        let word = tokens[0].word();
        if DEFINES.contains(&word) {
            let name = tokens.get(if word == "macro_rules" { 2 } else { 1 });
            let name = name.filter(|name| name.is_name());
            self.scopes[own].items.extend(name.map(|name| name.word().to_owned()));
        }
        let mut path = vec![word.to_owned()];
        while let [colons, name, ..] = &tokens[2 * path.len() - 1..]
            && colons.word() == "::"
            && name.is_name()
        {
            path.push(name.word().to_owned());
        }
        let length = 2 * path.len() - 1;
        // A path that begins with `::` names another crate.
        if path.len() > 1 && before != "::" {
            self.scopes[own].paths.push(path);
        }
        length
    }

    /// Returns the number of tokens of an item, a field or a variant that exists only for tests.
    fn skip(&mut self, tokens: &[Token], own: usize) -> usize {
        let attributes = tokens.chunks(2).take_while(|pair| pair[0].word() == "#").count() * 2;
        let item = &tokens[attributes..];
        let opens_with =
            |words: &[&str]| item.iter().take(6).any(|token| words.contains(&token.word()));
        let is_import = opens_with(&["use"]);
        let is_part = !opens_with(DEFINES) && !opens_with(&["use", "mod", "impl", "extern", "let"]);
        if let [module, name, end, ..] = item
            && (module.word(), end.word()) == ("mod", ";")
        {
            self.scopes[own].test_modules.push(name.word().to_owned());
        }
        let end = item.iter().position(|token| match token {
            Token::Group(Delimiter::Brace, _) => !is_import,
            token => token.word() == ";" || is_part && token.word() == ",",
        });
        attributes + end.map_or(item.len(), |end| end + 1)
    }

    /// Reads a part of a `use` declaration: what follows the names of `prefix`.
    fn import(&mut self, tree: &[Token], prefix: &[String], is_public: bool, own: usize) {
        let mut path = prefix.to_vec();
        let mut alias = None;
        for (at, token) in tree.iter().enumerate() {
            match (token, token.word()) {
                (Token::Group(_, inner), _) => {
                    for part in inner.split(|token| token.word() == ",").filter(|it| !it.is_empty())
                    {
                        self.import(part, &path, is_public, own);
                    }
                    return;
                }
                (_, "*") => {
                    return self.scopes[own].imports.push(Import { name: None, path, is_public });
                }
                (_, "as") => {
                    alias = tree.get(at + 1).map(|name| name.word().to_owned());
                    break;
                }
                (_, "::") => {}
                (_, "self") if !path.is_empty() => {}
                (_, name) => path.push(name.to_owned()),
            }
        }
        let name = alias.or_else(|| path.last().cloned());
        self.scopes[own].imports.push(Import { name, path, is_public });
    }
}

/// Returns whether an attribute is `cfg(test)` or `cfg(all(test, …))`.
fn is_for_tests(attribute: &[Token]) -> bool {
    let first = |tokens: &[Token], word: &str| tokens.first().is_some_and(|t| t.word() == word);
    match attribute {
        [cfg, Token::Group(_, inner)] if cfg.word() == "cfg" => match &inner[..] {
            [all, Token::Group(_, inner), ..] => all.word() == "all" && first(inner, "test"),
            tokens => first(tokens, "test"),
        },
        _ => false,
    }
}
