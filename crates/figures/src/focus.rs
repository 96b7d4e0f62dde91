//! Filters on samples of sessions: they narrow a question about all sessions down to a wait, a
//! session, a statement, or anything else a sample records.

use std::fmt;
use std::str::FromStr;

use blockstone_base::column::Kind;
use blockstone_base::database::SESSION;

use crate::sample::Sample;

const OBJECT: &str = "session";
/// Column that names the database of a session when several are watched.
pub(crate) const INSTANCE: &str = "instance";
const BLOCKERS: &str = "blockers";

/// Conditions on samples of sessions. A sample must meet all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Focus {
    conditions: Vec<Condition>,
}

/// A value required of a column of `session`. The column `session` is the session's number, and
/// `instance` the database it belongs to when several are watched. For `blockers`, one blocker of
/// the list has to match.
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
        /// The text before the `=`.
        column: String,
    },
}

impl Focus {
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Returns the value required of a column, `None` if there is no condition on it.
    pub fn value(&self, column: &str) -> Option<&str> {
        let condition = self.conditions.iter().find(|it| it.column == column)?;
        Some(condition.value.as_str())
    }

    /// Returns whether a sample meets all conditions.
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
    /// Returns the database that the condition names.
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
