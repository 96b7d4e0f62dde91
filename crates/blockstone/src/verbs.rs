//! All verbs, in the order in which `--help` lists them. To add a verb, add a file here that
//! declares its `VERB`, and a line to this list.

use crate::verb::Verb;

macro_rules! verbs {
    ($($verb:ident),+ $(,)?) => {
        $(pub(crate) mod $verb;)+
        pub const ALL: &[Verb] = &[$($verb::VERB),+];
    };
}

verbs! {
    calibrate,
    run,
    noise,
    teardown,
    flash,
    reduce,
    copy,
    size,
    trace,
    subset,
    offload,
    watch,
    report,
    compare,
    check,
    claim,
    runs,
    schema,
    completions,
    man,
}

/// Returns the verb with that name or alias.
pub fn find(name: &str) -> Option<&'static Verb> {
    ALL.iter().find(|verb| verb.name == name || (!name.is_empty() && verb.alias == name))
}
