//! Options that take one of a few named values.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The name of a value, its meaning as a line of the help (may be empty), and the value.
pub type Choice<T> = (&'static str, &'static str, T);

pub fn one_of<T: Clone + Send + Sync + 'static>(
    choices: impl Into<Vec<Choice<T>>>,
) -> impl TypedValueParser<Value = T> {
    let choices = choices.into();
    let value = |(name, doc, _): &Choice<T>| match *doc {
        "" => PossibleValue::new(*name),
        doc => PossibleValue::new(*name).help(doc),
    };
    let names: Vec<PossibleValue> = choices.iter().map(value).collect();
    PossibleValuesParser::new(names).try_map(move |given| {
        let known = choices.iter().find(|(name, ..)| *name == given);
        known.map(|(.., value)| value.clone()).ok_or("it is not one of the choices")
    })
}
