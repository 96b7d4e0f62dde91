//! The parameters that a sweep varies: `key=value,value`.

use std::str::FromStr;

use blockstone_base::units::{ratio_above_zero, share};
use blockstone_flash::Policy;
use blockstone_flash::sweep::Setting;

/// A parameter with its values; the last one of this list varies fastest.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    Policy(Vec<Policy>),
    PagesPerBlock(Vec<u32>),
    Reserve(Vec<u32>),
    /// Ratios of bad blocks.
    BadBlocks(Vec<f64>),
    Levelling(Vec<Option<u32>>),
    /// Ratios of over-provisioning.
    OverProvisioning(Vec<f64>),
}

impl Axis {
    /// Returns its place among the axes.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Policy(_) => 0,
            Self::PagesPerBlock(_) => 1,
            Self::Reserve(_) => 2,
            Self::BadBlocks(_) => 3,
            Self::Levelling(_) => 4,
            Self::OverProvisioning(_) => 5,
        }
    }

    /// Returns `setting` with each of the values.
    pub fn varied(&self, setting: Setting) -> Vec<Setting> {
        fn each<T: Copy>(values: &[T], set: impl Fn(T) -> Setting) -> Vec<Setting> {
            values.iter().map(|&value| set(value)).collect()
        }
        match self {
            Self::Policy(all) => each(all, |policy| Setting { policy, ..setting }),
            Self::PagesPerBlock(all) => {
                each(all, |pages_per_block| Setting { pages_per_block, ..setting })
            }
            Self::Reserve(all) => each(all, |reserve_blocks| Setting { reserve_blocks, ..setting }),
            Self::BadBlocks(all) => each(all, |bad_blocks| Setting { bad_blocks, ..setting }),
            Self::Levelling(all) => each(all, |levelling| Setting { levelling, ..setting }),
            Self::OverProvisioning(all) => {
                each(all, |over_provisioning| Setting { over_provisioning, ..setting })
            }
        }
    }
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hint = "write op=7,20,44, policy=greedy,fifo,d=5, pages-per-block=64,256, \
                    levelling=none,20,5, reserve=1,4 or bad-blocks=0,2; a sweep has no time, \
                    flash sim has";
        let fail = || format!("`{text}` cannot be swept over; {hint}");
        let (key, values) = text.split_once('=').ok_or_else(fail)?;
        let values = values.split(',');
        let count = |least: u32, most: u32| {
            move |value: &str| match value.parse() {
                Ok(count) if (least..=most).contains(&count) => Ok(count),
                _ => Err(fail()),
            }
        };
        match key {
            "op" => {
                values.map(ratio_above_zero).collect::<Result<_, _>>().map(Self::OverProvisioning)
            }
            "policy" => values
                .map(|value| value.parse().map_err(|error| format!("{error}")))
                .collect::<Result<_, _>>()
                .map(Self::Policy),
            "pages-per-block" | "b" => {
                values.map(count(1, 32_768)).collect::<Result<_, _>>().map(Self::PagesPerBlock)
            }
            "levelling" => {
                let levelling = |value| match value {
                    "none" => Ok(None),
                    value => count(1, u32::MAX)(value).map(Some),
                };
                values.map(levelling).collect::<Result<_, _>>().map(Self::Levelling)
            }
            "reserve" => values.map(count(1, 4096)).collect::<Result<_, _>>().map(Self::Reserve),
            "bad-blocks" => values.map(share).collect::<Result<_, _>>().map(Self::BadBlocks),
            _ => Err(fail()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_read() {
        assert_eq!("op=7,44%".parse(), Ok(Axis::OverProvisioning(vec![0.07, 0.44])));
        assert_eq!("b=64".parse(), Ok(Axis::PagesPerBlock(vec![64])));
        let policies = Axis::Policy(vec![Policy::Greedy, Policy::Choices(5)]);
        assert_eq!("policy=greedy,d=5".parse(), Ok(policies));
        assert_eq!("levelling=none,5".parse(), Ok(Axis::Levelling(vec![None, Some(5)])));
        assert_eq!("bad-blocks=0,2".parse(), Ok(Axis::BadBlocks(vec![0.0, 0.02])));
        for text in [
            "op",
            "op=",
            "op=0",
            "op=-7",
            "op=nan",
            "policy=best",
            "b=0",
            "x=1",
            "levelling=0",
            "levelling=few",
            "reserve=0",
            "bad-blocks=-1",
            "background=10",
        ] {
            assert!(text.parse::<Axis>().is_err(), "{text}");
        }
    }
}
