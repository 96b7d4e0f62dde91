//! All verbs, below the questions that they answer, as `--help` lists them. To add a verb, add a
//! file here that declares its `VERB`, and a line to this list.

use crate::verb::Verb;

macro_rules! verbs {
    ($($question:literal { $($verb:ident),+ $(,)? })+) => {
        $($(pub(crate) mod $verb;)+)+
        pub const QUESTIONS: &[(&str, &[&str])] = &[$(($question, &[$($verb::VERB.name),+])),+];
        pub const ALL: &[Verb] = &[$($($verb::VERB),+),+];
    };
}

verbs! {
    "Can it carry my database?" {
        calibrate,
        run,
        noise,
        size,
        teardown,
    }
    "What does it do now?" {
        watch,
        trace,
    }
    "Is it true?" {
        check,
        claim,
        compare,
        demo,
    }
    "Other storage, files, samples" {
        flash,
        reduce,
        offload,
        copy,
        subset,
    }
    "Recordings, and this program" {
        report,
        merge,
        runs,
        config,
        schema,
        completions,
        man,
        help,
    }
}

/// Returns the verb with that name or alias.
pub fn find(name: &str) -> Option<&'static Verb> {
    ALL.iter().find(|verb| verb.name == name || (!name.is_empty() && verb.alias == name))
}
