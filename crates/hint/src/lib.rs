//! Derives `blockstone_base::hint::Hint`: an error states beside its message what to do about it.
//!
//! ```ignore
//! #[derive(Debug, thiserror::Error, Hint)]
//! enum CopyError {
//!     #[error("copy to {}: it exists", path.display())]
//!     #[hint("--force replaces {}", path.display())]
//!     Exists { path: PathBuf },
//!     #[error(transparent)]
//!     #[hint(transparent)]
//!     File(#[from] FileError),
//!     #[error("copy {what}: {source}")]
//!     #[hint(source)]
//!     Read { what: String, source: FileError },
//! }
//! ```
//!
//! A hint is a format string whose arguments are the fields, as in `#[error]`; `{0}` is the first
//! field of a tuple. `transparent` takes the hint of the only field, a name that of this field,
//! which is an error or an `Option<String>`. Variants without the attribute have no hint.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Data, DeriveInput, Fields, Ident, LitStr, Result, Token, parse_macro_input};

#[proc_macro_derive(Hint, attributes(hint))]
pub fn derive_hint(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implement(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Contents of the attribute.
enum Said {
    Text {
        text: LitStr,
        arguments: TokenStream,
    },
    /// Hint of a field, or of the only one if it is `transparent`.
    Of(Ident),
}

impl Parse for Said {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(Ident) {
            return input.parse().map(Self::Of);
        }
        let text = input.parse()?;
        let comma: Option<Token![,]> = input.parse()?;
        let arguments: TokenStream = input.parse()?;
        Ok(Self::Text { text, arguments: comma.map(|_| arguments).unwrap_or_default() })
    }
}

fn implement(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let arms = match &input.data {
        Data::Enum(data) => {
            let arm = |variant: &syn::Variant| {
                let path = &variant.ident;
                arm(&quote!(Self::#path), &variant.attrs, &variant.fields)
            };
            data.variants.iter().map(arm).collect::<Result<Vec<_>>>()?
        }
        Data::Struct(data) => vec![arm(&quote!(Self), &input.attrs, &data.fields)?],
        Data::Union(_) => {
            return Err(syn::Error::new(Span::call_site(), "an error is not a union"));
        }
    };
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_variables, clippy::all, clippy::pedantic)]
        impl #generics ::blockstone_base::hint::Hint for #name #arguments #bounds {
            fn hint(&self) -> ::std::option::Option<::std::borrow::Cow<'_, str>> {
                match self {
                    #(#arms)*
                }
            }
        }
    })
}

/// Returns the arm of the match that gives the hint of a variant.
fn arm(path: &TokenStream, attributes: &[Attribute], fields: &Fields) -> Result<TokenStream> {
    let said = attributes.iter().find(|attribute| attribute.path().is_ident("hint"));
    let Some(said) = said.map(Attribute::parse_args::<Said>).transpose()? else {
        return Ok(quote!(#path { .. } => ::std::option::Option::None,));
    };
    let (pattern, names) = pattern(path, fields);
    let hint = match said {
        Said::Text { text, arguments } => hint(&text, &arguments),
        Said::Of(field) => {
            let field = if field == "transparent" { names.first().cloned() } else { Some(field) };
            quote!(::blockstone_base::hint::Of::of(#field))
        }
    };
    Ok(quote!(#pattern => #hint,))
}

/// Returns a pattern that binds every field, and the names that it binds: `_0` is the first field
/// of a tuple.
fn pattern(path: &TokenStream, fields: &Fields) -> (TokenStream, Vec<Ident>) {
    match fields {
        Fields::Named(fields) => {
            let names: Vec<Ident> =
                fields.named.iter().filter_map(|field| field.ident.clone()).collect();
            (quote!(#path { #(#names),* }), names)
        }
        Fields::Unnamed(fields) => {
            let names: Vec<Ident> =
                (0..fields.unnamed.len()).map(|place| format_ident!("_{place}")).collect();
            (quote!(#path(#(#names),*)), names)
        }
        Fields::Unit => (quote!(#path), Vec::new()),
    }
}

fn hint(text: &LitStr, arguments: &TokenStream) -> TokenStream {
    if arguments.is_empty() && !text.value().contains(['{', '}']) {
        return quote!(::std::option::Option::Some(::std::borrow::Cow::Borrowed(#text)));
    }
    let text = LitStr::new(&with_names(&text.value()), text.span());
    quote! {
        ::std::option::Option::Some(::std::borrow::Cow::Owned(
            ::std::format!(#text, #arguments)
        ))
    }
}

/// Writes `{0}` as `{_0}`, the name that the pattern binds.
fn with_names(text: &str) -> String {
    let mut named = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        if before == '{' && c.is_ascii_digit() {
            named.push('_');
        }
        named.push(c);
        before = c;
    }
    named
}
