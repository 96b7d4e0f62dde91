//! Which samples of sessions are meant: a question about all of them, narrowed down to a wait, a
//! session, a statement, or whatever else a sample says.

use std::fmt;
use std::str::FromStr;

use blockstone_base::column::Kind;
use blockstone_base::database::SESSION;

use crate::sample::Sample;

const OBJECT: &str = "session";
/// Which of several databases it is a session of.
pub(crate) const INSTANCE: &str = "instance";
const BLOCKERS: &str = "blockers";

/// What a sample of a session has to say to be looked at: all of these conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Focus {
    conditions: Vec<Condition>,
}

/// That a column of `session` says this. The session's number is the column `session`, the database
/// that it is of, where several are watched, `instance`; of `blockers`, one of them has to be it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub column: &'static str,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    #[error("it must be COLUMN=VALUE")]
    NoValue,
    #[error("samples of sessions have no `{column}`; they have {}", known())]
    NoColumn {
        /// What stood before the `=`.
        column: String,
    },
}

impl Focus {
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// What a column has to say; none where that does not matter.
    pub fn value(&self, column: &str) -> Option<&str> {
        let condition = self.conditions.iter().find(|it| it.column == column)?;
        Some(condition.value.as_str())
    }

    /// Whether a sample is one of those that are meant.
    pub fn admits(&self, sample: &Sample<'_>) -> bool {
        self.conditions.iter().all(|Condition { column, value }| match *column {
            OBJECT => sample.object == value,
            INSTANCE => sample.instance == Some(value),
            BLOCKERS => {
                let said = sample.text(BLOCKERS).unwrap_or_default();
                said.split(',').any(|blocker| blocker.trim() == value)
            }
            column => sample.text(column).unwrap_or_default() == value,
        })
    }
}

impl Condition {
    /// The database that it asks for by name.
    pub fn instance(&self) -> Option<&str> {
        (self.column == INSTANCE).then_some(self.value.as_str())
    }
}

impl FromIterator<Condition> for Focus {
    fn from_iter<T: IntoIterator<Item = Condition>>(conditions: T) -> Self {
        Self { conditions: conditions.into_iter().collect() }
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let (name, value) = text.split_once('=').ok_or(ConditionError::NoValue)?;
        let column = columns().find(|column| *column == name);
        let column = column.ok_or(ConditionError::NoColumn { column: name.to_owned() })?;
        Ok(Self { column, value: value.to_owned() })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.column, self.value)
    }
}

fn columns() -> impl Iterator<Item = &'static str> {
    let states = SESSION.columns.iter().filter(|column| column.kind == Kind::State);
    [OBJECT, INSTANCE].into_iter().chain(states.map(|column| column.name))
}

fn known() -> String {
    columns().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_column_of_samples_and_what_it_says() {
        let condition: Condition = "event=Lock=x".parse().unwrap();
        assert_eq!((condition.column, condition.value.as_str()), ("event", "Lock=x"));
        assert_eq!(condition.to_string(), "event=Lock=x");
        assert_eq!("session".parse::<Condition>(), Err(ConditionError::NoValue));
        let error = "events=x".parse::<Condition>().unwrap_err().to_string();
        assert!(error.contains("`events`") && error.contains("query_id"), "{error}");
    }
}
