//! Declarations that would otherwise be written once as a type and again as a list of its parts.

/// Declares an enum whose variants have a name and an order.
#[macro_export]
macro_rules! named {
    (
        $(#[$doc:meta])*
        $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$variant_doc])* $variant,)* }

        impl $type {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

/// Declares a struct of counters, whose values are in the order of its fields.
#[macro_export]
macro_rules! counters {
    (
        $(#[$doc:meta])*
        pub struct $type:ident { $($(#[$field_doc:meta])* pub $field:ident,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $type { $($(#[$field_doc])* pub $field: u64,)* }

        impl $type {
            pub const COUNT: usize = [$(stringify!($field),)*].len();

            pub fn values(&self) -> [u64; Self::COUNT] {
                [$(self.$field,)*]
            }
        }

        impl From<[u64; Self::COUNT]> for $type {
            fn from([$($field,)*]: [u64; Self::COUNT]) -> Self {
                Self { $($field,)* }
            }
        }

        impl ::std::ops::AddAssign for $type {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}
